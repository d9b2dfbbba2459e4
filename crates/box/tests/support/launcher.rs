//! Starting a launcher and asking it for boxes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use glovebox_box::control::{
    BoxFacts, BoxKind, BoxSpec, DEFAULT_ROOT_RANGE_START, Fault, FromLauncher, LauncherConfig,
    PodFacts, PoolFacts, Renewal, TemplateFacts, ToLauncher,
};
use glovebox_box::weakness::Weakness;
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::launcher_line::ToAgent;
use glovebox_protocol::limits::{InputLimits, Limits};
use serde::Deserialize;
use tempfile::TempDir;

use super::groups;
use super::oracle::Pod;
use super::tree;
use super::user::Account;

/// A launcher that runs.
pub(crate) struct Launcher {
    pub child: Child,
    pub facts: PodFacts,
    line: Option<BufReader<UnixStream>>,
    run: Option<TempDir>,
    pod: Pod,
    _ids: Ids,
}

impl Drop for Launcher {
    /// The folder must outlive the launcher.
    fn drop(&mut self) {
        self.line = None;
        let _ = self.child.wait();
    }
}

/// How a program in a box ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// What a launcher said that could not start.
pub(crate) struct Refused {
    pub fault: Fault,
    /// Where its run folder was.
    pub run: TempDir,
}

/// Host ids for one test's pod, which no other test has at the same time.
pub(crate) struct Ids {
    pub(crate) range: Range<u32>,
    _lock: File,
}

impl Ids {
    /// Takes the first free range behind the usual one.
    pub(crate) fn take() -> Self {
        for number in 1..1000 {
            let path = super::scratch(&format!("range-{number}.lock"));
            let lock = fs_err::File::create(path).unwrap().into_parts().0;
            if lock.try_lock().is_ok() {
                let start = DEFAULT_ROOT_RANGE_START + number * 65_536;
                return Self {
                    range: start..start + 65_536,
                    _lock: lock,
                };
            }
        }
        panic!("no range of ids is free");
    }
}

