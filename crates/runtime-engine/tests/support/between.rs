//! Something between driver and engine that can be told to misbehave.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// What stands between driver and engine does with a connection.
#[derive(Clone, Copy)]
pub(crate) enum Mood {
    Pass,
    /// As an engine that has ended.
    Cut,
    /// As one that is stopped in its tracks.
    Hold,
    /// Asks for another network than the driver did.
    Sabotage,
}

/// Something between driver and engine.
pub(crate) struct Between {
    folder: TempDir,
    mood: Arc<AtomicU8>,
    connections: Arc<tokio::sync::Mutex<JoinSet<()>>>,
}

impl Between {
    /// Stands there, and passes on.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let mood = Arc::new(AtomicU8::new(Mood::Pass as u8));
        let connections = Arc::new(tokio::sync::Mutex::new(JoinSet::new()));
        let (seen, all) = (Arc::clone(&mood), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mood = Arc::clone(&seen);
                all.lock().await.spawn(pass(client, mood));
            }
        });
        Self {
            folder,
            mood,
            connections,
        }
    }

    /// Where it takes the engine's place.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// From now on; what is under way is cut where the engine is to be away.
    pub(crate) async fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
        if matches!(mood, Mood::Cut) {
            self.connections.lock().await.shutdown().await;
        }
    }
}

async fn pass(mut client: UnixStream, mood: Arc<AtomicU8>) {
    let mood = mood.load(Ordering::SeqCst);
    if mood == Mood::Cut as u8 {
        return;
    }
    if mood == Mood::Hold as u8 {
        // Whatever is asked, nothing is answered.
        let mut nothing = [0; 4096];
        while let Ok(1..) = client.read(&mut nothing).await {}
        return;
    }
    let mut engine = UnixStream::connect(Path::new(super::SOCKET)).await.unwrap();
    if mood == Mood::Sabotage as u8 {
        let mut request = vec![0; 256 * 1024];
        let mut length = 0;
        loop {
            length += client.read(&mut request[length..]).await.unwrap();
            let text = String::from_utf8_lossy(&request[..length]).into_owned();
            let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                let head = head.to_lowercase();
                let wanted = head.split("content-length: ").nth(1);
                let wanted = wanted.and_then(|rest| rest.lines().next()?.trim().parse().ok());
                body.len() >= wanted.unwrap_or(0)
            });
            if whole || length == 0 {
                // The same length, so that nothing else has to change.
                let other = text.replace(r#""NetworkMode":"none""#, r#""NetworkMode":"host""#);
                engine.write_all(other.as_bytes()).await.unwrap();
                break;
            }
        }
    }
    // That one side ends is the end of both.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
}
