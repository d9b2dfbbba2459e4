//! What processes leave in folders that were killed while they wrote there.

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

use fs_err as fs;

/// Removes the files of a folder, and of those in it, whose names are those of what is not finished,
/// and that nobody has written to since `before`: those are nobody's. Says how many there were.
///
/// # Errors
/// When a folder cannot be read or a file not be removed.
pub fn remove_leftovers(
    folder: &Path,
    before: SystemTime,
    is_unfinished: fn(&str) -> bool,
) -> Result<u64, Error> {
    let mut removed = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Folders go with the last file in them.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_str().is_some_and(is_unfinished) {
                removed += u64::from(remove_older(&entry.path(), before)?);
            }
        }
    }
    Ok(removed)
}

fn remove_older(path: &Path, before: SystemTime) -> Result<bool, Error> {
    let removed = fs::symlink_metadata(path).and_then(|found| {
        let is_left = found.modified()? < before;
        if is_left {
            fs::remove_file(path)?;
        }
        Ok(is_left)
    });
    match removed {
        // Somebody else was first, or it was finished.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed,
    }
}

/// Whether a file of the object store is not finished: it then has a `#` and a number behind its name,
/// which no name of ours has.
#[must_use]
pub fn is_unfinished_object(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use glovebox_protocol::ids::AttachmentId;

    use super::*;
    use crate::Objects;

    #[tokio::test]
    async fn only_what_is_unfinished_and_old_goes() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::in_folder(folder.path()).unwrap();
        let kept = AttachmentId::new();
        let mut upload = objects.create(kept).await.unwrap();
        upload.write(b"kept").await.unwrap();
        upload.finish().await.unwrap();
        // More than one part, so that something lies there already.
        let mut killed = objects.create(AttachmentId::new()).await.unwrap();
        killed.write(&vec![7; 12 << 20]).await.unwrap();
        killed.write(b"more").await.unwrap();
        std::mem::forget(killed);
        let in_folder = || -> Vec<String> {
            let shards = fs::read_dir(folder.path().join("attachments")).unwrap();
            let files = shards.flat_map(|shard| fs::read_dir(shard.unwrap().path()).unwrap());
            files
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect()
        };
        assert_eq!(in_folder().len(), 2, "{:?}", in_folder());
        let hour = Duration::from_secs(3600);
        let remove = |before| remove_leftovers(folder.path(), before, is_unfinished_object);
        assert_eq!(remove(SystemTime::now() - hour).unwrap(), 0);
        assert_eq!(in_folder().len(), 2);
        assert_eq!(remove(SystemTime::now() + hour).unwrap(), 1);
        assert_eq!(in_folder(), [kept.to_string()]);
    }
}
