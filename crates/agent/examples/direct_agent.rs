//! An agent outside a box and in a process of its own, for tests that watch it from outside:
//! `direct_agent SOCKET WORKSPACE [NAME=VALUE…]` with a configuration on its standard input. It
//! writes a line when it listens.

use std::io::{Read as _, Write as _};

use glovebox_agent::{Agent, Options, Spawner};
use tokio::net::UnixListener;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(socket), Some(workspace)) = (arguments.next(), arguments.next()) else {
        return Err("direct_agent SOCKET WORKSPACE [NAME=VALUE…]".into());
    };
    let env = arguments
        .filter_map(|argument| {
            let (name, value) = argument.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect();
    let mut config = Vec::new();
    std::io::stdin().read_to_end(&mut config)?;
    let config = serde_json::from_slice(&config)?;
    // The same event loop as in a box.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let agent = Agent::new(config, Options::new(workspace, Spawner::Direct { env }))?;
        let listener = UnixListener::bind(socket)?;
        writeln!(std::io::stdout(), "listening")?;
        Err(agent.serve(listener).await.into())
    })
}
