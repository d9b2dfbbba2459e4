//! The runtime under test, and short words for what the checks do with it.

use std::pin::Pin;
use std::sync::Arc;

use glovebox_client::{AgentClient, Execution, GatewayClient, Identity};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::event::{Ended, EventBody};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, InstallationId, SandboxId};
use glovebox_protocol::kernel::{Execute, StartKernel};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::process::{Argument, StartProcess, Stdin};
use glovebox_protocol::sign::SigningKey;

use crate::{AgentConnector, Capability, Runtime, SandboxSpec, Start};

/// How long a program of a check may run; reaching it is a failure.
const PATIENCE_MS: u64 = 60_000;

/// Runs after the last check, to take down what the runtime stands on.
type Finish = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>>>;

/// The runtime under test.
pub struct Subject {
    pub runtime: Arc<dyn Runtime>,
    pub installation: InstallationId,
    pub key: Arc<SigningKey>,
    pub start: Start,
    python: Argument,
    gateway: Option<GatewayClient>,
    finish: Option<Finish>,
}

impl Subject {
    /// A subject whose sandboxes have their Python at `python`, and whose kernels start afresh.
    pub fn new(runtime: Arc<dyn Runtime>, installation: InstallationId, python: &str) -> Self {
        Self {
            runtime,
            installation,
            key: Arc::new(SigningKey::generate().unwrap()),
            start: Start::Fresh,
            python: python.into(),
            gateway: None,
            finish: None,
        }
    }

    /// Says how kernels start.
    #[must_use]
    pub const fn starting(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Says that agents are reached through this gateway, and the one key that they obey.
    #[must_use]
    pub fn through(mut self, gateway: GatewayClient, key: Arc<SigningKey>) -> Self {
        self.gateway = Some(gateway);
        self.key = key;
        self
    }

    /// Says what to do after the checks.
    #[must_use]
    pub fn finished_by<F>(mut self, finish: impl FnOnce() -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        self.finish = Some(Box::new(|| Box::pin(finish())));
        self
    }

    pub async fn finish(mut self) {
        let finish = self.finish.take();
        drop(self);
        if let Some(finish) = finish {
            finish().await;
        }
    }

    pub fn can(&self, capability: Capability) -> bool {
        self.runtime.describe().capabilities.has(capability)
    }

    /// Whether the runtime does not claim this, which is then said: no check is left out in
    /// silence.
    #[expect(
        clippy::print_stderr,
        reason = "it is what the person who runs the tests reads"
    )]
    pub fn lacks(&self, capability: Capability) -> bool {
        let description = self.runtime.describe();
        let lacks = !description.capabilities.has(capability);
        if lacks {
            eprintln!(
                "{} does not claim {capability:?}: not checked",
                description.name
            );
        }
        lacks
    }

    pub fn spec(&self) -> SandboxSpec {
        SandboxSpec {
            id: SandboxId::new(),
            installation: self.installation,
            keys: vec![self.key.public()],
            image: None,
            limits: Limits::of(ResourceClass::Small),
            input_limits: InputLimits::default(),
            trust_domain: "conformance".into(),
            start: self.start,
            idle_limit_ms: None,
            is_unclaimed: false,
            hard_deadline_ms: None,
        }
    }

    pub async fn create(&self) -> Guest {
        self.create_as(self.spec()).await
    }

    pub async fn create_as(&self, spec: SandboxSpec) -> Guest {
        let id = spec.id;
        self.runtime.create(spec.validate().unwrap()).await.unwrap();
        Guest {
            id,
            client: self.client(id, Arc::clone(&self.key)),
            start: self.start,
            python: self.python.clone(),
            runtime: Arc::clone(&self.runtime),
        }
    }

    pub fn client(&self, sandbox: SandboxId, key: Arc<SigningKey>) -> AgentClient {
        let identity = self.identity(sandbox, key);
        match &self.gateway {
            Some(gateway) => gateway.agent(identity, None),
            None => AgentClient::new(identity, self.connector(sandbox)),
        }
    }

    /// A client that signs for `meant` and is connected to `reached`, as a lying relay would be.
    /// Through a gateway there is none: its signature names the sandbox once more, and who lies
    /// about that is played by the gateway's own tests.
    #[expect(
        clippy::print_stderr,
        reason = "it is what the person who runs the tests reads"
    )]
    pub fn crossed(&self, meant: SandboxId, reached: SandboxId) -> Option<AgentClient> {
        if self.gateway.is_some() {
            eprintln!("a client of a gateway cannot cross sandboxes: not checked");
            return None;
        }
        let identity = self.identity(meant, Arc::clone(&self.key));
        Some(AgentClient::new(identity, self.connector(reached)))
    }

    const fn identity(&self, sandbox: SandboxId, key: Arc<SigningKey>) -> Identity {
        Identity {
            key,
            installation: self.installation,
            sandbox,
        }
    }

    fn connector(&self, sandbox: SandboxId) -> AgentConnector {
        AgentConnector {
            runtime: Arc::clone(&self.runtime),
            sandbox,
        }
    }
}

