//! Standard input of the command, as it comes.

use std::io::{IsTerminal as _, Read as _};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Most bytes that are passed on at once.
const CHUNK: usize = 64 * 1024;

/// Chunks that may wait.
const QUEUE: usize = 2;

/// Whether standard input can be passed on. The terminal of a command in the background cannot:
/// reading from it would stop the command.
pub(crate) fn can_be_read() -> bool {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return true;
    }
    let foreground = rustix::termios::tcgetpgrp(&stdin);
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Reads standard input on a thread of its own; the channel ends where the input ends.
///
/// The thread may hang in a read for as long as the command lives. It holds nothing, and ends
/// with the command.
pub(crate) fn chunks() -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut chunk = vec![0; CHUNK];
        loop {
            match stdin.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    let bytes = Bytes::copy_from_slice(&chunk[..count]);
                    if sender.blocking_send(bytes).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A folder as standard input, a terminal that hung up: nothing more comes.
                Err(_) => break,
            }
        }
    });
    receiver
}
