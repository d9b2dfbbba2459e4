//! A gateway under test, and what a client of it needs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use crate::wire::{Answer, Pairs, Sender, Wire};
use glovebox_client::{Fingerprint, GatewayAddress, GatewayClient, GatewayIdentity, Trust};
use glovebox_gateway::config::{Listen, Transport};
use glovebox_gateway::{
    Gateway, Journal, Listener, NewIdentity, Place, Rules, Surroundings, TlsIdentity,
};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::gateway::{CreateSandbox, SandboxView};
use glovebox_protocol::ids::{GatewayId, InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{Credential, Credentials, Epoch, SigningKey};
use glovebox_runtime::{FakeRuntime, Runtime};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A gateway with everything around it.
pub(crate) struct Rig {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) address: SocketAddr,
    pub(crate) rules: Rules,
    pub(crate) credential: Credential,
    pub(crate) key: Arc<SigningKey>,
    /// What the gateway's clock is ahead of the system's, in milliseconds.
    pub(crate) ahead_ms: Arc<AtomicI64>,
    /// What the client's clock is ahead of the system's.
    pub(crate) signs_ahead_ms: i64,
    pub(crate) told: Arc<Mutex<Vec<Value>>>,
    certificate: Vec<u8>,
    serving: tokio::task::AbortHandle,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) fn now_ms() -> i64 {
    glovebox_gateway::system_clock()()
}

/// A runtime that plays one, and starts no kernel.
pub(crate) fn fake() -> Arc<FakeRuntime> {
    Arc::new(FakeRuntime::new("python3".into(), BTreeMap::new()))
}

impl Rig {
    /// A gateway over a runtime that plays one.
    pub(crate) async fn start() -> Self {
        Self::over(fake(), |_| ()).await
    }

    /// A gateway over `runtime`, with rules that `change` has had its say on.
    pub(crate) async fn over(runtime: Arc<dyn Runtime>, change: impl FnOnce(&mut Rules)) -> Self {
        let key = Arc::new(SigningKey::generate().unwrap());
        let mut rules = Rules {
            gateway: GatewayId::new(),
            installation: InstallationId::new(),
            agent_keys: vec![key.public()],
            images: "glovebox-sandbox".parse().unwrap(),
            max_sandboxes: 100,
            max_memory_bytes: 1 << 40,
            ending_window_ms: 60_000,
        };
        change(&mut rules);
        let (credential, _) = Credential::generate().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ahead_ms = Arc::new(AtomicI64::new(0));
        let told = Arc::new(Mutex::new(Vec::new()));
        let ahead = Arc::clone(&ahead_ms);
        let lines = Arc::clone(&told);
        let gateway = Gateway::new(
            rules.clone(),
            Credentials(vec![credential.clone()]),
            Arc::clone(&runtime),
            Surroundings {
                clock: Arc::new(move || now_ms() + ahead.load(Ordering::Relaxed)),
                journal: Journal::new(move |line| lines.lock().unwrap().push(line.clone())),
                place: Place {
                    state: None,
                    listen: Some(Listen::Tcp(address, Transport::Tls)),
                },
            },
        );
        let gateway = Arc::new(gateway.unwrap());
        let identity = NewIdentity::make().unwrap();
        let certificate = identity.certificate.clone();
        let tls = TlsIdentity::new(identity.key, identity.certificate).unwrap();
        let serving = Arc::clone(&gateway);
        let serving = tokio::spawn(async move {
            serving.serve(Listener::Tls(listener, tls)).await;
        });
        gateway.adopt().await;
        Self {
            gateway,
            runtime,
            address,
            rules,
            credential,
            key,
            ahead_ms,
            signs_ahead_ms: 0,
            told,
            certificate,
            serving: serving.abort_handle(),
        }
    }

    pub(crate) async fn tls(&self) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        let certificate = CertificateDer::from(self.certificate.clone());
        roots.add(certificate).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::try_from("glovebox-gateway").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }

    /// A client as a server has one.
    pub(crate) fn client(&self) -> GatewayClient {
        let address = GatewayAddress::Https {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            trust: Trust::pinned(Fingerprint::of(&self.certificate)),
        };
        let identity = GatewayIdentity {
            credential: self.credential.clone(),
            installation: Some(self.rules.installation),
        };
        GatewayClient::new(identity, address)
    }

    pub(crate) async fn wire(&self) -> Wire {
        Wire::over(self.tls().await).await
    }

    /// Whoever signs for this gateway.
    pub(crate) fn sender(&self) -> Sender {
        Sender {
            installation: self.rules.installation,
            gateway: self.rules.gateway,
            epoch: self.gateway.epoch(),
            credential: self.credential.clone(),
            ahead_ms: self.signs_ahead_ms,
        }
    }

    /// The headers that a request to the gateway is signed with.
    pub(crate) fn outer(&self, method: &str, target: &str, body: &[u8]) -> Pairs {
        self.sender().outer(method, target, body)
    }

    /// The headers that a request to an agent is signed with by `key`; see [`Sender::inner`].
    pub(crate) fn inner(
        &self,
        key: &SigningKey,
        of: (SandboxId, Epoch),
        route: (&str, &str),
        body: &[u8],
    ) -> Pairs {
        self.sender().inner(key, of, route, body)
    }

    /// A signed request of the gateway's own.
    pub(crate) async fn ask(
        &self,
        wire: &mut Wire,
        method: &str,
        target: &str,
        body: &[u8],
    ) -> Answer {
        let pairs = self.outer(method, target, body);
        wire.send(method, target, &pairs, body).await.unwrap()
    }

    pub(crate) async fn get(&self, wire: &mut Wire, target: &str) -> Answer {
        self.ask(wire, "GET", target, b"").await
    }

    /// A request for an agent, signed twice.
    pub(crate) async fn ask_agent(
        &self,
        wire: &mut Wire,
        of: (SandboxId, Epoch),
        (method, target): (&str, &str),
        body: &[u8],
    ) -> Answer {
        let outside = format!("/v1/sandboxes/{}/agent{target}", of.0);
        let mut pairs = self.outer(method, &outside, body);
        pairs.extend(self.inner(&self.key, of, (method, target), body));
        wire.send(method, &outside, &pairs, body).await.unwrap()
    }

    pub(crate) fn create_request(&self) -> CreateSandbox {
        CreateSandbox {
            id: SandboxId::new(),
            installation: self.rules.installation,
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

    /// Asks for a sandbox.
    pub(crate) async fn create(&self, wire: &mut Wire, asked: &CreateSandbox) -> Answer {
        let body = serde_json::to_vec(asked).unwrap();
        self.ask(wire, "POST", "/v1/sandboxes", &body).await
    }

    /// Makes a sandbox, and gives what its agent's requests are signed for.
    pub(crate) async fn make(&self, wire: &mut Wire) -> (SandboxId, Epoch) {
        let asked = self.create_request();
        let view: SandboxView = self.create(wire, &asked).await.document();
        (view.id, view.agent_epoch.unwrap())
    }
}
