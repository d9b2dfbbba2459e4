//! Sizes at their limits. What is one byte over is refused before anything starts; that is
//! tested with the refusals of the command.

use crate::{job, with_sandbox};

const MIB: u64 = 1024 * 1024;

#[test]
fn a_table_of_exactly_the_largest_size_is_read_whole() {
    let place = with_sandbox();
    let limit = usize::try_from(25 * MIB).unwrap();
    let mut table = String::from("n\n");
    // Each line has 32 bytes; the last one makes the file exactly as large as it may be.
    while table.len() + 64 <= limit {
        table.push_str("0000000000000000000000000000001\n");
    }
    let left = limit - table.len() - 1;
    table.push_str(&format!("{:0>left$}\n", 1));
    assert_eq!(table.len(), limit);
    let lines = table.lines().count() - 1;
    place.file("table.csv", &table);
    let said = place.glovebox(["run".into(), job("sum_each.py"), "table.csv".into()]);
    assert_eq!(said.out, format!("b'table.csv' {lines}\n"), "{said}");
    assert_eq!(
        place.read("results/sums/table.csv"),
        format!("sum\n{lines}\n")
    );
    assert!(place.read("table.csv") == table, "the original has changed");
}

#[test]
fn inputs_of_exactly_the_most_bytes_together_go_in() {
    let place = with_sandbox();
    // The code of `-c` is no input. Eleven files; the last one fills it up.
    let mut arguments = vec!["run".to_owned(), "-q".into(), "-c".into()];
    arguments.push("import os; print(sum(os.stat(n).st_size for n in os.listdir()))".into());
    for number in 0..11 {
        let name = format!("{number}.bin");
        let bytes = if number < 10 { 25 * MIB } else { 6 * MIB };
        place.sparse(&name, bytes);
        arguments.push(name);
    }
    let said = place.glovebox(&arguments);
    assert_eq!(
        said.to_string(),
        format!("status 0\n-- out\n{}\n", 256 * MIB)
    );
    place.file("one.more", "x");
    arguments.push("one.more".into());
    let said = place.glovebox(&arguments);
    assert_eq!(
        said.to_string(),
        "status 125\n-- err\nerror: the inputs have 268435457 bytes together; \
         there may be 256 MiB at most (the largest is 9.bin, 25 MiB)\n"
    );
}

#[test]
fn a_program_may_not_take_out_more_than_a_collection_holds() {
    let place = with_sandbox();
    let code = "
for n in range(27): open(f'{n:02}.txt', 'w').write('x')
";
    let said = place.glovebox(["run", "-c", code]);
    assert_eq!(said.status, 0, "{said}");
    assert_eq!(place.listed("results").len(), 25);
    assert_eq!(said.err.matches("left out ").count(), 2, "{said}");
    assert!(said.err.contains("25"), "the limit is named\n{said}");

    let code = "
for n in range(3): open(f'{n}.csv', 'wb').write(b'x' * (40 << 20))
";
    let said = place.glovebox(["run", "-c", code, "--out", "large"]);
    assert_eq!(said.status, 0, "{said}");
    assert_eq!(place.listed("large").len(), 2, "{said}");
    assert!(
        said.err
            .lines()
            .any(|line| line.starts_with("left out ") && line.contains("100 MiB")),
        "{said}"
    );
}
