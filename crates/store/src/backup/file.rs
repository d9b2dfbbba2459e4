//! The file of a backup: lines of JSON, and between them the bytes of objects.
//!
//! The first line says what it is. Then come the objects, each a line and its bytes; then the
//! tables, each a line with its columns and one line for each row; then the last line, with the
//! SHA-256 of everything before it. So a file that was cut or altered is known for one, and
//! nothing in it is used as a path.

use std::io::{BufRead, Read as _, Write};

use chrono::{DateTime, Utc};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::BackupError;
use super::object::{self, BackedUpFile, FileKind, Form};
use crate::token::hex;

/// The number of the format. Another one when what is written below changes.
const FORMAT: u32 = 1;

/// Longest first line, in bytes: what is no backup need not have lines.
const MAX_HEADER: u64 = 4096;

/// Longest line, in bytes. The largest row holds a frame of an agent, 16 MiB, which JSON within
/// JSON makes a few times longer.
const MAX_LINE: u64 = 1 << 28;

/// How much of an object is read at a time.
const PART: u64 = 1 << 16;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The number of the format; also what shows that it is a backup.
    pub(super) glovebox_backup: u32,
    /// The version of the tables.
    pub(super) tables: i64,
    /// When it was made.
    pub(super) made_at: DateTime<Utc>,
}

/// The number alone: what else stands in the line of another format is not known.
#[derive(Deserialize)]
struct Number {
    glovebox_backup: u32,
}

/// A line that is no row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Entry {
    /// An object, whose bytes follow, and then a line end.
    Object(Digest),
    /// An object that was not there when the backup was made, or not as its row says.
    Missing(BackedUpFile),
    /// A table, whose rows follow.
    Table {
        /// Its name.
        name: String,
        /// Its columns, in the order of each row.
        columns: Vec<String>,
    },
    /// The last line.
    End {
        /// How many objects came.
        objects: u64,
        /// How many rows came.
        rows: u64,
        /// The SHA-256 of everything before this line, in hexadecimal.
        sha256: String,
    },
}

/// What an object is known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "DigestForm", into = "DigestForm")]
pub(super) struct Digest {
    pub(super) file: BackedUpFile,
    pub(super) bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub(super) sha256: String,
}

/// As it stands in a backup.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DigestForm {
    id: String,
    bytes: u64,
    sha256: String,
    #[serde(
        default = "object::artifact",
        skip_serializing_if = "object::is_artifact"
    )]
    kind: FileKind,
}

impl TryFrom<DigestForm> for Digest {
    type Error = glovebox_protocol::ids::InvalidId;

    fn try_from(form: DigestForm) -> Result<Self, Self::Error> {
        let DigestForm {
            id,
            bytes,
            sha256,
            kind,
        } = form;
        Ok(Self {
            file: Form { id, kind }.try_into()?,
            bytes,
            sha256,
        })
    }
}

impl From<Digest> for DigestForm {
    fn from(digest: Digest) -> Self {
        let Form { id, kind } = digest.file.into();
        Self {
            id,
            bytes: digest.bytes,
            sha256: digest.sha256,
            kind,
        }
    }
}

/// One line as it is read.
#[derive(Debug)]
pub(super) enum Line {
    Entry(Entry),
    Row(Vec<Value>),
}

/// Writes a backup.
pub(super) struct Writer<W> {
    out: W,
    hash: Context,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins one.
    pub(super) fn begin(out: W, tables: i64) -> Result<Self, BackupError> {
        let mut writer = Self {
            out,
            hash: Context::new(&SHA256),
            bytes: 0,
        };
        writer.line(&Header {
            glovebox_backup: FORMAT,
            tables,
            made_at: Utc::now(),
        })?;
        Ok(writer)
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: &impl Serialize) -> Result<(), BackupError> {
        let text = serde_json::to_vec(line).map_err(|error| BackupError::Write(error.into()))?;
        self.raw(&text)?;
        self.raw(b"\n")
    }

