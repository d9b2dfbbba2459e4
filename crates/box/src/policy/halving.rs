//! Finding a call's rules by halving.
//!
//! A filter that compares a call's number with one after the other costs most while it is loaded:
//! Linux then runs every number that there is through it, to learn which calls are always allowed.
//! So the rules are cut into parts of a few numbers each, every part is a filter by itself, which
//! looks at the processor and refuses what it does not know, and before them stand comparisons
//! that lead each number to one part. A number that were led astray would be refused.

use seccompiler::{BpfProgram, sock_filter};

/// The calls of one part. More make a shorter filter with longer ways through it.
pub(super) const CALLS_IN_PART: usize = 8;

/// Loads a call's number, with which everything that the kernel tells of it begins.
const LOAD_NUMBER: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IS_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const GO_ON: u32 = libc::BPF_JMP | libc::BPF_JA;

/// A filter of some calls.
#[derive(Debug)]
pub(super) struct Part {
    /// The lowest number that it has rules for.
    pub(super) first: u32,
    pub(super) program: BpfProgram,
}

/// Makes one filter of parts that are in the order of their numbers.
pub(super) fn joined(parts: &[Part]) -> BpfProgram {
    let mut program = vec![instruction(LOAD_NUMBER, 0, 0)];
    program.extend(halved(parts));
    program
}

fn halved(parts: &[Part]) -> BpfProgram {
    match parts {
        [] => Vec::new(),
        [part] => part.program.clone(),
        _ => {
            let (lower, upper) = parts.split_at(parts.len() / 2);
            let (first, lower, upper) = (upper[0].first, halved(lower), halved(upper));
            // A comparison jumps at most 255 instructions far, so a jump without one follows it.
            let beyond_lower = u32::try_from(lower.len()).unwrap_or(u32::MAX);
            let mut program = vec![
                instruction(IS_AT_LEAST, first, 1),
                instruction(GO_ON, beyond_lower, 0),
            ];
            program.extend(lower);
            program.extend(upper);
            program
        }
    }
}

/// `or_else` is how many instructions are passed over when a comparison does not hold.
fn instruction(code: u32, operand: u32, or_else: u8) -> sock_filter {
    sock_filter {
        // All of them are numbers of one byte.
        code: u16::try_from(code).unwrap_or(u16::MAX),
        jt: 0,
        jf: or_else,
        k: operand,
    }
}
