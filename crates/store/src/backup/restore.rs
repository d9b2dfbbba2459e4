//! The way back: into a database without any rows, all or nothing.

use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;

use chrono::{DateTime, Utc};
use ring::digest::{Context, SHA256};
use serde_json::Value;
use sqlx::AssertSqlSafe;

use super::error::BackupError;
use super::file::{Digest, Entry, Header, Line, Reader};
use super::object::BackedUpFile;
use super::rows::{self, Table};
use crate::database::{Backend, Store, Transaction};
use crate::migrate::{self, WANTED};
use crate::objects::{Objects, Upload};
use crate::token::hex;

/// A backup whose first line was read.
pub struct Backup<R> {
    file: Reader<R>,
    header: Header,
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// How many rows.
    pub rows: u64,
    /// How many objects.
    pub objects: u64,
    /// Files whose bytes were missing when the backup was made.
    pub missing: Vec<BackedUpFile>,
    /// How many texts held the character U+0000, which PostgreSQL cannot store: there is U+FFFD
    /// in its place now.
    pub replaced: u64,
}

/// Objects that the file has brought. What is new in the store is taken away again when the
/// restore fails.
#[derive(Default)]
struct Brought {
    /// What the file says of each; nothing where it says that it is missing.
    all: BTreeMap<BackedUpFile, Option<Digest>>,
    new: Vec<BackedUpFile>,
}

impl<R: BufRead> Backup<R> {
    /// Begins to read a backup.
    ///
    /// # Errors
    /// When it is none, or of a format or of tables that this program does not know.
    pub fn open(from: R) -> Result<Self, BackupError> {
        let (file, header) = Reader::begin(from)?;
        if header.tables > WANTED {
            return Err(BackupError::Newer {
                found: header.tables,
                known: WANTED,
            });
        }
        Ok(Self { file, header })
    }

    /// When it was made.
    #[must_use]
    pub fn made_at(&self) -> DateTime<Utc> {
        self.header.made_at
    }
}

impl Store {
    /// Fills a database that has no rows, and brings its tables to this program's version.
    ///
    /// # Errors
    /// When the database has rows, the file is not as it was written, or something cannot be
    /// stored. Then database and objects are as they were before.
    pub async fn restore<R: BufRead + Send>(
        &self,
        objects: &Objects,
        mut backup: Backup<R>,
    ) -> Result<Restored, BackupError> {
        let mut changes = self.begin().await?;
        let mut brought = Brought::default();
        let filled = fill(
            self.backend(),
            &mut changes,
            objects,
            &mut backup,
            &mut brought,
        );
        match filled.await {
            Ok(restored) => {
                // Where this fails nobody knows whether it came about: the objects stay.
                changes.commit().await?;
                Ok(restored)
            }
            Err(error) => {
                drop(changes);
                brought.take_back(objects).await;
                Err(error)
            }
        }
    }
}

async fn fill<R: BufRead + Send>(
    backend: Backend,
    changes: &mut Transaction,
    objects: &Objects,
    backup: &mut Backup<R>,
    brought: &mut Brought,
) -> Result<Restored, BackupError> {
    let version = backup.header.tables;
    let found = migrate::bring(changes, backend, version).await?;
    if let Some(table) = rows::first_filled(&mut changes.inner, backend).await? {
        return Err(BackupError::NotEmpty { table });
    }
    if found > version {
        return Err(BackupError::TablesNewer {
            found,
            wanted: version,
        });
    }
    let file = &mut backup.file;
    // Objects first: a row without its object is never seen, an object without row by nobody.
    let mut line = file.next()?;
    loop {
        match line {
            Line::Entry(Entry::Object(object)) => brought.place(objects, file, object).await?,
            Line::Entry(Entry::Missing(file)) => {
                brought.all.insert(file, None);
            }
            _ => break,
        }
        line = file.next()?;
    }
    let mut restored = Restored {
        rows: 0,
        objects: 0,
        missing: brought.missing(),
        replaced: 0,
    };
    restored.objects = (brought.all.len() - restored.missing.len()) as u64;
    for table in rows::tables(&mut changes.inner, backend).await? {
        match line {
            Line::Entry(Entry::Table { name, columns })
                if name == table.name && columns == table.columns() => {}
            _ => return Err(file.damaged("its tables are not those of its version")),
        }
        line = insert(backend, changes, &table, file, &mut restored).await?;
    }
    match line {
        Line::Entry(Entry::End { objects, rows, .. })
            if (objects, rows) == (restored.objects, restored.rows) => {}
        _ => return Err(file.damaged("it has more or less than its last line says")),
    }
    // In this order: where files are named is known of this program's own tables only.
    migrate::bring(changes, backend, WANTED).await?;
    let named = super::files(&mut changes.inner).await?;
    if !brought.are_those_of(&named) {
        return Err(file.damaged("its objects are not those of its rows"));
    }
    Ok(restored)
}

