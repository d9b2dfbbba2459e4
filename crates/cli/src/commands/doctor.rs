//! `glovebox doctor`

use std::io::Write as _;
use std::process::{Command, ExitCode};

use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_box::prepare;
use glovebox_box::probe::{self, Check, Status};
use glovebox_protocol::error::ErrorCode;
use glovebox_runtime_embedded::tree::{Office, office_of_this_machine};
use serde::Serialize;

use crate::arguments::DoctorArguments;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::installation::Installation;

/// What is printed for programs.
#[derive(Serialize)]
struct Report<'a> {
    /// Whether sandboxes can be made without accepting anything.
    can_make_sandboxes: bool,
    checks: &'a [Check],
}

/// Says what this machine can isolate; with `--fix`, prepares it first.
pub(crate) fn run(
    arguments: &DoctorArguments,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    if arguments.fix {
        fix(arguments, environment)?;
    }
    let installation = Installation::find()?;
    let data = environment.data_folder(arguments.data.as_deref())?;
    let data = data.is_dir().then_some(data.as_path());
    let mut checks = probe::run(&installation.launcher, data, DEFAULT_ROOT_RANGE_START)
        .map_err(|error| Failure::machine("looking at this machine", error))?;
    checks.push(office(environment));
    let can_make_sandboxes = checks.iter().all(|check| check.status != Status::Fail);
    let text = if arguments.json {
        let report = Report {
            can_make_sandboxes,
            checks: &checks,
        };
        serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::machine("writing the report", error))?
            + "\n"
    } else {
        for_person(&checks, can_make_sandboxes)
    };
    say(&text)?;
    Ok(if can_make_sandboxes {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether previews of documents can be made of what this machine has.
fn office(environment: &Environment) -> Check {
    let search: Vec<_> = std::env::split_paths(&environment.path).collect();
    let (status, message, fix) = match office_of_this_machine(&search) {
        Office::Present => {
            let message = "there are LibreOffice and poppler, for previews of documents";
            (Status::Pass, message.into(), None)
        }
        Office::Absent { why, fix } => {
            let message = format!("{why}; decks and letters are shown as their text");
            (Status::Warn, message, Some(fix))
        }
    };
    Check {
        id: "office".into(),
        status,
        message,
        fix,
        weakness: None,
    }
}

fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let said = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    said.map_err(|_| Failure::OutputGone)
}

fn for_person(checks: &[Check], can_make_sandboxes: bool) -> String {
    let mut lines = Vec::new();
    for check in checks {
        let word = match check.status {
            Status::Pass => "pass",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        lines.push(format!(
            "{word}  {}: {}",
            check.id,
            indented(&check.message)
        ));
        if let Some(fix) = &check.fix {
            lines.push(format!("      fix: {}", indented(fix)));
        }
        if let (Status::Fail, Some(weakness)) = (check.status, check.weakness) {
            lines.push(format!(
                "      or go without it (then {}): --accept-weaker={weakness}",
                weakness.what_is_lost()
            ));
        }
    }
    lines.push(String::new());
    lines.push(if can_make_sandboxes {
        "Sandboxes can be made here.".into()
    } else {
        "Sandboxes cannot be made here until what failed is fixed or accepted by name.".into()
    });
    lines.push(String::new());
    lines.join("\n")
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n      ")
}

/// Prepares the machine for a user, and says each step before it is taken.
fn fix(arguments: &DoctorArguments, environment: &Environment) -> Result<(), Failure> {
    if environment.user_id != 0 {
        return Err(refused(
            "preparing this machine needs root",
            "run `sudo glovebox doctor --fix`",
        ));
    }
    let user = arguments.user.as_ref().or(environment.sudo_user.as_ref()).ok_or_else(|| {
        refused(
            "it is not known for whom to prepare this machine; root's own sandboxes need nothing",
            "name the user: `glovebox doctor --fix --user NAME`",
        )
    })?;
    let (uid, gid) = (id_of("-u", user)?, id_of("-g", user)?);
    let steps = prepare::plan(uid, gid)
        .map_err(|error| Failure::machine(format!("preparing this machine for {user}"), error))?;
    // With `--json`, standard output holds the document and nothing else.
    let tell = |line: String| {
        if arguments.json {
            std::io::stderr()
                .write_all(line.as_bytes())
                .map_err(|_| Failure::OutputGone)
        } else {
            say(&line)
        }
    };
    for (number, step) in (1..).zip(&steps) {
        tell(format!(
            "step {number} of {}: {}\n",
            steps.len(),
            indented(&step.describe())
        ))?;
        step.take().map_err(|error| {
            Failure::machine(format!("preparing this machine for {user}"), error)
        })?;
    }
    tell(format!(
        "This machine is prepared for {user}; `glovebox doctor`, called by {user}, says how it stands.\n\
         What follows is how it stands for root.\n\n"
    ))
}

fn refused(doing: &str, fix: &str) -> Failure {
    Failure::Machine {
        doing: doing.into(),
        fix: Some(fix.into()),
        code: ErrorCode::CapabilityMissing,
        cause: None,
    }
}

/// The number of a user or of its group, as the system's own program says it: users may live in
/// a directory service.
fn id_of(which: &str, user: &str) -> Result<u32, Failure> {
    let doing = || format!("looking up the user {user}");
    let output = Command::new("id")
        .args([which, "--", user])
        .output()
        .map_err(|error| Failure::machine(doing(), error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::machine(doing(), said));
    }
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .map_err(|error| Failure::machine(doing(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_box::weakness::Weakness;

    #[test]
    fn each_line_says_how_it_stands_and_what_to_do() {
        let check = |id: &str, status, message: &str| Check {
            id: id.into(),
            status,
            message: message.into(),
            fix: None,
            weakness: None,
        };
        let checks = [
            check("user-namespaces", Status::Pass, "they can be made"),
            Check {
                fix: Some("add `ada:100000:65536` to /etc/subuid".into()),
                ..check("ids", Status::Warn, "there is no range")
            },
            Check {
                fix: Some("run `sudo glovebox doctor --fix`".into()),
                weakness: Some(Weakness::MemoryLimit),
                ..check("memory", Status::Fail, "no group\nfor ada")
            },
        ];
        insta::assert_snapshot!(for_person(&checks, false), @r"
        pass  user-namespaces: they can be made
        warn  ids: there is no range
              fix: add `ada:100000:65536` to /etc/subuid
        fail  memory: no group
              for ada
              fix: run `sudo glovebox doctor --fix`
              or go without it (then one sandbox can use up the machine's memory): --accept-weaker=memory-limit

        Sandboxes cannot be made here until what failed is fixed or accepted by name.
        ");
    }
}
