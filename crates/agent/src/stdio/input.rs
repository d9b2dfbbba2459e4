//! The thread that reads standard input.

use std::io::Read as _;
use std::os::fd::OwnedFd;

use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::record::{
    AttachedConfig, FromGateway, FromGatewayDecoder, Kind, Magic, Nonce,
};
use tokio::sync::mpsc;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// What has come in.
#[derive(Debug)]
pub(super) enum Heard {
    Hello(Nonce),
    Config(Box<AgentConfig>),
    BadConfig(serde_json::Error),
    Data(Vec<u8>),
    Alive,
    OutOfStep,
}

/// Starts the thread. It ends with its input.
pub(super) fn start(stdin: OwnedFd, heard: mpsc::Sender<Heard>) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("input".into());
    thread.spawn(move || read(stdin.into(), &heard)).map(drop)
}

fn read(mut stdin: std::fs::File, heard: &mpsc::Sender<Heard>) {
    let mut decoder = FromGatewayDecoder::new(Magic::FIRST);
    let mut configured = false;
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = match stdin.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        decoder.push(&chunk[..length]);
        while let Some(next) = decoder.take() {
            let next = match next {
                FromGateway::Hello(nonce) => Heard::Hello(nonce),
                FromGateway::Record(Kind::Config, json) if !configured => {
                    match serde_json::from_slice::<AttachedConfig>(&json) {
                        Ok(config) => {
                            configured = true;
                            // In the same breath: whoever knows only the first one is not
                            // listened to any more.
                            decoder.set_magic(config.magic);
                            Heard::Config(Box::new(config.agent))
                        }
                        Err(error) => Heard::BadConfig(error),
                    }
                }
                FromGateway::Record(Kind::Data, payload) => Heard::Data(payload),
                FromGateway::Record(Kind::Alive, _) => Heard::Alive,
                FromGateway::Record(..) | FromGateway::OutOfStep => Heard::OutOfStep,
            };
            // Whoever listens never waits for output, so this is soon done.
            if heard.blocking_send(next).is_err() {
                return;
            }
        }
    }
}
