//! The database that every test of this program has for itself.

use std::path::Path;

/// One on the server for tests: the same for the same folder.
pub(crate) fn address(folder: &Path) -> String {
    let noted = folder.join("database");
    if let Ok(address) = fs_err::read_to_string(&noted) {
        return address;
    }
    let address = glovebox_testkit::postgres_database().unwrap();
    fs_err::write(noted, &address).unwrap();
    address
}
