//! The exec helper's arguments.

use std::ffi::{CString, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt as _;
use std::str::FromStr;

/// The arguments were not as they have to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArguments {
    /// An option that does not exist.
    #[error("unknown option {0:?}")]
    Unknown(String),
    /// An option without its value, or with one that cannot be.
    #[error("option {0} needs another value")]
    Value(&'static str),
    /// An option that has to be there.
    #[error("option {0} is missing")]
    Missing(&'static str),
    /// No program behind `--`.
    #[error("no program is named")]
    NoProgram,
}

/// What the helper is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// User id of the workload.
    pub uid: u32,
    /// Group id of the workload.
    pub gid: u32,
    /// Working folder.
    pub cwd: CString,
    /// Descriptors of control groups to join.
    pub groups: Vec<RawFd>,
    /// Descriptors that one process may hold.
    pub open_files: u64,
    /// Largest file that may be written, in bytes.
    pub file_size: u64,
    /// How readily the kernel kills it when memory runs out.
    pub oom_score_adj: Option<i32>,
    /// The program and its arguments; never empty.
    pub program: Vec<CString>,
}

/// Control groups that can be joined: more hierarchies than there are controllers.
const MOST_GROUPS: usize = 16;

impl Arguments {
    /// Reads them.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, InvalidArguments> {
        let (mut uid, mut gid, mut cwd) = (None, None, None);
        let (mut open_files, mut file_size, mut oom_score_adj) = (None, None, None);
        let mut groups = Vec::new();
        loop {
            let option = arguments.next().ok_or(InvalidArguments::NoProgram)?;
            match option.to_str() {
                Some("--") => break,
                Some("--uid") => uid = Some(id(&mut arguments, "--uid")?),
                Some("--gid") => gid = Some(id(&mut arguments, "--gid")?),
                Some("--cwd") => cwd = Some(text(&mut arguments, "--cwd")?),
                Some("--open-files") => {
                    open_files = Some(number(&mut arguments, "--open-files")?);
                }
                Some("--file-size") => file_size = Some(number(&mut arguments, "--file-size")?),
                Some("--oom-score-adj") => {
                    oom_score_adj = Some(score(&mut arguments)?);
                }
                Some("--cgroup") if groups.len() < MOST_GROUPS => {
                    groups.push(descriptor(&mut arguments)?);
                }
                _ => {
                    return Err(InvalidArguments::Unknown(
                        option.to_string_lossy().into_owned(),
                    ));
                }
            }
        }
        let program: Vec<_> = arguments
            .map(|argument| CString::new(argument.into_vec()))
            .collect::<Result<_, _>>()
            .map_err(|_| InvalidArguments::NoProgram)?;
        if program.first().is_none_or(|name| name.is_empty()) {
            return Err(InvalidArguments::NoProgram);
        }
        Ok(Self {
            uid: uid.ok_or(InvalidArguments::Missing("--uid"))?,
            gid: gid.ok_or(InvalidArguments::Missing("--gid"))?,
            cwd: cwd.ok_or(InvalidArguments::Missing("--cwd"))?,
            groups,
            open_files: open_files.ok_or(InvalidArguments::Missing("--open-files"))?,
            file_size: file_size.ok_or(InvalidArguments::Missing("--file-size"))?,
            oom_score_adj,
            program,
        })
    }
}

fn text(
    arguments: &mut impl Iterator<Item = OsString>,
    option: &'static str,
) -> Result<CString, InvalidArguments> {
    arguments
        .next()
        .and_then(|value| CString::new(value.into_vec()).ok())
        .ok_or(InvalidArguments::Value(option))
}

fn number<T: FromStr>(
    arguments: &mut impl Iterator<Item = OsString>,
    option: &'static str,
) -> Result<T, InvalidArguments> {
    arguments
        .next()
        .and_then(|value| value.to_str()?.parse().ok())
        .ok_or(InvalidArguments::Value(option))
}

/// Id 0 is nobody in a box, and the last id of all means "leave as it is" to the kernel.
fn id(
    arguments: &mut impl Iterator<Item = OsString>,
    option: &'static str,
) -> Result<u32, InvalidArguments> {
    number(arguments, option).and_then(|id| {
        if id == 0 || id == u32::MAX {
            Err(InvalidArguments::Value(option))
        } else {
            Ok(id)
        }
    })
}

/// The standard descriptors are the workload's own.
fn descriptor(arguments: &mut impl Iterator<Item = OsString>) -> Result<RawFd, InvalidArguments> {
    number(arguments, "--cgroup").and_then(|fd| {
        if fd > 2 {
            Ok(fd)
        } else {
            Err(InvalidArguments::Value("--cgroup"))
        }
    })
}

fn score(arguments: &mut impl Iterator<Item = OsString>) -> Result<i32, InvalidArguments> {
    number(arguments, "--oom-score-adj").and_then(|score| {
        if (-1000..=1000).contains(&score) {
            Ok(score)
        } else {
            Err(InvalidArguments::Value("--oom-score-adj"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments, InvalidArguments> {
        Arguments::parse(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn everything_that_was_agreed_is_understood() {
        let arguments = parse(
            "--uid 1000 --gid 1000 --cwd /workspace --cgroup 5 --cgroup 6 --open-files 1024 \
             --file-size 99 --oom-score-adj 500 -- python3 -c --uid",
        )
        .unwrap();
        assert_eq!((arguments.uid, arguments.gid), (1000, 1000));
        assert_eq!(arguments.groups, [5, 6]);
        assert_eq!(arguments.oom_score_adj, Some(500));
        assert_eq!(
            arguments.program,
            [c"python3".to_owned(), c"-c".to_owned(), c"--uid".to_owned()]
        );
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let good = "--uid 1000 --gid 1000 --cwd / --open-files 10 --file-size 10";
        for (text, error) in [
            (format!("{good} --"), InvalidArguments::NoProgram),
            (good.to_owned(), InvalidArguments::NoProgram),
            ("-- true".to_owned(), InvalidArguments::Missing("--uid")),
            (
                "--uid 0 -- true".to_owned(),
                InvalidArguments::Value("--uid"),
            ),
            (
                "--uid 4294967295 -- true".to_owned(),
                InvalidArguments::Value("--uid"),
            ),
            (
                "--cgroup 2 -- true".to_owned(),
                InvalidArguments::Value("--cgroup"),
            ),
            (
                "--oom-score-adj 1001 -- true".to_owned(),
                InvalidArguments::Value("--oom-score-adj"),
            ),
            (
                "--what".to_owned(),
                InvalidArguments::Unknown("--what".into()),
            ),
        ] {
            assert_eq!(parse(&text), Err(error), "{text}");
        }
    }
}
