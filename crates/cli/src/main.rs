//! The `glovebox` command: reads what is asked for, does it, says how it went.
//!
//! Each command has one file in `commands`. The work itself is that of the libraries: this crate
//! parses, prints and maps failures to exit statuses.

mod arguments;
mod commands;
mod environment;
mod failure;
mod installation;
mod log;
mod notebook;
mod output;
mod progress;
mod quantity;
mod run;
mod scope;
mod secret;
mod settings;
mod signals;
mod through;
mod words;

use std::io::Write as _;
use std::process::ExitCode;

use arguments::Command;
use environment::Environment;
use failure::Failure;
use scope::Lack;
use settings::Refused;

/// A server works on many threads for months. The C library's allocator keeps what each of them has freed
/// for itself: after an hour of use that was more than all that was in use.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match settings::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(Refused::File(failure)) => return said(&failure),
        Err(Refused::CommandLine(error)) => {
            // Help goes to standard output, mistakes to standard error; neither has to be read.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let environment = Environment::read();
    // Before anything else is begun: it may start this program anew.
    let scope = if makes_sandboxes(&arguments.command) {
        scope::enter(&environment)
    } else {
        Ok(())
    };
    // A gateway has an event loop of its own.
    if let Command::Gateway(arguments) = &arguments.command
        && let Some(done) = commands::gateway::here(arguments)
    {
        return done.map_or_else(
            |failure| said(&failure.of("gateway")),
            |()| ExitCode::SUCCESS,
        );
    }
    let mut builder = match &arguments.command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return said(&Failure::machine("starting", error)),
    };
    let status = runtime.block_on(perform(arguments.command, &environment, scope));
    // A set-up that was stopped may still be at work on a thread; it ends with the process.
    runtime.shutdown_background();
    status
}

/// Whether it makes boxes, for trial ones too.
const fn makes_sandboxes(command: &Command) -> bool {
    match command {
        Command::Run(arguments) => arguments.through.gateway.is_none(),
        Command::Doctor(arguments) => !arguments.fix,
        Command::Serve(_) => true,
        Command::Gateway(_)
        | Command::Worker(_)
        | Command::Migrate(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Admin(_)
        | Command::Setup(_)
        | Command::Key(_)
        | Command::Credential(_)
        | Command::Version => false,
    }
}

async fn perform(command: Command, environment: &Environment, scope: Result<(), Lack>) -> ExitCode {
    let name = command.name();
    let done = match command {
        Command::Run(arguments) => {
            return ExitCode::from(commands::run::run(&arguments, environment, scope).await);
        }
        Command::Serve(arguments) => match scope.err().and_then(|lack| lack.refusal(&[])) {
            Some(refusal) => Err(refusal),
            None => commands::serve::serve(&arguments, environment).await,
        },
        Command::Worker(arguments) => commands::serve::work(&arguments, environment).await,
        Command::Migrate(place) => commands::serve::migrate(&place, environment).await,
        Command::Backup(arguments) => commands::backup::back_up(&arguments, environment).await,
        Command::Restore(arguments) => commands::backup::restore(&arguments, environment).await,
        Command::Admin(arguments) => commands::admin::run(&arguments, environment).await,
        Command::Setup(arguments) => commands::setup::run(&arguments, environment).await,
        Command::Doctor(arguments) => {
            // Its checks tell what fails without one; this tells why there is none.
            if let Some(refusal) = scope.err().and_then(|lack| lack.refusal(&[])) {
                said(&refusal);
            }
            return match commands::doctor::run(&arguments, environment) {
                Ok(status) => status,
                Err(failure) => said(&failure),
            };
        }
        Command::Gateway(arguments) => {
            let asked = commands::gateway::ask(&arguments).await;
            return asked.unwrap_or_else(|failure| said(&failure.of(name)));
        }
        Command::Key(arguments) => commands::keys::key(&arguments),
        Command::Credential(arguments) => commands::keys::credential(&arguments),
        Command::Version => commands::version::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => said(&failure.of(name)),
    }
}

/// Says why the command failed, and with which status it ends.
fn said(failure: &Failure) -> ExitCode {
    // Nobody has to read it.
    let _ = std::io::stderr().write_all(failure.for_person().as_bytes());
    ExitCode::from(failure.exit_status())
}
