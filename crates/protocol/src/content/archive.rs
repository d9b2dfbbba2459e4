//! Telling office files from other zip archives, by the list of what is in them. Nothing is
//! unpacked, and no more than the end of a file is kept.

use super::FileType;

/// What an archive begins with.
const BEGIN: &[u8] = b"PK\x03\x04";

/// The record at the end of an archive, without its comment.
const END_BYTES: usize = 22;

/// How much of the end of a file is kept: the list has to be in it. That of an office file with
/// ten thousand parts is.
const TAIL_BYTES: usize = 1 << 20;

/// One entry of the list, without its name.
const ENTRY_BYTES: usize = 46;

/// Types of office files, and the folder that each has inside.
const OFFICE: [(FileType, &[u8]); 3] = [
    (FileType::Pptx, b"ppt/"),
    (FileType::Xlsx, b"xl/"),
    (FileType::Docx, b"word/"),
];

/// Looks at a file as the zip archive that it may be, while it is read.
#[derive(Debug, Default)]
pub struct Archive {
    /// The end of what was read.
    tail: Vec<u8>,
    /// How much was read.
    bytes: u64,
    is_none: bool,
}

impl Archive {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.is_none {
            return;
        }
        self.tail.extend_from_slice(bytes);
        let looked_at = self.tail.len().min(BEGIN.len());
        let is_at_begin = self.tail.len() as u64 == self.bytes;
        if is_at_begin && self.tail[..looked_at] != BEGIN[..looked_at] {
            self.is_none = true;
            self.tail = Vec::new();
        } else if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
    }

    /// Whether the whole file is an office file of this type.
    #[must_use]
    pub fn is_office(&self, file_type: FileType) -> bool {
        let folder = OFFICE.iter().find(|(office, _)| *office == file_type);
        folder.is_some_and(|(_, folder)| self.list().is_some_and(|list| has_parts(list, folder)))
    }

    /// Which office file the whole file is, if it is one.
    #[must_use]
    pub fn office_type(&self) -> Option<FileType> {
        let mut types = OFFICE.iter().map(|(file_type, _)| *file_type);
        types.find(|file_type| self.is_office(*file_type))
    }

    /// The list of an archive, by the record at its end; that has to end where the file ends, so that
    /// nothing is hidden behind it.
    fn list(&self) -> Option<&[u8]> {
        let tail = &self.tail;
        let tail_at = self.bytes - tail.len() as u64;
        let last = tail.len().checked_sub(END_BYTES)?;
        let first = last.saturating_sub(usize::from(u16::MAX));
        let at = (first..=last).rev().find(|at| {
            tail[*at..].starts_with(b"PK\x05\x06")
                && usize::from(u16_at(tail, at + 20)) == tail.len() - at - END_BYTES
        })?;
        let (bytes, offset) = (u32_at(tail, at + 12), u32_at(tail, at + 16));
        let begin = usize::try_from(u64::from(offset).checked_sub(tail_at)?).ok()?;
        let end = begin.checked_add(usize::try_from(bytes).ok()?)?;
        (end <= at).then(|| &tail[begin..end])
    }
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

    const TYPES: &str = "[Content_Types].xml";

    /// An archive with `before` bytes of parts in front of its list.
    fn archive(names: &[&str], flags: u16, before: usize) -> Vec<u8> {
        let mut bytes = BEGIN.to_vec();
        bytes.resize(BEGIN.len() + before, 7);
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

    fn looked_at(bytes: &[u8], cut: usize) -> Archive {
        let mut archive = Archive::default();
        for part in bytes.chunks(cut) {
            archive.update(part);
        }
        archive
    }

    fn office_type(bytes: &[u8]) -> Option<FileType> {
        let found = looked_at(bytes, 100_000).office_type();
        assert_eq!(looked_at(bytes, 100_001).office_type(), found);
        if bytes.len() < 10_000 {
            assert_eq!(looked_at(bytes, 1).office_type(), found);
        }
        found
    }

    #[test]
    fn an_archive_needs_the_parts_of_its_type() {
        for (name, wanted) in [
            ("xl/workbook.xml", Some(FileType::Xlsx)),
            ("word/document.xml", Some(FileType::Docx)),
            ("ppt/presentation.xml", Some(FileType::Pptx)),
            ("content.xml", None),
        ] {
            assert_eq!(office_type(&archive(&[TYPES, name], 0, 0)), wanted);
        }
        let without_types = archive(&["xl/workbook.xml"], 0, 0);
        assert_eq!(office_type(&without_types), None);
        let encrypted = archive(&[TYPES, "xl/workbook.xml"], 1, 0);
        assert_eq!(office_type(&encrypted), None);
        assert_eq!(office_type(BEGIN), None);
        assert_eq!(office_type(b""), None);
        let workbook = looked_at(&archive(&[TYPES, "xl/workbook.xml"], 0, 0), 9);
        assert!(workbook.is_office(FileType::Xlsx));
        assert!(!workbook.is_office(FileType::Docx) && !workbook.is_office(FileType::Pdf));
    }

    #[test]
    fn of_a_large_file_no_more_than_its_end_is_kept() {
        let large = archive(&[TYPES, "ppt/presentation.xml"], 0, 5 * TAIL_BYTES);
        assert_eq!(office_type(&large), Some(FileType::Pptx));
        assert!(looked_at(&large, 4096).tail.len() <= 2 * TAIL_BYTES);
        let none = vec![0; 3 * TAIL_BYTES];
        assert_eq!(looked_at(&none, 4096).tail.capacity(), 0);
    }

    #[test]
    fn nothing_may_stand_behind_the_end_of_an_archive() {
        let mut bytes = archive(&[TYPES, "xl/workbook.xml"], 0, 0);
        bytes.extend_from_slice(b"<html>");
        assert_eq!(office_type(&bytes), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            end in any::<[u8; 16]>(),
        ) {
            let mut bytes = [BEGIN, &bytes].concat();
            office_type(&bytes);
            bytes.extend_from_slice(b"PK\x05\x06");
            bytes.extend_from_slice(&end);
            bytes.extend_from_slice(&[0, 0]);
            office_type(&bytes);
            has_parts(&bytes, b"xl/");
        }
    }
}
