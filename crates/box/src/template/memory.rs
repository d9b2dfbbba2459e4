//! What a template does with its memory before it is copied.

use crate::sys::huge_pages::{HUGE_PAGE, gather};

/// Gathers the memory that Python has filled into huge pages, as far as the kernel can: most of
/// the time that a copy takes goes into page tables, and this spares the half of it. A copy's own
/// memory is unaffected: what it writes to is copied by small pages.
pub(super) fn gather_into_huge_pages() {
    let Ok(maps) = fs_err::read_to_string("/proc/self/maps") else {
        return;
    };
    for start in maps.lines().filter_map(filled).flat_map(huge_pages) {
        // Where it cannot be done, copies take as long as they would have taken.
        let _ = gather(start);
    }
}

/// The ends of a mapping with memory of the process's own: the heap, and what has no name.
fn filled(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_own = fields.next() == Some("rw-p") && matches!(fields.nth(3), None | Some("[heap]"));
    let number = |text| usize::from_str_radix(text, 16).ok();
    is_own.then_some((number(start)?, number(end)?))
}

/// The huge pages that lie in a mapping as a whole.
fn huge_pages((start, end): (usize, usize)) -> impl Iterator<Item = usize> {
    let first = start.next_multiple_of(HUGE_PAGE);
    (first..end)
        .step_by(HUGE_PAGE)
        .filter(move |page| end - page >= HUGE_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_the_process_itself_is_gathered() {
        for (line, is_own) in [
            ("00400000-00a00000 rw-p 00000000 00:00 0 ", true),
            ("00400000-00a00000 rw-p 00000000 00:00 0    [heap]", true),
            ("00400000-00a00000 rw-p 00000000 00:00 0    [stack]", false),
            ("00400000-00a00000 r--p 00000000 00:00 0 ", false),
            ("00400000-00a00000 rw-s 00000000 00:05 12 /dev/zero", false),
            ("00400000-00a00000 rw-p 00001000 08:01 12 /lib/x.so", false),
            ("nonsense", false),
        ] {
            let ends = filled(line);
            assert_eq!(ends, is_own.then_some((0x40_0000, 0xa0_0000)), "{line}");
        }
    }

    #[test]
    fn huge_pages_lie_within_a_mapping() {
        let pages = |start, end| huge_pages((start, end)).collect::<Vec<_>>();
        assert_eq!(pages(0x40_0000, 0x80_0000), [0x40_0000, 0x60_0000]);
        assert_eq!(pages(0x40_1000, 0x80_0000), [0x60_0000]);
        assert_eq!(pages(0x40_1000, 0x7f_f000), Vec::<usize>::new());
    }
}
