//! What a failed step means for the person who has to do something about it.

use rustix::io::Errno;

use super::child::AGENT;
use super::step::{Failed, Step};
use crate::control::Fault;

/// The fault of a step that failed in the box's first process.
pub(crate) fn explain(failed: Failed) -> Fault {
    let error = Errno::from_raw_os_error(failed.errno);
    let fault = Fault::failed(failed.step.doing(), error);
    match fix(failed.step, error) {
        Some(fix) => fault.with_fix(fix),
        None => fault,
    }
}

fn fix(step: Step, error: Errno) -> Option<String> {
    let text = match (step, error) {
        (Step::Root, Errno::NOENT | Errno::ACCESS) => {
            "the data folder or its trees are missing or cannot be read: set Glovebox up again, or give everyone the right to walk through the data folder"
        }
        (Step::PrivateMounts | Step::Root | Step::Workspace, Errno::PERM | Errno::ACCESS) => {
            "this machine forbids mounts in user namespaces; `glovebox doctor` says what forbids it (on Ubuntu: an AppArmor profile is needed)"
        }
        (
            Step::Root | Step::Workspace | Step::Tmp | Step::Devices | Step::Proc,
            Errno::NOTDIR | Errno::LOOP,
        ) => {
            "a layer of the root has a link or a file where the sandbox has a folder of its own: set Glovebox up again"
        }
        (Step::Counts, _) => {
            "the host's /proc/sys cannot be written, as in containers of an engine; run Glovebox outside of a container"
        }
        (Step::Proc, Errno::PERM) => {
            "the host's /proc is partly covered, as container engines do; run Glovebox outside of a container, or with an uncovered /proc"
        }
        (Step::Execute, Errno::NOENT) => {
            return Some(format!(
                "{} is missing in the layers: set Glovebox up again",
                AGENT.to_string_lossy()
            ));
        }
        (Step::ResourceLimits, Errno::PERM) => {
            "the host allows fewer open files than the sandbox asks for: raise its hard limit (ulimit -Hn)"
        }
        _ => return None,
    };
    Some(text.to_owned())
}
