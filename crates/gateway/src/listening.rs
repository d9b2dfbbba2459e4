//! Opening what a gateway listens at.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::{TcpListener, UnixListener};

use crate::config::{Listen, Transport};
use crate::program::ProgramError;
use crate::serve::Listener;
use crate::tls::TlsIdentity;

/// Opens the place that the configuration names.
pub(crate) async fn open(listen: &Listen, tls: TlsIdentity) -> Result<Listener, ProgramError> {
    match listen {
        Listen::Tcp(address, transport) => {
            let opened = TcpListener::bind(address).await;
            let listener = opened.map_err(|source| ProgramError::Listen {
                at: address.to_string(),
                source,
            })?;
            Ok(match transport {
                Transport::Tls => Listener::Tls(listener, tls),
                Transport::Plain => Listener::Plain(listener),
            })
        }
        Listen::Unix(path) => {
            let listener = unix(path).map_err(|source| ProgramError::Listen {
                at: path.display().to_string(),
                source,
            })?;
            Ok(Listener::Unix(listener))
        }
    }
}

/// A socket that only this user can connect to. One that nobody listens at any more makes room.
fn unix(path: &Path) -> std::io::Result<UnixListener> {
    if let Ok(metadata) = fs_err::symlink_metadata(path) {
        let is_dead = metadata.file_type().is_socket()
            && std::os::unix::net::UnixStream::connect(path).is_err();
        if !is_dead {
            return Err(std::io::ErrorKind::AddrInUse.into());
        }
        fs_err::remove_file(path)?;
    }
    // Nobody else may come in before the mode is set: the folder has to see to that, or the mask.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
