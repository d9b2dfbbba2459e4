//! A gateway over a real runtime.

use std::pin::Pin;
use std::sync::Arc;

use glovebox_client::{Fingerprint, GatewayAddress, GatewayClient, GatewayIdentity, Trust};
use glovebox_gateway::config::{Listen, Transport};
use glovebox_gateway::{
    AllowedImages, Gateway, Journal, Listener, NewIdentity, Place, Rules, Surroundings,
    TlsIdentity, system_clock,
};
use glovebox_protocol::ids::{GatewayId, InstallationId};
use glovebox_protocol::sign::{Credential, Credentials, PublicKey, SigningKey};
use glovebox_runtime::Runtime;
use glovebox_runtime::conformance::Subject;
use glovebox_runtime_embedded::EmbeddedRuntime;
use glovebox_runtime_engine::{EngineRuntime, Options};
use glovebox_testkit::GatewayRuntime;
use glovebox_testkit::escape::posture;
use tokio::net::TcpListener;

use crate::{embedded, engine};

/// Which runtime is behind the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Embedded,
    Docker,
}

/// A gateway, and who asks it.
pub(crate) struct Stage {
    pub(crate) installation: InstallationId,
    pub(crate) client: GatewayClient,
    pub(crate) address: GatewayAddress,
    pub(crate) runtime: Arc<GatewayRuntime>,
    /// The version of Landlock that sandboxes are under.
    pub(crate) landlock_abi: u32,
    /// The headings of the posture document that hold here.
    pub(crate) headings: Vec<&'static str>,
    /// What is behind the gateway, where it is this one.
    pub(crate) embedded: Option<Arc<EmbeddedRuntime>>,
    serving: tokio::task::JoinHandle<()>,
    down: Pin<Box<dyn Future<Output = ()>>>,
}

impl Stage {
    /// A gateway whose agents obey `key`.
    pub(crate) async fn start(kind: Kind, key: PublicKey) -> Self {
        Self::over(behind(kind).await, key).await
    }

    /// A gateway over this, whose agents obey `key`.
    pub(crate) async fn over(behind: Behind, key: PublicKey) -> Self {
        let Behind {
            installation,
            runtime,
            headings,
            embedded,
            down,
        } = behind;
        let (credential, _) = Credential::generate().unwrap();
        let rules = Rules {
            gateway: GatewayId::new(),
            installation,
            agent_keys: vec![key],
            images: AllowedImages::DEFAULT.parse().unwrap(),
            max_sandboxes: 50,
            max_memory_bytes: 1 << 40,
            ending_window_ms: 60_000,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let surroundings = Surroundings {
            clock: system_clock(),
            journal: Journal::new(|_| ()),
            place: Place {
                state: None,
                listen: Some(Listen::Tcp(address, Transport::Tls)),
            },
        };
        let credentials = Credentials(vec![credential.clone()]);
        let gateway = Gateway::new(rules, credentials, runtime, surroundings).unwrap();
        let identity = NewIdentity::make().unwrap();
        let pin = Fingerprint::of(&identity.certificate);
        let tls = TlsIdentity::new(identity.key, identity.certificate).unwrap();
        gateway.adopt().await;
        let serving = tokio::spawn(async move {
            gateway.serve(Listener::Tls(listener, tls)).await;
        });
        let identity = GatewayIdentity {
            credential,
            installation: Some(installation),
        };
        let address = GatewayAddress::Https {
            host: address.ip().to_string(),
            port: address.port(),
            trust: Trust::pinned(pin),
        };
        let client = GatewayClient::new(identity, address.clone());
        Self {
            installation,
            runtime: Arc::new(GatewayRuntime::of(client.clone()).await.unwrap()),
            client,
            address,
            landlock_abi: glovebox_box::landlock_abi(),
            headings,
            embedded,
            serving,
            down,
        }
    }

    /// A subject of the conformance suite behind a gateway.
    pub(crate) async fn subject(kind: Kind) -> Subject {
        let key = Arc::new(SigningKey::generate().unwrap());
        let stage = Self::start(kind, key.public()).await;
        let runtime = Arc::clone(&stage.runtime);
        Subject::new(runtime, stage.installation, embedded::PYTHON)
            .through(stage.client.clone(), key)
            .finished_by(async move || stage.finish().await)
    }

    /// Takes all of it down.
    pub(crate) async fn finish(self) {
        self.serving.abort();
        drop(self.embedded);
        // Aborted is how it ends; the gateway, and its hold of the runtime, goes with it.
        let _ = self.serving.await;
        self.down.await;
    }
}

/// A runtime behind a gateway, and how to take it down.
pub(crate) struct Behind {
    installation: InstallationId,
    runtime: Arc<dyn Runtime>,
    headings: Vec<&'static str>,
    embedded: Option<Arc<EmbeddedRuntime>>,
    down: Pin<Box<dyn Future<Output = ()>>>,
}

async fn behind(kind: Kind) -> Behind {
    match kind {
        Kind::Embedded => {
            let options = embedded::options();
            let installation = options.installation;
            let runtime = Arc::new(EmbeddedRuntime::start(options).await.unwrap());
            let facts = runtime.facts();
            let kept = Arc::clone(&runtime);
            Behind {
                embedded: Some(Arc::clone(&runtime)),
                installation,
                headings: posture::headings(facts.two_ids, facts.cgroup_version),
                runtime,
                down: Box::pin(async move { kept.shut_down().await.unwrap() }),
            }
        }
        Kind::Docker => docker(engine::options()).await,
    }
}

/// A Docker runtime with these options.
pub(crate) async fn docker(options: Options) -> Behind {
    let installation = options.installation;
    let cleaner = engine::Cleaner(installation);
    Behind {
        installation,
        runtime: Arc::new(EngineRuntime::start(options).await.unwrap()),
        headings: Vec::new(),
        embedded: None,
        down: Box::pin(async move { drop(cleaner) }),
    }
}
