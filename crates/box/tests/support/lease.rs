//! Keeping a program from being started, for as long as a test wants: whoever opens a file on which
//! somebody has a lease waits.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Holds the lease: takes it, says so, and lets go when its standard input closes. The kernel
/// tells it by a signal that somebody waits.
const HOLDER: &str = "import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()";

/// A lease on a file.
pub(crate) struct Lease(Child);

impl Lease {
    /// Takes it. The file may not be open.
    pub(crate) fn take(path: &Path) -> Self {
        let mut holder = Command::new("/usr/bin/python3")
            .args(["-I", "-c", HOLDER])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(holder.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(holder)
    }

    /// Lets everybody go on who waits.
    pub(crate) fn let_go(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