/// Writes the rows of a table, and gives the first line after them.
async fn insert<R: BufRead + Send>(
    backend: Backend,
    changes: &mut Transaction,
    table: &Table,
    file: &mut Reader<R>,
    restored: &mut Restored,
) -> Result<Line, BackupError> {
    let mut order = Order::of(table);
    let next = loop {
        let mut row = match file.next()? {
            Line::Row(row) => row,
            other => break other,
        };
        if backend == Backend::Postgres {
            restored.replaced += without_zeros(&mut row);
        }
        if let Some(row) = order.now(row) {
            write(changes, table, file, row).await?;
        }
        restored.rows += 1;
    };
    for row in order.later {
        write(changes, table, file, row).await?;
    }
    Ok(next)
}

async fn write<R: BufRead + Send>(
    changes: &mut Transaction,
    table: &Table,
    file: &mut Reader<R>,
    row: Vec<Value>,
) -> Result<(), BackupError> {
    let query = sqlx::query(AssertSqlSafe(table.insert()));
    let query = table.bind(query, row);
    let query = query.ok_or_else(|| file.damaged("a row does not fit its table"))?;
    query
        .execute(&mut *changes.inner)
        .await
        .map(|_| ())
        .map_err(table.failed("writing a row into"))
}

/// Puts rows that refer to one of their own table after it. Files of earlier versions have them in the order
/// of their keys, which the clocks of several servers made.
struct Order {
    own: Option<(usize, usize)>,
    /// The keys of those that were written and refer to none: none refers to another one.
    written: HashSet<String>,
    /// Those that came before what they refer to.
    later: Vec<Vec<Value>>,
}

impl Order {
    fn of(table: &Table) -> Self {
        Self {
            own: table.own_reference(),
            written: HashSet::new(),
            later: Vec::new(),
        }
    }

    /// The row, where it can be written already; else it is kept for later.
    fn now(&mut self, row: Vec<Value>) -> Option<Vec<Value>> {
        let Some((key, refers)) = self.own else {
            return Some(row);
        };
        match row.get(refers).and_then(Value::as_str) {
            Some(of) if !self.written.contains(of) => {
                self.later.push(row);
                return None;
            }
            Some(_) => {}
            None => {
                let key = row.get(key).and_then(Value::as_str);
                self.written.extend(key.map(str::to_owned));
            }
        }
        Some(row)
    }
}

/// Puts another character in the place of U+0000, and counts the texts that had one.
fn without_zeros(row: &mut [Value]) -> u64 {
    let mut count = 0;
    for cell in row {
        if let Value::String(text) = cell
            && text.contains('\0')
        {
            *text = text.replace('\0', "\u{fffd}");
            count += 1;
        }
    }
    count
}

impl Brought {
    /// Reads an object, and stores it where it is not there already.
    async fn place<R: BufRead + Send>(
        &mut self,
        objects: &Objects,
        file: &mut Reader<R>,
        object: Digest,
    ) -> Result<(), BackupError> {
        let id = object.file;
        let mut upload = match objects.digest(id).await? {
            // Somebody restores beside the server's own objects, or once more.
            Some(found) if found == (object.bytes, object.sha256.clone()) => None,
            Some(_) => return Err(BackupError::ObjectTaken { id }),
            None => Some(objects.create(id).await?),
        };
        let read = read(file, &object, upload.as_mut()).await;
        match (read, upload) {
            (Ok(()), Some(upload)) => {
                self.new.push(id);
                upload.finish().await?;
            }
            (Ok(()), None) => {}
            (Err(error), upload) => {
                if let Some(upload) = upload {
                    // What is wrong with the file says more than that this failed too.
                    let _ = upload.abort().await;
                }
                return Err(error);
            }
        }
        if self.all.insert(id, Some(object)).is_some() {
            return Err(file.damaged("an object is there twice"));
        }
        Ok(())
    }

    fn missing(&self) -> Vec<BackedUpFile> {
        let missing = self.all.iter().filter(|(_, object)| object.is_none());
        missing.map(|(id, _)| *id).collect()
    }

    /// Whether these are the objects that the rows name, no more and no less.
    fn are_those_of(&self, rows: &[Digest]) -> bool {
        let is_there = |row: &Digest| match self.all.get(&row.file) {
            Some(Some(object)) => object == row,
            Some(None) => true,
            None => false,
        };
        rows.len() == self.all.len() && rows.iter().all(is_there)
    }

    async fn take_back(&self, objects: &Objects) {
        for id in &self.new {
            // One that stays is nobody's, and the next restore finds it as it is.
            let _ = objects.delete(*id).await;
        }
    }
}

/// Reads the bytes of an object into the store, where it is to go there, and compares them with
/// what its line says.
async fn read<R: BufRead + Send>(
    file: &mut Reader<R>,
    object: &Digest,
    mut upload: Option<&mut Upload>,
) -> Result<(), BackupError> {
    let mut hash = Context::new(&SHA256);
    let mut left = object.bytes;
    while left > 0 {
        let part = file.part(left)?;
        left -= part.len() as u64;
        hash.update(&part);
        if let Some(upload) = &mut upload {
            upload.write(&part).await?;
        }
    }
    if hex(hash.finish().as_ref()) != object.sha256 {
        return Err(file.damaged("an object has another SHA-256 than its line says"));
    }
    file.end_of_object()
}