/// One sandbox of the runtime under test.
pub struct Guest {
    pub id: SandboxId,
    pub client: AgentClient,
    start: Start,
    python: Argument,
    runtime: Arc<dyn Runtime>,
}

impl Guest {
    pub fn program(&self, argv: &[&str]) -> StartProcess {
        StartProcess {
            execution: ExecutionId::new(),
            argv: argv
                .iter()
                .map(|argument| Argument::from(*argument))
                .collect(),
            env: std::collections::BTreeMap::new(),
            stdin: Stdin::Empty,
            time_limit_ms: PATIENCE_MS,
            output_limit_bytes: None,
        }
    }

    pub fn script(&self, code: &str) -> StartProcess {
        let mut start = self.program(&["", "-c", code]);
        start.argv[0] = self.python.clone();
        start
    }

    pub fn cell(&self, code: &str) -> Execute {
        Execute {
            execution: ExecutionId::new(),
            code: code.into(),
            time_limit_ms: PATIENCE_MS,
            output_limit_bytes: Execute::default_output_limit_bytes(),
            silent: false,
        }
    }

    pub async fn run(&self, start: &StartProcess) -> Ran {
        Ran::of(self.client.run(start).await.unwrap()).await
    }

    pub async fn python(&self, code: &str) -> Ran {
        self.run(&self.script(code)).await
    }

    pub async fn execute(&self, code: &str) -> Ran {
        self.execute_as(&self.cell(code)).await
    }

    pub async fn execute_as(&self, cell: &Execute) -> Ran {
        Ran::of(self.client.execute(cell).await.unwrap()).await
    }

    /// How many processes there are while nobody uses the sandbox: a kernel that comes from a
    /// template comes unasked, and is there when this returns.
    pub async fn processes_at_rest(&self) -> u32 {
        match self.start {
            Start::Fresh => 0,
            Start::Template => {
                let start = StartKernel::default();
                self.client.start_kernel(&start).await.unwrap();
                1
            }
        }
    }

    pub async fn put(&self, file: &str, content: &[u8]) {
        self.client
            .put_bytes(&name(file), content.to_vec().into())
            .await
            .unwrap();
    }

    pub async fn remove(self) {
        self.runtime.remove(self.id).await.unwrap();
    }
}

/// A name in the workspace.
pub(super) fn name(text: &str) -> FileName {
    FileName::from_bytes(text).unwrap()
}

/// An execution from its first event to its last.
#[derive(Debug)]
pub struct Ran {
    pub events: Vec<EventBody>,
    pub ended: Ended,
}

impl Ran {
    pub async fn of(mut execution: Execution) -> Self {
        let mut events = Vec::new();
        while let Some(event) = execution.next().await.unwrap() {
            events.push(event);
        }
        match events.pop() {
            Some(EventBody::ExecutionEnded(ended)) => Self { events, ended },
            last => panic!("the execution did not end as it must: {last:?}, after {events:?}"),
        }
    }

    /// Everything from standard output.
    pub fn stdout(&self) -> Vec<u8> {
        self.bytes(|event| match event {
            EventBody::Stdout(output) => Some(&output.0),
            _ => None,
        })
    }

    /// Everything from standard error.
    pub fn stderr(&self) -> Vec<u8> {
        self.bytes(|event| match event {
            EventBody::Stderr(output) => Some(&output.0),
            _ => None,
        })
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout()).unwrap()
    }

    fn bytes<'e>(&'e self, pick: impl Fn(&'e EventBody) -> Option<&'e bytes::Bytes>) -> Vec<u8> {
        self.events
            .iter()
            .filter_map(pick)
            .flat_map(|bytes| bytes.iter().copied())
            .collect()
    }
}

/// Waits until the code prints, which shows that it runs and is not only being started.
pub(super) async fn until_output(running: &mut Execution) {
    loop {
        match running.next().await.unwrap() {
            Some(EventBody::Stdout(_)) => return,
            Some(EventBody::ExecutionEnded(ended)) => panic!("it ended without a word: {ended:?}"),
            Some(_) => {}
            None => panic!("it ended without a word"),
        }
    }
}
