//! Files of people that a process has left behind which was killed while they came: no row knows of
//! them, so that nothing else would ever delete them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use glovebox_store::{is_unfinished_object, remove_leftovers};
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::failure::chain;

/// How long nobody has written to what nobody writes any more: other processes may share the folders.
const QUIET: Duration = Duration::from_secs(3600);

/// How often they are looked for.
const EVERY: Duration = Duration::from_secs(3600);

/// Removes leftovers, at once and again and again. Never returns.
pub(crate) async fn remove(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let data = app.config().data.clone();
        match tokio::task::spawn_blocking(move || remove_once(&data, SystemTime::now())).await {
            Ok(Ok(0)) => {}
            Ok(Ok(removed)) => tracing::info!(
                removed,
                "files were removed that a killed process has left half"
            ),
            Ok(Err(error)) => tracing::warn!(
                error = chain(&error),
                "removing files that a killed process has left half"
            ),
            Err(error) => tracing::error!(
                error = chain(&error),
                "removing files that a killed process has left half"
            ),
        }
    }
}

fn remove_once(data: &Path, now: SystemTime) -> std::io::Result<u64> {
    let before = now.checked_sub(QUIET).unwrap_or(SystemTime::UNIX_EPOCH);
    let objects = remove_leftovers(&data.join("objects"), before, is_unfinished_object)?;
    // What is spooled now has no name; before it had.
    let spooled = remove_leftovers(&data.join("spool"), before, |name| name.starts_with(".tmp"))?;
    Ok(objects + spooled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_both_folders_go_once_they_are_quiet() {
        let data = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = data.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "x").unwrap();
        };
        for name in [
            "objects/attachments/f4/a#1",
            "objects/attachments/f4/a",
            "spool/.tmpAbC",
        ] {
            put(name);
        }
        let now = SystemTime::now();
        assert_eq!(remove_once(data.path(), now).unwrap(), 0);
        assert_eq!(remove_once(data.path(), now + 2 * QUIET).unwrap(), 2);
        assert!(data.path().join("objects/attachments/f4/a").exists());
    }
}
