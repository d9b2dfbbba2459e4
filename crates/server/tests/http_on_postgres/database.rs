//! The database that every test of this program has for itself.

use std::path::Path;

use glovebox_store::Store;

/// One on the server for tests, with tables: the same for the same folder.
pub(crate) fn address(folder: &Path) -> String {
    let noted = folder.join("database");
    if let Ok(address) = fs_err::read_to_string(&noted) {
        return address;
    }
    let address = glovebox_testkit::postgres_database().unwrap();
    let new = address.clone();
    // On a thread without a runtime of its own: those who ask have one, and do not wait in it.
    let migrated = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(migrate(&new));
    });
    migrated.join().unwrap();
    fs_err::write(noted, &address).unwrap();
    address
}

/// What `glovebox migrate` does: a server of PostgreSQL does not do it by itself.
async fn migrate(address: &str) {
    let store = Store::open(address).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
}
