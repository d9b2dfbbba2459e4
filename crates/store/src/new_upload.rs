//! What a file that somebody has brought is kept as, before it is known what becomes of it.

use crate::uploaded_name::UploadedName;

/// A file whose bytes lie in the object store, and that has no row yet.
#[derive(Debug, Clone)]
pub struct NewUpload<Id> {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: UploadedName,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, by content.
    pub media_type: String,
}
