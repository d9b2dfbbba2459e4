//! The command line: what can be asked for, and the words of `--help`.

mod gateway;
mod server;

pub(crate) use gateway::{
    AskArguments, CanaryArguments, CredentialArguments, CredentialCommand, GatewayArguments,
    GatewayCommand, KeyArguments, KeyCommand, KnownArguments, ThroughArguments,
};

pub(crate) use server::{
    AdminArguments, AdminCommand, AdminCommon, ApiKeyCommand, BackupArguments, MachineRuntimeName,
    PlaceArguments, RestoreArguments, ServeArguments, WorkerArguments,
};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use glovebox_box::weakness::Weakness;
use glovebox_protocol::class::ResourceClass;

use crate::quantity::{parse_size, parse_time};

/// Runs Python on your files in a sealed sandbox and gives you the files that it made.
#[derive(Debug, Parser)]
#[command(name = "glovebox", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `glovebox` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a script or a notebook on files, and collect what it saves
    Run(Box<RunArguments>),
    /// Run a server: API, console and sandboxes on this machine
    Serve(Box<ServeArguments>),
    /// Work on the queues of a server, in a process of its own
    Worker(WorkerArguments),
    /// Bring the tables of a server's database to this version
    Migrate(PlaceArguments),
    /// Put a server's data into one file
    Backup(BackupArguments),
    /// Fill an empty database and the folder of files from a backup
    Restore(RestoreArguments),
    /// Look after a server's data from its machine
    Admin(AdminArguments),
    /// Build the tree that sandboxes stand on, or check the one that is there
    Setup(SetupArguments),
    /// Say what this machine can isolate, and how to fix what it cannot
    Doctor(DoctorArguments),
    /// Run a gateway on this machine, or ask one
    Gateway(GatewayArguments),
    /// Make a key that signs requests to sandboxes, or show its public half
    Key(KeyArguments),
    /// Make a credential that a gateway accepts
    Credential(CredentialArguments),
    /// Print the version of this program and of its protocol
    Version,
}

impl Command {
    /// Its name on the command line.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Serve(_) => "serve",
            Self::Worker(_) => "worker",
            Self::Migrate(_) => "migrate",
            Self::Backup(_) => "backup",
            Self::Restore(_) => "restore",
            Self::Admin(_) => "admin",
            Self::Setup(_) => "setup",
            Self::Doctor(_) => "doctor",
            Self::Gateway(_) => "gateway",
            Self::Key(_) => "key",
            Self::Credential(_) => "credential",
            Self::Version => "version",
        }
    }
}

const RUN_USAGE: &str = "\
glovebox run [OPTIONS] SCRIPT [FILES]... [-- ARGS]...
       glovebox run [OPTIONS] NOTEBOOK.ipynb [FILES]...
       glovebox run [OPTIONS] - [FILES]... [-- ARGS]...
       glovebox run [OPTIONS] -c CODE [FILES]... [-- ARGS]...";

const RUN_DETAILS: &str = "\
The sandbox has no network and sees nothing of this machine but the files that you name. They
lie in the folder in which the code runs, under their base names; of a folder everything below
it goes in, links excepted. At most 25 MiB a file and 256 MiB together. A name that begins with
a dash is written ./-name.

What the code saves there is copied to --out when it has ended: pptx, xlsx, docx, pdf, csv, tsv,
json, txt, md, html and pictures, at most 25 files and 100 MiB. A file that is already in --out
is never overwritten: report.xlsx becomes report-2.xlsx, unless both are the same.

A notebook runs cell by cell and stops at the first error; the notebook with its outputs is
among the results. Its --timeout is for all cells together.

Exit status: the program's own; 124 after the time limit; 137 killed, for example because memory
ran out; 128 + N ended by signal N; 2 when the command line is wrong; 125 when Glovebox itself
could not do it, or an input is no good. Ctrl-C interrupts the program, a second one kills it.

Examples:
  glovebox run examples/penguins/report.py examples/penguins/penguins.csv --out results/
  glovebox run analysis.ipynb sales.xlsx
  glovebox run -c 'import pandas as pd; print(pd.read_csv(\"a.csv\").describe())' a.csv
  glovebox run report.py a.csv --gateway https://gw:9443 --pin FINGERPRINT \\
      --credential-file credential --signing-key key";

