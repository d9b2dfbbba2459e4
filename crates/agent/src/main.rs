//! The program that runs first in a sandbox. See the library of the same name.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let error = glovebox_agent::boot::run();
    let mut message = format!("glovebox-agent: {error}");
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        message = format!("{message}: {next}");
        cause = next.source();
    }
    // With nowhere to say it there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}
