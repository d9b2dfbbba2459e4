//! Runs filters as the kernel does.

use super::*;

/// What the kernel tells a filter of a call.
#[derive(Debug, Clone, Copy)]
struct Call {
    number: u32,
    arch: u32,
    argument: u64,
}

/// The answer of a program, and how many instructions it took.
fn run(program: &BpfProgram, call: Call) -> (u32, usize) {
    let half = |shift| u32::try_from(call.argument >> shift & 0xffff_ffff).unwrap();
    let word = |at: u32| match at {
        0 => call.number,
        4 => call.arch,
        // All arguments are the same; the lower half comes first.
        16.. => half(at % 8 * 8),
        _ => 0,
    };
    let (mut at, mut value, mut steps) = (0, 0_u32, 0);
    loop {
        let step = &program[at];
        steps += 1;
        at += 1;
        let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
        match u32::from(step.code) {
            0x20 => value = word(step.k),
            0x54 => value &= step.k,
            0x05 => at += step.k as usize,
            0x15 => at += jump(value == step.k),
            0x25 => at += jump(value > step.k),
            0x35 => at += jump(value >= step.k),
            0x06 => return (step.k, steps),
            code => panic!("an instruction that no filter of ours has: {code:#x}"),
        }
    }
}

const OURS: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else {
    0xc000_00b7
};
const OTHERS: u32 = 0x4000_0003;

/// Every number that there is and more, and what a number looks like by the other convention of
/// the same processor.
fn numbers() -> impl Iterator<Item = u32> {
    (0..700).flat_map(|number| [number, number | 0x4000_0000, number | 0x8000_0000])
}

fn calls() -> impl Iterator<Item = Call> {
    let arguments = [0, 1, 2, 0x5401, 0x8915, 0x7e02_0000, u64::MAX];
    numbers().flat_map(move |number| {
        arguments.into_iter().flat_map(move |argument| {
            [OURS, OTHERS].map(|arch| Call {
                number,
                arch,
                argument,
            })
        })
    })
}

fn rules() -> [Rules; 2] {
    [
        &[WORKLOAD, WORKLOAD_OLDER][..],
        &[WORKLOAD, WORKLOAD_OLDER, AGENT],
    ]
    .map(|tables| {
        let mut rules = always(tables);
        with_arguments(&mut rules).unwrap();
        rules
    })
}

#[test]
fn every_filter_can_be_built() {
    for filters in [
        Filters::workload(false),
        Filters::workload(true),
        Filters::agent(),
    ] {
        let Filter(program) = filters.unwrap().list;
        assert!(program.len() < 4096, "{} instructions", program.len());
    }
}

#[test]
fn a_list_that_halves_answers_as_one_that_compares_with_all() {
    for rules in rules() {
        let Filter(all) = build(
            rules.clone(),
            SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
            SeccompAction::Allow,
        )
        .unwrap();
        let Filter(halving) = list(rules).unwrap();
        for call in calls() {
            assert_eq!(run(&halving, call).0, run(&all, call).0, "{call:?}");
        }
    }
}

#[test]
fn a_list_lets_its_own_calls_through_and_no_others() {
    for rules in rules() {
        let Filter(program) = list(rules.clone()).unwrap();
        for number in numbers() {
            let (arch, argument) = (OURS, 0);
            let answer = run(
                &program,
                Call {
                    number,
                    arch,
                    argument,
                },
            )
            .0;
            match rules.get(&i64::from(number)) {
                Some(arguments) if arguments.is_empty() => {
                    assert_eq!(answer, libc::SECCOMP_RET_ALLOW, "call {number}");
                }
                Some(_) => {}
                None => assert_eq!(
                    answer,
                    libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
                    "call {number}"
                ),
            }
            let arch = OTHERS;
            let answer = run(
                &program,
                Call {
                    number,
                    arch,
                    argument,
                },
            )
            .0;
            assert_eq!(answer, libc::SECCOMP_RET_KILL_PROCESS, "call {number}");
        }
    }
}

/// Linux runs every number through each filter that is loaded.
#[test]
fn a_list_is_short_for_every_number() {
    for rules in rules() {
        let Filter(program) = list(rules).unwrap();
        let argument = u64::MAX;
        let (arch, longest) = (OURS, 60);
        for number in numbers() {
            let steps = run(
                &program,
                Call {
                    number,
                    arch,
                    argument,
                },
            )
            .1;
            assert!(steps <= longest, "{steps} instructions for call {number}");
        }
    }
}
