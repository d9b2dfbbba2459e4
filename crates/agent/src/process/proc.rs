//! Which processes there are, as `/proc` shows them to the agent: its mount names the agent's
//! group as one that may see them all.

use rustix::process::Pid;

/// Processes that are looked at before others get their turn.
const PROCESSES_A_TURN: usize = 64;

/// One process of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pid: Pid,
    pub(crate) group: i32,
    pub(crate) session: i32,
}

/// Every process but zombies and the agent, as the agent's own ids see them: where it shares its
/// group with the workload only those that it may trace, and so none that was copied from a
/// template, which is under other Landlock rules.
///
/// Read on the event loop, because a thread may not be had when a sandbox is full of processes; a
/// few at a time, because they may be many.
pub(crate) async fn processes() -> Vec<Seen> {
    let mut all = Vec::new();
    for pids in numbers().chunks(PROCESSES_A_TURN) {
        all.extend(pids.iter().filter_map(|pid| look_at(*pid)));
        tokio::task::yield_now().await;
    }
    all
}

fn numbers() -> Vec<Pid> {
    let Ok(folders) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    let own = rustix::process::getpid();
    folders
        .filter_map(|folder| {
            let name = folder.ok()?.file_name();
            Pid::from_raw(name.to_str()?.parse().ok()?)
        })
        .filter(|pid| *pid != own)
        .collect()
}

/// One that has ended in the meantime is not there.
fn look_at(pid: Pid) -> Option<Seen> {
    let stat = fs_err::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &stat)
}

/// Reads `pid (name) state parent group session …`; the name may hold anything, brackets too.
fn parse(pid: Pid, stat: &[u8]) -> Option<Seen> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let mut numbers = fields.map(str::parse);
    let _parent = numbers.next()?.ok()?;
    Some(Seen {
        pid,
        group: numbers.next()?.ok()?,
        session: numbers.next()?.ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_does_not_confuse() {
        let pid = Pid::from_raw(7).unwrap();
        let seen = parse(pid, b"7 (a) Z 1 1 1) S 1 5 6 0 -1").unwrap();
        assert_eq!((seen.group, seen.session), (5, 6));
        assert_eq!(parse(pid, b"7 (dead) Z 1 5 6"), None);
        assert_eq!(parse(pid, b"7 (\xff"), None);
    }

    #[tokio::test]
    async fn the_own_process_is_not_counted_and_others_are() {
        let own = rustix::process::getpid();
        let seen = processes().await;
        assert!(seen.iter().all(|seen| seen.pid != own) && !seen.is_empty());
    }
}
