//! Telling office files from other zip archives, by the list of what is in them. Nothing is
//! unpacked.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, pread};

/// The record at the end of an archive, without its comment.
const END_BYTES: usize = 22;

/// The longest comment.
const MAX_COMMENT: usize = u16::MAX as usize;

/// The longest list that is read, in bytes. Office files of any size have shorter ones.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// One entry of the list, without its name.
const ENTRY_BYTES: usize = 46;

/// Whether a file is an archive with the parts of an office file whose main folder is `folder`,
/// and how many bytes were read to find out.
pub(super) fn holds(file: &OwnedFd, size: u64, folder: &[u8]) -> (bool, u64) {
    let tail_bytes = usize::try_from(size).map_or(END_BYTES + MAX_COMMENT, |size| {
        size.min(END_BYTES + MAX_COMMENT)
    });
    let tail_at = size - tail_bytes as u64;
    let mut read = tail_bytes as u64;
    let mut verdict = || {
        let tail = read_at(file, tail_at, tail_bytes)?;
        let (list_at, list_bytes) = list_place(&tail, tail_at)?;
        read += list_bytes as u64;
        let list = read_at(file, list_at, list_bytes)?;
        Some(has_parts(&list, folder))
    };
    let agrees = verdict().unwrap_or(false);
    (agrees, read)
}

fn read_at(file: &OwnedFd, mut at: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        match pread(file, &mut buffer[filled..], at) {
            Ok(0) => return None,
            Ok(read) => {
                filled += read;
                at += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(buffer)
}

/// Where the list of an archive is, by the record at its end; that has to end where the file
/// ends, so that nothing is hidden behind it.
fn list_place(tail: &[u8], tail_at: u64) -> Option<(u64, usize)> {
    let last = tail.len().checked_sub(END_BYTES)?;
    let at = (0..=last).rev().find(|at| {
        tail[*at..].starts_with(b"PK\x05\x06")
            && usize::from(u16_at(tail, at + 20)) == tail.len() - at - END_BYTES
    })?;
    let (bytes, offset) = (u32_at(tail, at + 12), u32_at(tail, at + 16));
    let bytes = usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes <= MAX_LIST)?;
    let ends_at = u64::from(offset) + bytes as u64;
    (ends_at <= tail_at + at as u64).then_some((offset.into(), bytes))
}

/// Whether the list names what every office file has. An encrypted archive has nothing that
/// could be trusted to be it.
fn has_parts(mut list: &[u8], folder: &[u8]) -> bool {
    let (mut has_types, mut has_folder) = (false, false);
    while list.len() >= ENTRY_BYTES && list.starts_with(b"PK\x01\x02") {
        let encrypted = u16_at(list, 8) & 1 == 1;
        let name_bytes = usize::from(u16_at(list, 28));
        let rest = usize::from(u16_at(list, 30)) + usize::from(u16_at(list, 32));
        let Some(name) = list.get(ENTRY_BYTES..ENTRY_BYTES + name_bytes) else {
            return false;
        };
        if encrypted {
            return false;
        }
        has_types |= name == b"[Content_Types].xml";
        has_folder |= name.starts_with(folder);
        list = list
            .get(ENTRY_BYTES + name_bytes + rest..)
            .unwrap_or_default();
    }
    has_types && has_folder
}

/// Two bytes, little endian; 0 where there are none.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |pair| u16::from_le_bytes(*pair))
}

/// Four bytes, little endian; 0 where there are none.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |four| u32::from_le_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn archive(names: &[&str], flags: u16) -> Vec<u8> {
        let mut bytes = b"PK\x03\x04".to_vec();
        let list_at = bytes.len();
        for name in names {
            let mut entry = vec![0; ENTRY_BYTES];
            entry[..4].copy_from_slice(b"PK\x01\x02");
            entry[8..10].copy_from_slice(&flags.to_le_bytes());
            entry[28..30].copy_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(&entry);
            bytes.extend_from_slice(name.as_bytes());
        }
        let mut end = vec![0; END_BYTES];
        end[..4].copy_from_slice(b"PK\x05\x06");
        let list_bytes = u32::try_from(bytes.len() - list_at).unwrap();
        end[12..16].copy_from_slice(&list_bytes.to_le_bytes());
        end[16..20].copy_from_slice(&u32::try_from(list_at).unwrap().to_le_bytes());
        bytes.extend_from_slice(&end);
        bytes
    }

    fn is_workbook(bytes: &[u8]) -> bool {
        let file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut &file, bytes).unwrap();
        holds(&file.into(), bytes.len() as u64, b"xl/").0
    }

    #[test]
    fn an_archive_needs_the_parts_of_its_type() {
        let types = "[Content_Types].xml";
        assert!(is_workbook(&archive(&[types, "xl/workbook.xml"], 0)));
        assert!(!is_workbook(&archive(&[types, "word/document.xml"], 0)));
        assert!(!is_workbook(&archive(&["xl/workbook.xml"], 0)));
        assert!(
            !is_workbook(&archive(&[types, "xl/workbook.xml"], 1)),
            "encrypted"
        );
        assert!(!is_workbook(b"PK\x03\x04"));
        assert!(!is_workbook(b""));
    }

    #[test]
    fn nothing_may_stand_behind_the_end_of_an_archive() {
        let mut bytes = archive(&["[Content_Types].xml", "xl/workbook.xml"], 0);
        bytes.extend_from_slice(b"<html>");
        assert!(!is_workbook(&bytes));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            end in any::<[u8; 18]>(),
        ) {
            is_workbook(&bytes);
            bytes.extend_from_slice(b"PK\x05\x06");
            bytes.extend_from_slice(&end[..16]);
            bytes.extend_from_slice(&[0, 0]);
            is_workbook(&bytes);
            has_parts(&bytes, b"xl/");
        }
    }
}
