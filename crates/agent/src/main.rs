//! The program that runs first in a sandbox. See the library of the same name.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let word = std::env::args_os().nth(1);
    let error = match word.as_ref().and_then(|word| word.to_str()) {
        Some("--version") => return say_version(),
        Some("--stdio") => glovebox_agent::stdio::run(),
        _ => glovebox_agent::boot::run(),
    };
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

/// What an image has to say of the agent in it.
fn say_version() -> ExitCode {
    let line = format!(
        "glovebox-agent {} protocol {}",
        env!("CARGO_PKG_VERSION"),
        glovebox_protocol::PROTOCOL_VERSION
    );
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
