//! The deployment guide lists what preflight checks, and nothing else.

const GUIDE: &str = include_str!("../../../../docs/deployment/sandbox-gateway.md");

#[test]
fn every_check_stands_in_the_guide_and_the_other_way_round() {
    let preflight = GUIDE.split("## Preflight").nth(1).unwrap();
    let listed: Vec<_> = preflight
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let checks: Vec<_> = glovebox_gateway::preflight::CHECKS
        .into_iter()
        .chain(glovebox_runtime_embedded::CHECKS)
        .chain(glovebox_runtime_engine::CHECKS)
        .collect();
    assert_eq!(listed, checks);
}

#[test]
fn every_variable_stands_in_the_guide() {
    let sources = glovebox_testkit::repository().join("crates/gateway/src");
    let mut folders = vec![sources];
    let mut found = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs_err::read_to_string(path).unwrap();
            for (place, _) in text.match_indices("\"GATEWAY_") {
                let word = text[place + 1..].split('"').next().unwrap();
                found.insert(word.to_owned());
            }
        }
    }
    assert!(found.len() > 10, "{found:?}");
    for variable in found {
        assert!(GUIDE.contains(&format!("| `{variable}`")), "{variable}");
    }
}