/// What `glovebox run` takes.
#[derive(Debug, Args)]
#[command(override_usage = RUN_USAGE, after_help = RUN_DETAILS)]
pub(crate) struct RunArguments {
    /// The script or notebook (or `-` for a script on standard input), then the files it works on
    #[arg(value_name = "SCRIPT|NOTEBOOK|-", required_unless_present = "code")]
    pub(crate) program_and_files: Vec<OsString>,

    /// Arguments of the script
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,

    /// Run this code instead of a script
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<OsString>,

    /// Where the results go; made when there is a first one
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,

    /// How long the program may run, such as 30s, 5m or 2h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    pub(crate) timeout: Duration,

    /// SMALL (1 CPU, 1 GiB), MEDIUM (2 CPUs, 2 GiB) or LARGE (4 CPUs, 4 GiB)
    #[arg(long, value_name = "CLASS", default_value = "SMALL")]
    pub(crate) class: ResourceClass,

    /// Memory for the code, such as 3G, instead of the class's
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,

    /// Room for files; the default is 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) disk: Option<u64>,

    /// Set an environment variable for the code; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,

    /// Print events, one JSON document a line, instead of the program's output
    #[arg(long)]
    pub(crate) json: bool,

    /// Print nothing but the program's output and what went wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Go without this protection where the machine cannot give it (`glovebox doctor` names
    /// them); may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) accept_weaker: Vec<Weakness>,

    /// The data folder, instead of the usual one
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Where to run it instead of on this machine
    #[command(flatten)]
    pub(crate) through: ThroughArguments,
}

/// What `glovebox setup` takes.
#[derive(Debug, Args)]
pub(crate) struct SetupArguments {
    /// The data folder, instead of the usual one
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Print nothing but what went wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What `glovebox doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 when sandboxes can be made here, 1 otherwise.")]
pub(crate) struct DoctorArguments {
    /// Print one JSON document instead of lines
    #[arg(long)]
    pub(crate) json: bool,

    /// Prepare this machine for a user's sandboxes (needs root); says each step before it does it
    #[arg(long)]
    pub(crate) fix: bool,

    /// For whom to prepare it; the default is whoever called sudo
    #[arg(long, value_name = "NAME", requires = "fix")]
    pub(crate) user: Option<String>,

    /// The data folder, instead of the usual one
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Reads `NAME=VALUE`. Which names may be set is the agent's to say; this refuses only what is
/// no name at all.
fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` has no `=`; write it as NAME=VALUE"))?;
    let is_name = name.bytes().enumerate().all(|(place, byte)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (place > 0 && byte.is_ascii_digit())
    });
    if name.is_empty() || !is_name {
        return Err(format!("`{name}` is no name of a variable"));
    }
    Ok((name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_dash_is_a_script_and_what_follows_two_dashes_are_arguments() {
        let arguments = Arguments::try_parse_from([
            "glovebox", "run", "-", "a.csv", "--out", "o", "--", "-x", "--", "y",
        ])
        .unwrap();
        let Command::Run(run) = arguments.command else {
            panic!("not a run");
        };
        assert_eq!(run.program_and_files, ["-", "a.csv"]);
        assert_eq!(run.args, ["-x", "--", "y"]);
    }

    #[test]
    fn code_takes_the_place_of_the_script() {
        let arguments =
            Arguments::try_parse_from(["glovebox", "run", "-c", "-1", "a.csv"]).unwrap();
        let Command::Run(run) = arguments.command else {
            panic!("not a run");
        };
        assert_eq!(run.code.unwrap(), "-1");
        assert_eq!(run.program_and_files, ["a.csv"]);
    }

    #[test]
    fn variables_need_a_name() {
        assert_eq!(parse_variable("A=b=c").unwrap(), ("A".into(), "b=c".into()));
        for bad in ["A", "=b", "1A=b", "A B=c", "Ä=b"] {
            assert!(parse_variable(bad).is_err(), "`{bad}` was accepted");
        }
    }
}
