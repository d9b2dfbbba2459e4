//! What an agent says on its standard error, passed on to whoever keeps ours.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::events::Watched;
use super::outer::say;

/// How much of it is passed on, in bytes.
const BUDGET: usize = 64 * 1024;

/// The words of one agent.
#[derive(Debug)]
pub(super) struct Words {
    pipe: Pipe,
    left: usize,
}

#[derive(Debug)]
enum Pipe {
    Heard(Watched<OwnedFd>),
    /// Open, so that the agent's writing is no error, but not read any more: an agent that says
    /// too much is not to keep us busy.
    Ignored {
        _held: OwnedFd,
    },
    Closed,
}

impl Words {
    pub(super) const fn new(pipe: Watched<OwnedFd>) -> Self {
        Self {
            pipe: Pipe::Heard(pipe),
            left: BUDGET,
        }
    }

    /// Passes on what has been said, up to the budget.
    pub(super) fn pass_on(&mut self, who: impl std::fmt::Display) {
        let mut chunk = [0; 4096];
        while let Pipe::Heard(pipe) = &self.pipe {
            match rustix::io::read(pipe.get(), &mut chunk) {
                Ok(0) => self.pipe = Pipe::Closed,
                Ok(count) => {
                    let kept = count.min(self.left);
                    self.left -= kept;
                    say(format_args!(
                        "agent of {who}: {}",
                        printable(&chunk[..kept])
                    ));
                    if self.left == 0 {
                        self.pipe = fcntl_dupfd_cloexec(pipe.get(), 0)
                            .map_or(Pipe::Closed, |held| Pipe::Ignored { _held: held });
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.pipe = Pipe::Closed,
            }
        }
    }
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end()
        .escape_debug()
        .collect()
}
