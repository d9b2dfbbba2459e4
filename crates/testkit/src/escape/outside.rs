//! Checks with the outside: listeners of this machine, requests for another, secrets of whoever
//! launches.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use glovebox_protocol::artifact::Sweep;

use super::attacks::host::Agent;
use super::batch::{self, Position};
use super::lab::{Lab, probe_argv};
use super::report::{Red, demand};

/// N7: nothing outside connects to a socket that is planted in the workspace, whatever is asked
/// of the agent.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn planted_listener(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let mut holding = subject
        .start_probe(
            "sibling.py",
            &["hold", "listener", "/workspace/planted.json"],
        )
        .await?;
    holding.until("ready").await?;
    let name = "planted.json".parse()?;
    let got = subject.client.get_bytes(&name, 1024).await;
    demand(&mut reds, "N7", got.is_err(), || {
        "a socket could be fetched".into()
    });
    subject.client.list(None).await?;
    subject.client.stat(&name).await?;
    subject.client.sweep(&Sweep::default()).await?;
    let held = holding.interrupt().await?;
    demand(
        &mut reds,
        "N7",
        held.text("own connection")? == "ok",
        || "the control failed: a connection of its own was not seen".into(),
    );
    let connections = held.number("connections")?;
    demand(&mut reds, "N7", connections == 0, || {
        format!("{connections} connections came to a planted socket")
    });
    subject.remove().await?;
    Ok(reds)
}

/// N1, N3, N4 and N8: listeners on this machine that a sandbox must not reach.
///
/// # Errors
/// When the sandbox cannot be made or does not play along, or the control fails.
pub async fn listeners_outside(lab: &Lab) -> Result<Vec<Red>> {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    let mut reds = Vec::new();
    let tcp = TcpListener::bind("0.0.0.0:0")?;
    let udp = UdpSocket::bind("0.0.0.0:0")?;
    for socket in [&tcp as &dyn SetNonblocking, &udp] {
        socket.set()?;
    }
    let name = format!("glovebox-probe-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            &name,
        )?;
    let by_name = UnixListener::bind_addr(&address)?;
    by_name.set_nonblocking(true)?;
    let (tcp_port, udp_port) = (tcp.local_addr()?.port(), udp.local_addr()?.port());

    // The control: this side reaches each of them.
    TcpStream::connect(("127.0.0.1", tcp_port)).context("the control of the TCP listener")?;
    UdpSocket::bind("127.0.0.1:0")?.send_to(b"control", ("127.0.0.1", udp_port))?;
    std::os::unix::net::UnixStream::connect_addr(&address)
        .context("the control of the abstract socket")?;
    let control = heard(&tcp, &udp, &by_name);
    demand(&mut reds, "N1", control == [1, 1, 1], || {
        format!("the control failed: the listeners heard {control:?}")
    });

    let targets = format!("tcp,127.0.0.1,{tcp_port} udp,127.0.0.1,{udp_port}");
    let env = BTreeMap::from([
        ("PROBE_TARGETS".to_owned(), targets),
        ("PROBE_ABSTRACT".to_owned(), name),
    ]);
    let subject = lab.subject(Lab::small_limits()).await?;
    let checks = ["N1", "N2", "N3", "N4", "N8", "N10", "N11"];
    let reports = batch::reports(&subject, Position::First, &checks, env).await?;
    let facts = batch::facts(lab, &subject, Position::First)?;
    let table = super::expectations::of_checks(&checks);
    reds.extend(super::expect::judge(&table, &reports, &facts));
    subject.remove().await?;
    let inside = heard(&tcp, &udp, &by_name);
    demand(&mut reds, "N1", inside == [0, 0, 0], || {
        format!("the listeners outside heard {inside:?} from inside")
    });
    Ok(reds)
}

trait SetNonblocking {
    fn set(&self) -> std::io::Result<()>;
}