impl Launcher {
    /// Starts one as the user that runs the tests.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_as(data, None, &[]).unwrap()
    }

    /// What belongs to it.
    pub(crate) fn pod(&self) -> Pod {
        self.pod.clone()
    }

    /// Starts one whose run folder has a long name.
    pub(crate) fn start_below(data: &Path, name: &str) -> Self {
        Self::start_in(data, name, None, &[]).ok().unwrap()
    }

    /// Starts one, as another user if one is given.
    pub(crate) fn start_as(
        data: &Path,
        user: Option<&Account>,
        accept_weaker: &[Weakness],
    ) -> Result<Self, Fault> {
        Self::start_in(data, "run-", user, accept_weaker).map_err(|refused| refused.fault)
    }

    /// Starts one as root where the kernel makes no user namespaces: it makes none for a process
    /// whose root is not that of its mounts.
    pub(crate) fn refused_without_user_namespaces(data: &Path) -> Refused {
        let mut command = Command::new("unshare");
        let script = "mount --rbind / /mnt && exec chroot /mnt \"$1\"";
        command.args(["--mount", "--propagation", "private"]).args([
            "sh",
            "-c",
            script,
            "sh",
            super::launcher_for_all(),
        ]);
        match Self::speak_to((command, 0), data, run_folder("run-"), &[]) {
            Ok(_) => panic!("the launcher started"),
            Err(refused) => refused,
        }
    }

    /// Starts one as root that sees version 2 of control groups alone; `None` where both versions
    /// are not there, or nobody may take one away.
    pub(crate) fn start_on_version_two(data: &Path) -> Option<Self> {
        let mounts = fs_err::read_to_string("/proc/self/mounts").unwrap();
        let has = |kind: &str| {
            mounts
                .lines()
                .any(|line| line.split(' ').nth(2) == Some(kind))
        };
        if !super::user::is_root() || !has("cgroup") || !has("cgroup2") {
            return None;
        }
        let mut command = Command::new("unshare");
        let script = "umount --all --types cgroup && exec \"$1\"";
        command.args(["--mount", "--propagation", "private"]).args([
            "sh",
            "-c",
            script,
            "sh",
            super::launcher_for_all(),
        ]);
        // Its controllers are all taken by version 1.
        let accepted = [
            Weakness::MemoryLimit,
            Weakness::SwapLimit,
            Weakness::CpuLimit,
            Weakness::ProcessLimit,
        ];
        match Self::speak_to((command, 0), data, run_folder("run-"), &accepted) {
            Ok(launcher) => Some(launcher),
            Err(refused) => panic!("{}", refused.fault),
        }
    }

    fn start_in(
        data: &Path,
        name: &str,
        user: Option<&Account>,
        accept_weaker: &[Weakness],
    ) -> Result<Self, Refused> {
        let run = run_folder(name);
        let command = match user {
            Some(user) => {
                std::os::unix::fs::chown(run.path(), Some(user.uid), Some(user.gid)).unwrap();
                (user.command(super::launcher_for_all()), user.uid)
            }
            None => (
                Command::new(super::launcher_for_all()),
                rustix::process::geteuid().as_raw(),
            ),
        };
        Self::speak_to(command, data, run, accept_weaker)
    }

    /// Starts one that makes anew what is there in advance when it is told to.
    pub(crate) fn start_renewing(data: &Path, renewal: Renewal) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let command = (Command::new(super::launcher_for_all()), uid);
        let run = run_folder("run-");
        Self::speak_of(command, data, run, &[], renewal)
            .ok()
            .unwrap()
    }

    fn speak_to(
        command: (Command, u32),
        data: &Path,
        run: TempDir,
        accept_weaker: &[Weakness],
    ) -> Result<Self, Refused> {
        Self::speak_of(command, data, run, accept_weaker, Renewal::default())
    }

    fn speak_of(
        (mut command, uid): (Command, u32),
        data: &Path,
        run: TempDir,
        accept_weaker: &[Weakness],
        renewal: Renewal,
    ) -> Result<Self, Refused> {
        let ids = Ids::take();
        let (ours, theirs) = UnixStream::pair().unwrap();
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        ours.set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut line = BufReader::new(ours);
        say(
            &line,
            &LauncherConfig {
                data: data.to_owned(),
                run: run.path().to_owned(),
                installation: InstallationId::new(),
                root_range_start: ids.range.start,
                accept_weaker: accept_weaker.to_vec(),
                renewal,
                stays: false,
            },
        );
        match hear(&mut line) {
            Some(FromLauncher::Ready(facts)) => Ok(Self {
                pod: Pod {
                    ids: ids.range.clone(),
                    bases: groups::bases(uid, child.id()),
                    run: run.path().file_name().unwrap().to_str().unwrap().into(),
                    launcher: child.id(),
                },
                child,
                facts,
                line: Some(line),
                run: Some(run),
                _ids: ids,
            }),
            Some(FromLauncher::Failed { fault, .. }) => {
                child.wait().unwrap();
                Err(Refused { fault, run })
            }
            other => panic!("the launcher said {other:?}"),
        }
    }

    /// Asks for a box.
    pub(crate) fn create(&mut self, spec: BoxSpec) -> Result<BoxFacts, Fault> {
        say(
            self.line(),
            &ToLauncher::Create {
                id: 7,
                spec: Box::new(spec),
            },
        );
        match self.hear() {
            FromLauncher::Created { id: 7, facts } => Ok(facts),
            FromLauncher::Failed { id: 7, fault } => Err(fault),
            other => panic!("the launcher said {other:?}"),
        }
    }

    /// Asks for something and does not wait for the answer.
    pub(crate) fn ask(&mut self, request: &ToLauncher) {
        say(self.line(), request);
    }

    /// Asks for a box and does not wait for it.
    pub(crate) fn begin(&mut self, id: u64, spec: &BoxSpec) {
        let spec = Box::new(spec.clone());
        self.ask(&ToLauncher::Create { id, spec });
    }

    /// Keeps so many boxes of a kind ready, and waits until they are.
    pub(crate) fn keep_ready(&mut self, kind: &BoxKind, count: u32) -> PoolFacts {
        self.ask_to_keep(kind, count);
        self.pool_once(|pool| pool.ready == count)
    }

    /// Asks for boxes to be kept ready.
    pub(crate) fn ask_to_keep(&mut self, kind: &BoxKind, count: u32) {
        let kind = kind.clone();
        self.ask(&ToLauncher::KeepReady {
            id: 11,
            kind,
            count,
        });
        assert_eq!(self.hear(), FromLauncher::Kept { id: 11 });
    }

    /// Waits until the one pool is as it should be.
    pub(crate) fn pool_once(&mut self, is_right: impl Fn(&PoolFacts) -> bool) -> PoolFacts {
        let start = Instant::now();
        loop {
            let pool = self.pools().pop().unwrap();
            if is_right(&pool) {
                return pool;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{pool:?}");
            super::oracle::moment();
        }
    }

    /// Asks how the pools do.
    pub(crate) fn pools(&mut self) -> Vec<PoolFacts> {
        self.ask(&ToLauncher::Measure { id: 12 });
        match self.hear() {
            FromLauncher::Measured { id: 12, pools, .. } => pools,
            other => panic!("the launcher said {other:?}"),
        }
    }

    /// The sockets of all boxes, the oldest first.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let entries = fs_err::read_dir(self.run.as_ref().unwrap().path()).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.parse::<SandboxId>().is_ok()
        });
        paths.sort();
        paths
    }

    /// Asks for a box to be removed.
    pub(crate) fn remove(&mut self, sandbox: SandboxId) {
        say(self.line(), &ToLauncher::Remove { id: 8, sandbox });
        match self.hear() {
            FromLauncher::Removed { id: 8 } => {}
            other => panic!("the launcher said {other:?}"),
        }
    }

    /// Asks which boxes there are.
    pub(crate) fn list(&mut self) -> Vec<BoxFacts> {
        say(self.line(), &ToLauncher::List { id: 9 });
        match self.hear() {
            FromLauncher::Listed { id: 9, boxes } => boxes,
            other => panic!("the launcher said {other:?}"),
        }
    }

    /// Asks how the pools and the templates do.
    pub(crate) fn measure(&mut self) -> (Vec<PoolFacts>, Vec<TemplateFacts>) {
        say(self.line(), &ToLauncher::Measure { id: 10 });
        match self.hear() {
            FromLauncher::Measured {
                id: 10,
                pools,
                templates,
                ..
            } => (pools, templates),
            other => panic!("the launcher said {other:?}"),
        }
    }

    /// The next thing that it says.
    pub(crate) fn hear(&mut self) -> FromLauncher {
        hear(self.line()).expect("the launcher has ended")
    }

    /// Closes the line and waits for its end.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.line = None;
        self.child.wait().unwrap()
    }

    /// Kills it without a chance to clean up. Its run folder stays as it is, and its ids stay
    /// taken for as long as this value lives.
    pub(crate) fn kill(&mut self) -> PathBuf {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.run.take().unwrap().keep()
    }

    fn line(&mut self) -> &mut BufReader<UnixStream> {
        self.line.as_mut().unwrap()
    }
}

