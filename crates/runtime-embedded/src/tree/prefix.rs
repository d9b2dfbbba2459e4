//! Rewrites the folder that an interpreter was installed to, in text and in programs.
//!
//! In text it becomes `/opt/python`. In a program every string keeps its length and its last
//! part, as the linker lets other strings share the ends of this one (the version, for one, in
//! `…/versions/3.11.7`): `/home/ann/.pyenv/versions/3.11.7` becomes `/opt////////////////////3.11.7`,
//! and a link `/opt/3.11.7` leads to the interpreter.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// Where the interpreter lies in a tree.
pub(crate) const PREFIX: &str = "/opt/python";

const PARENT: &str = "/opt";
const ELF: &[u8] = b"\x7fELF";

/// The folder that an interpreter was installed to, where it is the installation's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    prefix: &'a str,
    parent: &'a str,
    name: &'a str,
}

impl<'a> Origin<'a> {
    /// `None` for folders that say nothing about a machine and whose paths stay true in a tree,
    /// and for those with too little room to be rewritten in a program; the interpreter finds
    /// its folders by landmark all the same.
    pub(crate) fn of(prefix: &'a Path) -> Option<Self> {
        let prefix = prefix.to_str()?;
        let (parent, name) = prefix.rsplit_once('/')?;
        let shared = matches!(prefix, "/usr" | "/usr/local" | PREFIX);
        let taken = matches!(name, "" | "glovebox");
        (!shared && !taken && parent.len() >= PARENT.len()).then_some(Self {
            prefix,
            parent,
            name,
        })
    }

    /// The link that makes rewritten programs find the interpreter's folder: its place in a tree
    /// and its target. `None` where it would be the folder itself.
    pub(crate) fn link(&self) -> Option<(PathBuf, &'static str)> {
        (self.name != "python").then(|| (Path::new("opt").join(self.name), "python"))
    }

    /// The folder on the host behind a search folder of a rewritten program.
    pub(crate) fn on_host(&self, folder: &Path) -> Option<PathBuf> {
        let rest = folder
            .strip_prefix(Path::new(PARENT).join(self.name))
            .ok()?;
        Some(Path::new(self.prefix).join(rest))
    }

    /// Rewrites the folder in one file, if it occurs.
    pub(crate) fn rewrite_file(&self, path: &Path) -> io::Result<()> {
        let mut content = fs::read(path)?;
        let changed = if content.starts_with(ELF) {
            self.rewrite_program(&mut content)
        } else {
            self.rewrite_text(&mut content)
        };
        if changed {
            fs::write(path, content)
        } else {
            Ok(())
        }
    }

    fn rewrite_program(&self, content: &mut [u8]) -> bool {
        let mut changed = false;
        let mut from = 0;
        while let Some(at) = self.find(content, from) {
            let head = &mut content[at..at + self.parent.len()];
            head.fill(b'/');
            head[..PARENT.len()].copy_from_slice(PARENT.as_bytes());
            from = at + self.prefix.len();
            changed = true;
        }
        changed
    }

    fn rewrite_text(&self, content: &mut Vec<u8>) -> bool {
        let mut out = Vec::with_capacity(content.len());
        let mut from = 0;
        while let Some(at) = self.find(content, from) {
            out.extend_from_slice(&content[from..at]);
            out.extend_from_slice(PREFIX.as_bytes());
            from = at + self.prefix.len();
        }
        out.extend_from_slice(&content[from..]);
        let changed = from > 0;
        *content = out;
        changed
    }

    /// The next occurrence that a path component ends with.
    fn find(&self, content: &[u8], from: usize) -> Option<usize> {
        let what = self.prefix.as_bytes();
        let mut at = from;
        loop {
            at += content
                .get(at..)?
                .windows(what.len())
                .position(|window| window == what)?;
            let after = content.get(at + what.len());
            if after.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"._-".contains(byte)) {
                return Some(at);
            }
            at += what.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(prefix: &str) -> Origin<'_> {
        Origin::of(Path::new(prefix)).unwrap()
    }

    #[test]
    fn text_is_rewritten_where_the_folder_ends() {
        let mut text = b"/home/ann/py/lib /home/ann/pypy /home/ann/py".to_vec();
        assert!(origin("/home/ann/py").rewrite_text(&mut text));
        assert_eq!(text, b"/opt/python/lib /home/ann/pypy /opt/python");
    }

    #[test]
    fn a_program_keeps_the_length_and_the_end_of_each_string() {
        let mut program = b"\0/home/ann/3.11.7/lib:/home/ann/3.11.7\0rest".to_vec();
        assert!(origin("/home/ann/3.11.7").rewrite_program(&mut program));
        assert_eq!(program, b"\0/opt//////3.11.7/lib:/opt//////3.11.7\0rest");
    }

    #[test]
    fn a_search_folder_leads_back_to_the_host() {
        let origin = origin("/home/ann/3.11.7");
        assert_eq!(
            origin.on_host(Path::new("/opt//////3.11.7/lib")).unwrap(),
            Path::new("/home/ann/3.11.7/lib")
        );
        assert_eq!(
            origin.link().unwrap(),
            (PathBuf::from("opt/3.11.7"), "python")
        );
    }

    #[test]
    fn shared_and_short_folders_are_left_alone() {
        for prefix in ["/usr", "/usr/local", "/opt/python", "/py", "/"] {
            assert!(Origin::of(Path::new(prefix)).is_none(), "{prefix}");
        }
    }
}