impl SetNonblocking for std::net::TcpListener {
    fn set(&self) -> std::io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl SetNonblocking for std::net::UdpSocket {
    fn set(&self) -> std::io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// How often each listener was reached since it was last asked.
fn heard(
    tcp: &std::net::TcpListener,
    udp: &std::net::UdpSocket,
    by_name: &UnixListener,
) -> [usize; 3] {
    let mut buffer = [0; 64];
    [
        std::iter::from_fn(|| tcp.accept().ok()).count(),
        std::iter::from_fn(|| udp.recv(&mut buffer).ok()).count(),
        std::iter::from_fn(|| by_name.accept().ok()).count(),
    ]
}

/// N9: descriptors that a kernel sends to its agent are not kept.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn descriptors_to_the_agent(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    subject.kernel("1").await?;
    let agent = Agent::of(&subject).await?;
    let before = agent.open()?.map(|open| open.len());
    let code = "import sys\n\
                sys.path.insert(0, '/workspace/probes')\n\
                import sibling\n\
                print(sum(sibling.send_rights_on_every_socket() for _ in range(20)))";
    let ran = subject.kernel(code).await;
    // The agent may have taken the message for the end of the kernel; it must not keep what came.
    let sent = ran
        .as_ref()
        .map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
    subject.client.shut_down_kernel().await.ok();
    subject.kernel("1").await?;
    let after = agent.open()?.map(|open| open.len());
    demand(
        &mut reds,
        "N9",
        after <= before.map(|number| number + 4),
        || {
            format!(
                "the agent had {before:?} descriptors, and has {after:?} after {sent:?} were sent"
            )
        },
    );
    let reached = matches!(&sent, Ok(text) if text.trim().parse::<u32>().is_ok_and(|n| n > 0))
        || sent.is_err()
        || ran.is_ok_and(|ran| !ran.outcome.is_success());
    demand(&mut reds, "N9", reached, || {
        "the control failed: nothing could be sent".into()
    });
    subject.remove().await?;
    Ok(reds)
}

/// S9: a request that was signed for one sandbox is refused by another.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn replayed_request(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let first = lab.bare_subject(Lab::small_limits()).await?;
    let second = lab.bare_subject(Lab::small_limits()).await?;
    let (epoch, other) = (
        first.client.health().await?.epoch,
        second.client.health().await?.epoch,
    );
    let request = super::replay::signed_status(lab, first.id, epoch)?;
    let control = super::replay::status_of(lab, first.id, &request).await?;
    demand(&mut reds, "S9", control == 200, || {
        format!("the control was answered {control}")
    });
    let again = super::replay::status_of(lab, first.id, &request).await?;
    demand(&mut reds, "S9", again == 401, || {
        format!("a replay was answered {again}")
    });
    // For another sandbox, and also as if that one were in the same life.
    for epoch in [epoch, other] {
        let request = super::replay::signed_status(lab, first.id, epoch)?;
        let answer = super::replay::status_of(lab, second.id, &request).await?;
        demand(&mut reds, "S9", answer == 401, || {
            format!("a request for another sandbox was answered {answer}")
        });
    }
    first.remove().await?;
    second.remove().await?;
    Ok(reds)
}

/// S1 and S3: a word that the launching process has in its environment, its arguments and its
/// files is nowhere inside.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn secret_of_the_launcher(lab: &Lab, word: &str) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let inverted: String = word
        .bytes()
        .map(|byte| format!("{:02x}", byte ^ 0xff))
        .collect();
    let env = BTreeMap::from([("PROBE_CANARY_INVERTED".to_owned(), inverted)]);
    for position in [Position::First, Position::Kernel] {
        for report in batch::reports(&subject, position, &["S1", "S3"], env.clone()).await? {
            let found = report.id == "S3/places" && report.observed != serde_json::json!([]);
            demand(&mut reds, "S3", !found, || {
                format!(
                    "a secret of the launching process is in {}",
                    report.observed
                )
            });
        }
    }
    // The control: the same search finds the word where it was put.
    let argv = probe_argv("probe_batch.py", &["S3"]);
    let mut planted = env;
    planted.insert("PLANTED".into(), word.into());
    let ran = subject.start(argv, planted, 60_000).await?.to_end().await?;
    let places = ran.observed("S3/places")?.observed.to_string();
    demand(&mut reds, "S3", places.contains("environ"), || {
        format!("the control failed: a planted word was found in {places}")
    });
    let agent = Agent::of(&subject).await?.words()?;
    let found = agent
        .windows(word.len())
        .any(|part| part == word.as_bytes());
    demand(&mut reds, "S3", !found, || {
        "the agent's words hold the secret".into()
    });
    subject.remove().await?;
    Ok(reds)
}

/// The files below a folder of this machine that hold these bytes and were written after some
/// moment; links are not followed.
///
/// # Errors
/// When it cannot be read.
pub fn folder_holds(folder: &Path, word: &[u8], since: SystemTime) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(path) = left.pop() {
        let facts = fs_err::symlink_metadata(&path)?;
        if facts.is_dir() {
            for entry in fs_err::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else if facts.is_file() && facts.modified()? >= since {
            let mut bytes = Vec::new();
            fs_err::File::open(&path)?
                .take(64 * 1024 * 1024)
                .read_to_end(&mut bytes)?;
            if bytes.windows(word.len()).any(|part| part == word) {
                found.push(path);
            }
        }
    }
    Ok(found)
}
