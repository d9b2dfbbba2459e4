//! A model endpoint that plays a script, as a program: for journeys in a browser, and to try chat
//! by hand without a model.
//!
//! `glovebox-scripted-model --script FILE [--listen ADDRESS]` prints its base URL and answers until
//! it is ended. `GET /requests` gives what it was asked so far.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use glovebox_testkit::{Script, ScriptedModel};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (mut script, mut listen) = (None, SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next();
        let value = value.with_context(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--script" => script = Some(value),
            "--listen" => listen = value.parse().context("--listen wants HOST:PORT")?,
            _ => bail!("{name} is no option; there are --script FILE and --listen ADDRESS"),
        }
    }
    let script = script.context("--script FILE says what to play")?;
    let text = fs_err::read_to_string(&script)?;
    let read: Script = serde_json::from_str(&text).with_context(|| format!("reading {script}"))?;
    let model = ScriptedModel::listen(read, listen).await?;
    announce(&model.base_url());
    tokio::signal::ctrl_c().await?;
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "whoever started it waits for this line"
)]
fn announce(base_url: &str) {
    println!("{base_url}");
}
