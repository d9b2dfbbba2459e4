//! Words for what went wrong.

/// An error with everything that it rests on, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// What is said where nothing more can be kept.
pub(crate) const DISK_FULL: &str = "the server's disk is full, so that nothing more can be kept";

/// What is said where only so much is left as the server needs for itself.
pub(crate) const NO_ROOM: &str = "the server's disk is nearly full, so that no more files are kept";

/// Whether somewhere below a disk had no room.
pub(crate) fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut below = Some(error);
    while let Some(error) = below {
        let is_full = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::StorageFull);
        // As SQLite says it, and as PostgreSQL does.
        let text = error.to_string();
        if is_full || text.contains("disk is full") || text.contains("No space left on device") {
            return true;
        }
        below = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_faults() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let other = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert!(is_disk_full(&full));
        assert!(!is_disk_full(&other));
        #[derive(Debug, thiserror::Error)]
        #[error("writing")]
        struct Above(#[source] std::io::Error);
        assert!(is_disk_full(&Above(full)));
    }
}
