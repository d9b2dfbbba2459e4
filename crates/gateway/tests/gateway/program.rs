//! The program as an administrator starts it, with real sandboxes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::gateway::{CreateSandbox, Info, SandboxView};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{Credential, Epoch, SigningKey};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options};
use hyper::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};

use crate::rig::now_ms;
use crate::sealed::options;
use crate::wire::{Answer, Pairs, Sender, Wire};

/// What a gateway of these tests is set up with.
struct Site {
    folder: tempfile::TempDir,
    installation: InstallationId,
    credential: Credential,
    written: String,
    key: Arc<SigningKey>,
}

/// A gateway that runs.
struct Running {
    child: Child,
    told: Lines<BufReader<ChildStderr>>,
}

impl Site {
    fn new() -> Self {
        let (credential, written) = Credential::generate().unwrap();
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
            installation: InstallationId::new(),
            credential,
            written,
            key: Arc::new(SigningKey::generate().unwrap()),
        };
        site.write_credentials(&site.written);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_credentials(&self, text: &str) {
        // As a careful administrator would: whole, and with the right mode from the beginning.
        let beside = self.path("credentials.new");
        fs_err::write(&beside, "").unwrap();
        fs_err::set_permissions(&beside, std::fs::Permissions::from_mode(0o600)).unwrap();
        fs_err::write(&beside, text).unwrap();
        fs_err::rename(&beside, self.path("credentials")).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox-gateway"));
        command
            .env_clear()
            .env("GLOVEBOX_DATA", glovebox_testkit::test_data().unwrap())
            .env("GLOVEBOX_RUN", self.run_folder())
            .env("GATEWAY_RUNTIME", "embedded")
            .env(
                "GATEWAY_LISTEN",
                format!("unix:{}", self.path("socket").display()),
            )
            .env("GATEWAY_CREDENTIALS_FILE", self.path("credentials"))
            .env("GATEWAY_AGENT_KEYS", self.key.public().to_string())
            .env("GATEWAY_INSTALLATION_ID", self.installation.to_string())
            .env("GATEWAY_STATE_DIR", self.path("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn start(&self) -> Running {
        Running::hearing(self.command().spawn().unwrap()).await
    }

    async fn wire(&self) -> Wire {
        Wire::over(UnixStream::connect(self.path("socket")).await.unwrap()).await
    }

    /// Whoever signs, after it has learned whom for.
    async fn sender(&self, wire: &mut Wire) -> Sender {
        let refused = wire.send("GET", "/v1/info", &[], b"").await.unwrap();
        let header = |name| refused.header(name).unwrap().to_owned();
        Sender {
            installation: self.installation,
            gateway: header("x-glovebox-gateway").parse().unwrap(),
            epoch: header("x-glovebox-gateway-epoch").parse().unwrap(),
            credential: self.credential.clone(),
            ahead_ms: 0,
        }
    }

    fn request(&self, id: SandboxId) -> CreateSandbox {
        CreateSandbox {
            id,
            installation: self.installation,
            image: None,
            limits: Limits::of(ResourceClass::Small),
            input_limits: InputLimits {
                file_bytes: 200 << 20,
                total_bytes: 400 << 20,
            },
            trust_domain: "tests".into(),
            start: Start::Fresh,
            idle_limit_ms: None,
            hard_deadline_ms: now_ms() + 3_600_000,
            start_limit_ms: 60_000,
            is_unclaimed: false,
        }
    }

    async fn create(&self, sender: &Sender, wire: &mut Wire, asked: &CreateSandbox) -> Answer {
        let body = serde_json::to_vec(asked).unwrap();
        let pairs = sender.outer("POST", "/v1/sandboxes", &body);
        let answer = wire.send("POST", "/v1/sandboxes", &pairs, &body).await;
        answer.unwrap()
    }

    async fn make(&self, sender: &Sender, wire: &mut Wire, id: SandboxId) -> (SandboxId, Epoch) {
        let answer = self.create(sender, wire, &self.request(id)).await;
        let view: SandboxView = answer.document();
        (view.id, view.agent_epoch.unwrap())
    }

    /// Where a request for an agent goes, and its two signatures.
    fn twice(
        &self,
        sender: &Sender,
        of: (SandboxId, Epoch),
        (method, inside): (&str, &str),
        body: &[u8],
    ) -> (String, Pairs) {
        let target = format!("/v1/sandboxes/{}/agent{inside}", of.0);
        let mut pairs = sender.outer(method, &target, body);
        pairs.extend(sender.inner(&self.key, of, (method, inside), body));
        (target, pairs)
    }

    async fn ask_agent(
        &self,
        sender: &Sender,
        wire: &mut Wire,
        of: (SandboxId, Epoch),
        route: (&str, &str),
        body: &[u8],
    ) -> Answer {
        let (target, pairs) = self.twice(sender, of, route, body);
        wire.send(route.0, &target, &pairs, body).await.unwrap()
    }

    /// Ends the launcher, which outlives its gateway, and all that it has made.
    async fn clean(&self) {
        self.launcher().await.shut_down().await.unwrap();
    }

    /// The launcher, which one gateway or this can speak to at a time.
    async fn launcher(&self) -> EmbeddedRuntime {
        let options = Options {
            run: self.run_folder(),
            installation: self.installation,
            afterwards: Afterwards::TheyGoOn,
            ..options()
        };
        EmbeddedRuntime::start(options).await.unwrap()
    }

    fn run_folder(&self) -> PathBuf {
        if rustix::process::geteuid().is_root() {
            "/run/glovebox-test".into()
        } else {
            self.path("run")
        }
    }

    /// What the program says before it ends by itself.
    async fn failure(&self, change: impl FnOnce(&mut Command)) -> String {
        let mut command = self.command();
        change(&mut command);
        let output = command.output().await.unwrap();
        assert!(!output.status.success(), "it did not fail");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Running {
    /// One that was started, once it listens.
    async fn hearing(mut child: Child) -> Self {
        let told = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut running = Self { child, told };
        running.hear("listening").await;
        running
    }

    /// Waits until the program has told of an event.
    async fn hear(&mut self, event: &str) -> Value {
        loop {
            let line = self.told.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended before `{event}`"));
            let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            if told["event"] == event {
                return told;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn end(mut self, signal: Signal) {
        self.signal(signal);
        self.child.wait().await.unwrap();
    }

    fn peak_kib(&self) -> u64 {
        peak_kib(self.child.id().unwrap())
    }
}

/// The most memory that a program ever had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_ascii_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

async fn fingerprint(site: &Site) -> String {
    let output = site.command().arg("fingerprint").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_in_a_line_each() {
    let site = Site::new();
    let said = site
        .failure(|command| {
            command.env("GATEWAY_LISTEN", "0.0.0.0:0");
            command.env("GATEWAY_AGENT_KEYS", "none");
            command.env_remove("GATEWAY_INSTALLATION_ID");
        })
        .await;
    for variable in [
        "GATEWAY_LISTEN",
        "GATEWAY_AGENT_KEYS",
        "GATEWAY_INSTALLATION_ID",
    ] {
        let lines = said.lines().filter(|line| line.contains(variable)).count();
        assert!(lines >= 1, "{variable}: {said}");
    }
}

#[tokio::test]
async fn the_fingerprint_is_printed_at_the_first_start_and_stays() {
    let site = Site::new();
    let early = site.command().arg("fingerprint").output().await.unwrap();
    assert!(!early.status.success());
    let start = async || {
        let mut command = site.command();
        command.env("GATEWAY_LISTEN", "127.0.0.1:0");
        let mut child = command.spawn().unwrap();
        let told = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut running = Running { child, told };
        let told = running.hear("listening").await;
        running.signal(Signal::TERM);
        let mut printed = String::new();
        let stdout = running.child.stdout.as_mut().unwrap();
        stdout.read_to_string(&mut printed).await.unwrap();
        assert!(running.child.wait().await.unwrap().success());
        (told["fingerprint"].as_str().unwrap().to_owned(), printed)
    };
    let (first, printed) = start().await;
    assert_eq!(printed, format!("fingerprint {first}\n"));
    let (second, printed) = start().await;
    assert_eq!((&second, printed.as_str()), (&first, ""));
    assert_eq!(fingerprint(&site).await, first);
    assert_eq!(first.len(), 64);
    site.clean().await;
}

#[tokio::test]
async fn a_state_folder_has_one_owner_and_is_nobody_elses() {
    let site = Site::new();
    let running = site.start().await;
    let said = site
        .failure(|command| {
            command.env("GATEWAY_LISTEN", "127.0.0.1:0");
        })
        .await;
    assert!(said.contains("in use by another gateway"), "{said}");
    running.end(Signal::TERM).await;
    let open = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(site.path("state"), open).unwrap();
    let said = site.failure(|_| ()).await;
    assert!(said.contains("its mode is 755"), "{said}");
    let closed = std::fs::Permissions::from_mode(0o700);
    fs_err::set_permissions(site.path("state"), closed).unwrap();
    let key = site.path("state/tls-key.der");
    fs_err::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    let said = site.failure(|_| ()).await;
    assert!(said.contains("tls-key.der"), "{said}");
    site.clean().await;
}

#[tokio::test]
async fn what_is_kept_ready_is_what_the_present_life_was_told() {
    let site = Site::new();
    for kept in [
        Some("2:SMALL:tests,1:MEDIUM:others"),
        Some("1:SMALL:tests"),
        None,
    ] {
        let mut command = site.command();
        command.envs(kept.map(|kept| ("GATEWAY_KEEP_READY", kept)));
        let running = Running::hearing(command.spawn().unwrap()).await;
        running.end(Signal::TERM).await;
        let measured = site.launcher().await.measure().await.unwrap();
        let pools = measured.pools.iter().map(|pool| {
            let class = ResourceClass::ALL.into_iter();
            let class = class.filter(|class| Limits::of(*class) == pool.kind.limits);
            let class = class.map(ResourceClass::name).next().unwrap();
            format!("{}:{class}:{}", pool.wanted, pool.kind.trust_domain)
        });
        let pools = pools.collect::<Vec<_>>().join(",");
        assert_eq!(pools, kept.unwrap_or_default());
    }
    site.clean().await;
}

#[tokio::test]
async fn credentials_change_while_the_gateway_runs() {
    let mut site = Site::new();
    let mut running = site.start().await;
    let mut wire = site.wire().await;
    let mut sender = site.sender(&mut wire).await;
    let ask = async |sender: &Sender, wire: &mut Wire| {
        let pairs = sender.outer("GET", "/v1/info", b"");
        wire.send("GET", "/v1/info", &pairs, b"").await.unwrap()
    };
    assert_eq!(ask(&sender, &mut wire).await.status, StatusCode::OK);
    let (new, written) = Credential::generate().unwrap();
    site.write_credentials(&format!("{written}\n{}\n", site.written));
    running.hear("credentials_loaded").await;
    let info: Info = ask(&sender, &mut wire).await.document();
    assert_eq!(info.credentials.len(), 2);
    assert!(!info.credentials[0].is_yours && info.credentials[1].is_yours);
    // What cannot be used changes nothing.
    site.write_credentials("gbg_oops");
    let told = running.hear("credentials_not_loaded").await;
    assert!(!told.to_string().contains("oops"), "{told}");
    assert_eq!(ask(&sender, &mut wire).await.status, StatusCode::OK);
    site.write_credentials(&written);
    running.signal(Signal::HUP);
    running.hear("credentials_loaded").await;
    assert_eq!(ask(&sender, &mut wire).await.code(), "auth_rejected");
    sender.credential = new.clone();
    site.credential = new;
    assert_eq!(ask(&sender, &mut wire).await.status, StatusCode::OK);
    running.end(Signal::TERM).await;
    site.clean().await;
}

#[tokio::test]
async fn a_large_file_goes_through_without_being_held_in_memory() {
    let site = Site::new();
    let running = site.start().await;
    let mut wire = site.wire().await;
    let sender = site.sender(&mut wire).await;
    let of = site.make(&sender, &mut wire, SandboxId::new()).await;
    let put = async |wire: &mut Wire, body: &[u8]| {
        let route = ("PUT", "/v1/files/large");
        site.ask_agent(&sender, wire, of, route, body).await
    };
    assert_eq!(put(&mut wire, &[1; 1 << 20]).await.status, StatusCode::OK);
    let before = running.peak_kib();
    let answer = put(&mut wire, &vec![7; 100 << 20]).await;
    assert_eq!(answer.status, StatusCode::OK);
    let more = running.peak_kib() - before;
    assert!(more < 8 * 1024, "{more} KiB more for 100 MiB");
    running.end(Signal::TERM).await;
    site.clean().await;
}

#[tokio::test]
async fn refused_requests_leave_nothing_in_memory() {
    let site = Site::new();
    let Running {
        mut child,
        mut told,
    } = site.start().await;
    // A journal that nobody reads would hold the gateway up.
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = told.next_line().await {} });
    let mut wire = site.wire().await;
    let mut sender = site.sender(&mut wire).await;
    let pid = child.id().unwrap();
    let mut peaks = Vec::new();
    for count in [2_000, glovebox_testkit::count(20_000, 500_000)] {
        for number in 0..count {
            // Now one without a signature, now one with another's.
            sender.credential = Credential::generate().unwrap().0;
            let pairs = match number % 2 {
                0 => Vec::new(),
                _ => sender.outer("GET", "/v1/info", b""),
            };
            let answer = wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        }
        peaks.push(peak_kib(pid));
    }
    let more = peaks[1] - peaks[0];
    assert!(more < 2 * 1024, "{more} KiB more");
    child.kill().await.unwrap();
    reading.await.unwrap();
    site.clean().await;
}
