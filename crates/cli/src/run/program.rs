//! What is to be run: a script, code, or a notebook.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use glovebox_protocol::process::Argument;

use super::inputs::Inputs;
use crate::arguments::RunArguments;
use crate::failure::{Failure, shown, unreadable};
use crate::notebook::Notebook;

/// What is to be run.
#[derive(Debug)]
pub(crate) enum Program {
    /// A process.
    Process(ProcessPlan),
    /// A notebook, cell by cell in a kernel.
    Notebook {
        /// What it holds.
        notebook: Box<Notebook>,
        /// Where it was.
        path: PathBuf,
    },
}

/// How a process is started.
#[derive(Debug)]
pub(crate) struct ProcessPlan {
    /// Program and arguments.
    pub(crate) argv: Vec<Argument>,
    /// What people call it.
    pub(crate) called: String,
}

impl Program {
    /// What people call it.
    pub(crate) fn called(&self) -> String {
        match self {
            Self::Process(plan) => plan.called.clone(),
            Self::Notebook { path, .. } => {
                shown(path.file_name().map_or(path.as_path(), Path::new))
            }
        }
    }
}

/// Reads from the command line what is to be run and which files go in, and looks at them all.
pub(crate) fn plan(arguments: &RunArguments) -> Result<(Program, Inputs), Failure> {
    let mut inputs = Inputs::default();
    let mut named = arguments.program_and_files.iter();
    let program = match &arguments.code {
        Some(code) => process(&["-c".into(), code.clone()], &arguments.args, "the code"),
        None => match named.next() {
            Some(dash) if dash == "-" => process(&["-".into()], &arguments.args, "the script"),
            Some(path) => from_file(Path::new(path), arguments, &mut inputs)?,
            None => return Err(Failure::usage("there is nothing to run")),
        },
    };
    for path in named {
        inputs.add(Path::new(path))?;
    }
    Ok((program, inputs))
}

fn from_file(
    path: &Path,
    arguments: &RunArguments,
    inputs: &mut Inputs,
) -> Result<Program, Failure> {
    let metadata = fs_err::metadata(path).map_err(|error| unreadable(path, &error))?;
    if metadata.is_dir() {
        return Err(Failure::Input {
            problem: format!("cannot run {}: it is a folder", shown(path)),
            fix: Some("name the script first, then the files and folders it works on".into()),
            cause: None,
        });
    }
    if is_notebook(path) {
        if !arguments.args.is_empty() {
            return Err(Failure::usage("a notebook takes no arguments after `--`"));
        }
        let notebook = Box::new(Notebook::open(path)?);
        return Ok(Program::Notebook {
            notebook,
            path: path.to_owned(),
        });
    }
    inputs.add(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_owned();
    // `python -x.py` would be an option; Python itself is started with such a name as `./-x.py`.
    let argument = if name.as_encoded_bytes().starts_with(b"-") {
        let mut argument = OsString::from("./");
        argument.push(&name);
        argument
    } else {
        name.clone()
    };
    Ok(process(&[argument], &arguments.args, &shown(&name)))
}

fn process(what: &[OsString], args: &[OsString], called: &str) -> Program {
    let argv = std::iter::once(Argument::from("python3"))
        .chain(
            what.iter()
                .chain(args)
                .map(|text| Argument::from(text.as_os_str())),
        )
        .collect();
    Program::Process(ProcessPlan {
        argv,
        called: called.into(),
    })
}

fn is_notebook(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("ipynb"))
}
