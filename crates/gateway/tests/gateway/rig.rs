//! A gateway under test, and what a client of it needs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use glovebox_gateway::config::{Listen, Transport};
use glovebox_gateway::{
    Gateway, Journal, Listener, NewIdentity, Place, Rules, Surroundings, TlsIdentity,
};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::error::ErrorBody;
use glovebox_protocol::gateway::{CreateSandbox, SandboxView};
use glovebox_protocol::ids::{GatewayId, InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{
    BodyDigest, Credential, Credentials, Envelope, Epoch, Nonce, SignedHeaders, SigningKey,
};
use glovebox_runtime::{FakeRuntime, Runtime};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Headers as name and value.
pub(crate) type Pairs = Vec<(&'static str, String)>;

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

/// What a gateway answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// One connection to a gateway.
pub(crate) struct Wire(SendRequest<Full<Bytes>>);

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
        let rig = Self {
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
        };
        rig.until_adopted().await;
        rig
    }

    /// Waits until the gateway has looked at what was there before it.
    async fn until_adopted(&self) {
        let mut wire = self.wire().await;
        while self.get(&mut wire, "/v1/sandboxes").await.status != StatusCode::OK {
            tokio::task::yield_now().await;
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

    pub(crate) async fn wire(&self) -> Wire {
        let (sender, connection) = handshake(TokioIo::new(self.tls().await)).await.unwrap();
        tokio::spawn(connection);
        Wire(sender)
    }

    /// The headers that a request to the gateway is signed with.
    pub(crate) fn outer(&self, method: &str, target: &str, body: &[u8]) -> Pairs {
        let audience = self.rules.gateway.to_string();
        let mut envelope = envelope(&audience, method, target, body);
        envelope.installation = self.rules.installation;
        envelope.epoch = self.gateway.epoch();
        envelope.key = self.credential.id();
        envelope.unix_ms += self.signs_ahead_ms;
        let headers = SignedHeaders {
            key: envelope.key,
            epoch: envelope.epoch,
            unix_ms: envelope.unix_ms,
            nonce: envelope.nonce,
            body: envelope.body,
            signature: self.credential.sign(&envelope),
        };
        headers.to_pairs().to_vec()
    }

    /// The headers that a request to an agent is signed with by `key`, but for the body's hash,
    /// which both signatures share.
    pub(crate) fn inner(
        &self,
        key: &SigningKey,
        (sandbox, epoch): (SandboxId, Epoch),
        (method, target): (&str, &str),
        body: &[u8],
    ) -> Pairs {
        let audience = sandbox.to_string();
        let mut envelope = envelope(&audience, method, target, body);
        envelope.installation = self.rules.installation;
        envelope.epoch = epoch;
        envelope.key = key.id();
        let headers = SignedHeaders {
            key: envelope.key,
            epoch,
            unix_ms: envelope.unix_ms,
            nonce: envelope.nonce,
            body: envelope.body,
            signature: key.sign(&envelope),
        };
        let pairs = headers.to_pairs().into_iter();
        pairs
            .filter(|(name, _)| *name != "x-glovebox-content-sha256")
            .collect()
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

/// A request from now, for nobody yet.
fn envelope<'a>(audience: &'a str, method: &'a str, target: &'a str, body: &[u8]) -> Envelope<'a> {
    Envelope {
        installation: InstallationId::new(),
        audience,
        epoch: Epoch::random().unwrap(),
        method,
        path_and_query: target,
        content_length: body.len() as u64,
        body: BodyDigest::of(body),
        unix_ms: now_ms(),
        nonce: Nonce::random().unwrap(),
        key: "0000000000000000".parse().unwrap(),
    }
}

impl Wire {
    /// Whether another request can be sent on it.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends a request and waits for the whole answer; the connection's failure is the error.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        target: &str,
        pairs: &[(&'static str, String)],
        body: &[u8],
    ) -> hyper::Result<Answer> {
        let response = self.begin(method, target, pairs, body).await?;
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        target: &str,
        pairs: &[(&'static str, String)],
        body: &[u8],
    ) -> hyper::Result<Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(target);
        request = request.header("host", "gateway");
        for (name, value) in pairs {
            request = request.header(*name, value);
        }
        let body = Full::new(Bytes::copy_from_slice(body));
        self.0.ready().await?;
        self.0.send_request(request.body(body).unwrap()).await
    }
}

impl Answer {
    pub(crate) fn document<T: DeserializeOwned>(&self) -> T {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, StatusCode::OK, "{text}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The code of an error, as it stands in the answer.
    pub(crate) fn code(&self) -> String {
        let error = self.error();
        let code = serde_json::to_value(error.code).unwrap();
        code.as_str().unwrap().to_owned()
    }

    pub(crate) fn error(&self) -> ErrorBody {
        let text = String::from_utf8_lossy(&self.body);
        assert_ne!(self.status, StatusCode::OK, "{text}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