fn run_folder(name: &str) -> TempDir {
    tempfile::Builder::new()
        .prefix(name)
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir()
        .unwrap()
}

/// A spec of a small box.
pub(crate) fn spec() -> BoxSpec {
    BoxSpec {
        sandbox: SandboxId::new(),
        kind: BoxKind {
            trust_domain: "test".into(),
            start: Start::Fresh,
            limits: Limits {
                memory_bytes: 256 * 1024 * 1024,
                workspace_bytes: 16 * 1024 * 1024,
                workspace_inodes: 64,
                ..Limits::of(ResourceClass::Small)
            },
            layers: tree::LAYERS.map(str::to_owned).into(),
        },
        keys: Vec::new(),
        input_limits: InputLimits::default(),
        idle_limit_ms: None,
        is_unclaimed: false,
        hard_deadline_ms: None,
        #[cfg(feature = "mutations")]
        mutations: Vec::new(),
    }
}

/// What the agent of a box sees of itself.
pub(crate) fn posture(facts: &BoxFacts) -> BTreeMap<String, String> {
    serde_json::from_str(&order(facts, r#"{"do":"posture"}"#)).unwrap()
}

/// The folder of a box in the first hierarchy.
pub(crate) fn group_of(pod: &Pod, facts: &BoxFacts) -> PathBuf {
    folder_of(pod).unwrap().join(facts.sandbox.to_string())
}

/// The names of all groups of boxes in the first hierarchy, also of those that have none yet.
pub(crate) fn groups_of_boxes(pod: &Pod) -> BTreeSet<String> {
    let groups = folder_of(pod).map(|folder| fs_err::read_dir(folder).unwrap());
    let groups = groups.into_iter().flatten().map(|entry| entry.unwrap());
    groups
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name == "next" || name.parse::<SandboxId>().is_ok())
        .collect()
}

/// The folder of the pod in the first hierarchy.
fn folder_of(pod: &Pod) -> Option<PathBuf> {
    let pods = fs_err::read_dir(&pod.bases[0]).unwrap();
    pods.map(|entry| entry.unwrap())
        .find(|entry| entry.file_name().to_string_lossy().ends_with(&pod.run))
        .map(|entry| entry.path())
}

/// Lets the agent of a box run a program without the exec helper.
pub(crate) fn run_as_agent(facts: &BoxFacts, argv: &[&str]) -> Ran {
    let order_text = serde_json::json!({"do": "run", "argv": argv}).to_string();
    serde_json::from_str(&order(facts, &order_text)).unwrap()
}

/// Lets the agent of a box run a program as a workload.
pub(crate) fn run(facts: &BoxFacts, argv: &[&str]) -> Ran {
    run_with(facts, argv, "")
}

/// The same, with something to read.
pub(crate) fn run_with(facts: &BoxFacts, argv: &[&str], stdin: &str) -> Ran {
    let groups = posture(facts)["config"].clone();
    let config: glovebox_protocol::agent_config::AgentConfig =
        serde_json::from_str(&groups).unwrap();
    let mut all = vec![
        config.exec_helper.clone(),
        "--uid".into(),
        config.ids.workload.to_string(),
        "--gid".into(),
        config.ids.workload.to_string(),
        "--cwd".into(),
        "/workspace".into(),
        "--open-files".into(),
        config.limits.open_files.to_string(),
        "--file-size".into(),
        config.limits.file_size_bytes.to_string(),
    ];
    for group in &config.fds.workload_cgroups {
        all.extend(["--cgroup".into(), group.to_string()]);
    }
    all.push("--".into());
    all.extend(argv.iter().map(|argument| (*argument).to_owned()));
    let order_text = serde_json::json!({
        "do": "run",
        "argv": all,
        "stdin": stdin,
        "environment": {"PATH": "/opt/python/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"},
    })
    .to_string();
    serde_json::from_str(&order(facts, &order_text)).unwrap()
}

/// A spec of a small box whose kernel is copied from a template.
pub(crate) fn template_spec() -> BoxSpec {
    let mut spec = spec();
    spec.kind.start = Start::Template;
    spec
}

/// Waits for the kernel that comes unasked. Gives its process id, or why there is none.
pub(crate) fn kernel(facts: &BoxFacts) -> Result<i32, String> {
    next_kernel(facts, false)
}

/// Lets the agent ask for another kernel.
pub(crate) fn another_kernel(facts: &BoxFacts) -> Result<i32, String> {
    next_kernel(facts, true)
}

fn next_kernel(facts: &BoxFacts, ask: bool) -> Result<i32, String> {
    let text = order(
        facts,
        &serde_json::json!({"do": "kernel", "ask": ask}).to_string(),
    );
    match serde_json::from_str(&text).unwrap() {
        ToAgent::Kernel { pid } => Ok(pid),
        ToAgent::NoKernel { reason } => Err(reason),
        other => panic!("the launcher said {other:?}"),
    }
}

/// Lets a kernel run code, and gives what that printed.
pub(crate) fn tell(facts: &BoxFacts, pid: i32, code: &str) -> String {
    order(
        facts,
        &serde_json::json!({"do": "tell", "pid": pid, "code": code}).to_string(),
    )
}

/// Hangs up on a kernel, and gives the status with which it ended.
pub(crate) fn hang_up(facts: &BoxFacts, pid: i32) -> String {
    order(
        facts,
        &serde_json::json!({"do": "hang_up", "pid": pid}).to_string(),
    )
}

/// Gives the agent of a box an order and waits for the answer.
pub(crate) fn order(facts: &BoxFacts, order: &str) -> String {
    order_at(&facts.socket, order)
}

/// The same for the box with this socket.
pub(crate) fn order_at(socket: &Path, order: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(order.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn say(line: &BufReader<UnixStream>, message: &impl serde::Serialize) {
    let mut text = serde_json::to_vec(message).unwrap();
    text.push(b'\n');
    let mut stream = line.get_ref();
    stream.write_all(&text).unwrap();
}

fn hear(line: &mut BufReader<UnixStream>) -> Option<FromLauncher> {
    let mut text = String::new();
    let count = line.read_line(&mut text).unwrap();
    (count > 0).then(|| serde_json::from_str(&text).unwrap())
}
