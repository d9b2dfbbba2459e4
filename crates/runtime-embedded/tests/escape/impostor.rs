//! A program in the agent's place: what an agent that was taken over could do.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};
use glovebox_testkit::escape::{Lab, PROBES, Red, Report, batch};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::lab::Embedded;

const IMPOSTOR: &str = include_str!("impostor.py");
/// The layer with it, relative to the data folder.
const LAYER: &str = "impostor";

/// What the probes find that run in the agent's place, on a runtime with these options and this
/// folder for sockets.
pub(crate) async fn findings(mut options: Options, run: TempDir) -> Result<Vec<Red>> {
    let data = tempfile::Builder::new().prefix("gbd").tempdir_in("/tmp")?;
    fs_err::set_permissions(data.path(), std::fs::Permissions::from_mode(0o755))?;
    for folder in ["layers", "trees"] {
        symlink(options.data.join(folder), data.path().join(folder))?;
    }
    write_layer(&data.path().join(LAYER))?;
    options.data = data.path().to_owned();
    options.layers.insert(0, LAYER.into());
    let installation = options.installation;
    let embedded = Embedded::of(EmbeddedRuntime::start(options).await?, installation, run)?;
    let lab = &embedded.lab;
    let subject = lab.bare_subject(Lab::small_limits()).await?;
    let checks = batch::checks_of_agents().join(",");
    let said = ask(lab, subject.id, &format!("/probes/{checks}")).await?;
    let mut reds = batch::judge_agent(lab, &said)?;
    let said = ask(lab, subject.id, "/program").await?;
    reds.extend(batch::judge_program_of_agent(lab, &said)?);
    reds.extend(undeclared(&ask(lab, subject.id, "/open").await?)?);
    subject.remove().await?;
    embedded.finish().await?;
    Ok(reds)
}

/// K9 for the agent, as it sees itself: open are the three standard descriptors and what its
/// configuration names. From outside only root can look.
fn undeclared(said: &[Report]) -> Result<Vec<Red>> {
    let of = |id: &str| {
        let report = said.iter().find(|report| report.id == id);
        report.with_context(|| format!("the impostor did not say what is {id}"))
    };
    let declared: Vec<u64> = serde_json::from_value(of("declared")?.observed.clone())?;
    let open = of("open")?.observed.as_object().context("no list")?;
    ensure!(
        declared
            .iter()
            .all(|number| open.contains_key(&number.to_string())),
        "the control failed: of {declared:?} only {open:?} are open"
    );
    Ok(open
        .iter()
        .filter(|(number, _)| {
            let number = number.parse().unwrap_or(u64::MAX);
            number > 2 && !declared.contains(&number)
        })
        .map(|(number, what)| Red::new("K9", format!("the agent's descriptor {number} is {what}")))
        .collect())
}

/// Asks the impostor for something and takes the reports in its answer.
async fn ask(lab: &Lab, sandbox: SandboxId, path: &str) -> Result<Vec<Report>> {
    let mut stream = lab.runtime.connect(sandbox).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: agent\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.shutdown().await?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await?;
    Ok(Report::all_in(&said))
}

fn write_layer(layer: &Path) -> Result<()> {
    let (programs, probes) = (
        layer.join("opt/glovebox/bin"),
        layer.join("opt/glovebox/lib/probes"),
    );
    fs_err::create_dir_all(&programs)?;
    fs_err::create_dir_all(&probes)?;
    let agent = programs.join("glovebox-agent");
    let protocol = glovebox_protocol::PROTOCOL_VERSION.to_string();
    fs_err::write(&agent, IMPOSTOR.replace("@PROTOCOL@", &protocol))?;
    fs_err::set_permissions(&agent, std::fs::Permissions::from_mode(0o755))
        .context("making the impostor a program")?;
    for (name, text) in PROBES {
        fs_err::write(probes.join(name), text)?;
    }
    Ok(())
}
