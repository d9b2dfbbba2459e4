//! The log of a server or a worker, on standard error.
//!
//! Whoever reads it may be slow or gone. What cannot be written is lost and counted, and keeps
//! nothing else from being done.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use glovebox_server::LostLines;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// A log that is written.
pub(crate) struct Log {
    /// Writes what is left when it is dropped.
    _guard: WorkerGuard,
    /// How many lines were lost.
    pub(crate) lost: LostLines,
}

/// Writes lines on, and counts those that cannot be written. To whoever writes to it nothing ever
/// fails: a writer that fails would be tried again with the same line, or not at all any more.
struct Counting<W> {
    inner: W,
    lost: Arc<AtomicU64>,
}

impl<W: Write> Write for Counting<W> {
    /// Takes a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.inner.write_all(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // What could not be written is counted already.
        let _ = self.inner.flush();
        Ok(())
    }
}

/// Begins the log.
pub(crate) fn begin(filter: &str) -> Result<Log, Failure> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::usage(format!("--log `{filter}`: {error}")))?;
    let failed = Arc::new(AtomicU64::new(0));
    let writer = Counting {
        inner: io::stderr(),
        lost: Arc::clone(&failed),
    };
    let (writer, guard) = NonBlockingBuilder::default().lossy(true).finish(writer);
    let too_many = writer.error_counter();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .log_internal_errors(false)
        .with_writer(writer);
    let begun = if io::stderr().is_terminal() {
        log.try_init()
    } else {
        log.with_ansi(false).json().try_init()
    };
    begun.map_err(|error| Failure::machine("beginning the log", error))?;
    let count = move || failed.load(Ordering::Relaxed) + too_many.dropped_lines() as u64;
    Ok(Log {
        _guard: guard,
        lost: LostLines::counted_by(count),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted_once() {
        let lost = Arc::new(AtomicU64::new(0));
        let mut log = Counting {
            inner: Full,
            lost: Arc::clone(&lost),
        };
        for _ in 0..3 {
            log.write_all(b"a line\n").unwrap();
            log.flush().unwrap();
        }
        assert_eq!(lost.load(Ordering::Relaxed), 3);
    }
}
