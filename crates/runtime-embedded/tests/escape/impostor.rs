//! A program in the agent's place: what an agent that was taken over could do.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::Start;
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};
use glovebox_testkit::escape::{Lab, PROBES, Red, Report, batch};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::lab::Embedded;
use crate::pool::family;
use crate::template::template_of;

const IMPOSTOR: &str = include_str!("impostor.py");
/// The layer with it, relative to the data folder.
const LAYER: &str = "impostor";

/// A runtime with these options and this folder for sockets, in whose sandboxes the impostor takes
/// the agent's place. Beside it, the folder that has to last as long.
async fn runtime(mut options: Options, run: TempDir) -> Result<(Embedded, TempDir)> {
    let data = tempfile::Builder::new().prefix("gbd").tempdir_in("/tmp")?;
    fs_err::set_permissions(data.path(), std::fs::Permissions::from_mode(0o755))?;
    for folder in ["layers", "trees"] {
        symlink(options.data.join(folder), data.path().join(folder))?;
    }
    write_layer(&data.path().join(LAYER))?;
    options.data = data.path().to_owned();
    options.layers.insert(0, LAYER.into());
    let installation = options.installation;
    let runtime = EmbeddedRuntime::start(options).await?;
    Ok((Embedded::of(runtime, installation, run)?, data))
}

/// What the probes find that run in the agent's place, on a runtime with these options and this
/// folder for sockets.
pub(crate) async fn findings(options: Options, run: TempDir) -> Result<Vec<Red>> {
    let (embedded, _data) = runtime(options, run).await?;
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

/// Most kernels that an agent gets in a second.
const KERNELS_A_SECOND: u64 = 10;

/// Ways of saying too much to the launcher.
const FLOODS: [&str; 4] = ["words", "nonsense", "long", "descriptors"];

/// Z8 for an agent that was taken over: what it asks of the launcher is bounded, and others get
/// theirs as before.
pub(crate) async fn asks_too_much(options: Options, run: TempDir) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (embedded, _data) = runtime(options, run).await?;
    let lab = embedded.lab.starting(Start::Template);
    let other = lab.bare_subject(Lab::small_limits()).await?;
    let kernel_for = async |id| number(&ask(&lab, id, "/kernel").await?, "kernels");
    // The control: who asks once gets one.
    let kernels = kernel_for(other.id).await?;
    ensure!(kernels == 1, "the control failed: {kernels} kernels came");
    let template = template_of(embedded.runtime(), &lab).await?;
    let open = launcher_descriptors()?;

    let greedy = lab.bare_subject(Lab::small_limits()).await?;
    let said = ask(&lab, greedy.id, "/greed").await?;
    let (kernels, took_ms) = (number(&said, "kernels")?, number(&said, "milliseconds")?);
    let most = 1 + took_ms * KERNELS_A_SECOND / 1000;
    demand(&mut reds, (1..=most).contains(&kernels), || {
        format!("{kernels} kernels came in {took_ms} ms, at most {most} should")
    });
    greedy.remove().await?;
    for flood in FLOODS {
        let subject = lab.bare_subject(Lab::small_limits()).await?;
        let said = ask(&lab, subject.id, &format!("/flood/{flood}")).await?;
        ensure!(
            number(&said, "said")? > 0,
            "the control failed: nothing was said of {flood}"
        );
        let kernels = number(&said, "kernels")?;
        demand(&mut reds, kernels <= 1, || {
            format!("a flood of {flood} brought {kernels} kernels")
        });
        let kernels = kernel_for(other.id).await?;
        demand(&mut reds, kernels == 1, || {
            format!("after a flood of {flood} another agent gets {kernels} kernels")
        });
        subject.remove().await?;
        let next = lab.bare_subject(Lab::small_limits()).await?;
        let kernels = kernel_for(next.id).await?;
        demand(&mut reds, kernels == 1, || {
            format!("after a flood of {flood} a new sandbox gets {kernels} kernels")
        });
        next.remove().await?;
    }
    let now = template_of(embedded.runtime(), &lab).await?;
    demand(&mut reds, now == template, || {
        format!("after floods the template is {now:?} and was {template:?}")
    });
    let after = launcher_descriptors()?;
    demand(&mut reds, after <= open, || {
        format!("the launcher had {open:?} descriptors, and has {after:?} after some were sent")
    });
    other.remove().await?;
    drop(lab);
    embedded.finish().await?;
    Ok(reds)
}

fn demand(reds: &mut Vec<Red>, holds: bool, why: impl FnOnce() -> String) {
    if !holds {
        reds.push(Red::new("Z8", why()));
    }
}

fn number(said: &[Report], id: &str) -> Result<u64> {
    let report = said.iter().find(|report| report.id == id);
    let number = report.and_then(|report| report.observed.as_u64());
    number.with_context(|| format!("the impostor did not say how many {id}: {said:?}"))
}

/// How many descriptors the processes of the launcher of this test have open; nothing where that
/// is closed even to whoever started it.
fn launcher_descriptors() -> Result<Option<usize>> {
    let mut count = 0;
    for process in family(std::process::id())? {
        let folder = std::path::PathBuf::from(format!("/proc/{}", process.pid));
        let name = fs_err::read_to_string(folder.join("comm")).unwrap_or_default();
        if name.trim() != "glovebox-launch" {
            continue;
        }
        match fs_err::read_dir(folder.join("fd")) {
            Ok(entries) => count += entries.count(),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(count))
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
