//! The gateway's program: everything is in the library.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let result = match (arguments.next(), arguments.next()) {
        (None, _) => glovebox_gateway::program::run(),
        (Some(word), None) if word == "fingerprint" => {
            glovebox_gateway::program::fingerprint().map(|fingerprint| {
                // A closed output is told by the exit of whoever closed it.
                let _ = writeln!(std::io::stdout().lock(), "{fingerprint}");
            })
        }
        _ => {
            say(
                "usage: glovebox-gateway [fingerprint]\nEverything else is in the environment; see docs/deployment/sandbox-gateway.md",
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(next) = cause {
                text = format!("{text}: {next}");
                cause = next.source();
            }
            say(&text);
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) {
    // There is nowhere to tell that nothing can be told.
    let _ = writeln!(std::io::stderr().lock(), "glovebox-gateway: {text}");
}