    /// Writes bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.out.write_all(bytes).map_err(BackupError::Write)?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes the last line, and says how many bytes there are.
    pub(super) fn finish(mut self, objects: u64, rows: u64) -> Result<u64, BackupError> {
        let sha256 = hex(self.hash.clone().finish().as_ref());
        self.line(&Entry::End {
            objects,
            rows,
            sha256,
        })?;
        self.out.flush().map_err(BackupError::Write)?;
        Ok(self.bytes)
    }
}

/// Reads a backup. Nothing that it gives is proven before [`Entry::End`] came.
pub(super) struct Reader<R> {
    from: R,
    hash: Context,
    at: u64,
}

impl<R: BufRead> Reader<R> {
    /// Begins to read one.
    pub(super) fn begin(from: R) -> Result<(Self, Header), BackupError> {
        let mut reader = Self {
            from,
            hash: Context::new(&SHA256),
            at: 0,
        };
        let line = match reader.until_line_end(MAX_HEADER) {
            Ok(line) => line,
            Err(error @ BackupError::Read(_)) => return Err(error),
            Err(_) => return Err(BackupError::NoBackup),
        };
        let number = serde_json::from_slice::<Number>(&line);
        let found = number.map_err(|_| BackupError::NoBackup)?.glovebox_backup;
        if found != FORMAT {
            return Err(BackupError::Format {
                found,
                known: FORMAT,
            });
        }
        let header = serde_json::from_slice::<Header>(&line);
        let header = header.ok().filter(|header| header.tables > 0);
        let header = header.ok_or_else(|| reader.damaged("its first line has another form"))?;
        reader.hash.update(&line);
        Ok((reader, header))
    }

    /// The next line. With the last one it is certain that everything came as it was written.
    pub(super) fn next(&mut self) -> Result<Line, BackupError> {
        let text = self.until_line_end(MAX_LINE)?;
        let bad = |_| self.damaged("a line has another form");
        let line = match text.first() {
            Some(b'[') => Line::Row(serde_json::from_slice(&text).map_err(bad)?),
            _ => Line::Entry(serde_json::from_slice(&text).map_err(bad)?),
        };
        if let Line::Entry(Entry::End { sha256, .. }) = &line {
            if *sha256 != hex(self.hash.clone().finish().as_ref()) {
                return Err(self.damaged("its SHA-256 is another one than its last line says"));
            }
            if !self.from.fill_buf().map_err(BackupError::Read)?.is_empty() {
                return Err(self.damaged("something follows its last line"));
            }
        }
        self.hash.update(&text);
        Ok(line)
    }

    /// The next part of an object of which `left` bytes are to come.
    pub(super) fn part(&mut self, left: u64) -> Result<Vec<u8>, BackupError> {
        let wanted = left.min(PART);
        let mut part = Vec::new();
        let mut limited = (&mut self.from).take(wanted);
        let read = limited.read_to_end(&mut part).map_err(BackupError::Read)?;
        self.at += read as u64;
        if (read as u64) < wanted {
            return Err(BackupError::Cut { at: self.at });
        }
        self.hash.update(&part);
        Ok(part)
    }

    /// The line end after an object.
    pub(super) fn end_of_object(&mut self) -> Result<(), BackupError> {
        match self.part(1)?.as_slice() {
            b"\n" => Ok(()),
            _ => Err(self.damaged("an object is longer than its line says")),
        }
    }

    /// What was read last is not as it was written.
    pub(super) fn damaged(&self, what: &'static str) -> BackupError {
        BackupError::Damaged { at: self.at, what }
    }

    fn until_line_end(&mut self, limit: u64) -> Result<Vec<u8>, BackupError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.from).take(limit);
        let read = limited
            .read_until(b'\n', &mut line)
            .map_err(BackupError::Read)? as u64;
        self.at += read;
        match line.last() {
            Some(b'\n') => Ok(line),
            _ if read == limit => Err(self.damaged("a line is too long")),
            _ => Err(BackupError::Cut { at: self.at }),
        }
    }
}
