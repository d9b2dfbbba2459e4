//! A server with everything around it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use glovebox_client::{GatewayAddress, GatewayClient, GatewayIdentity};
use glovebox_gateway::{Gateway, Journal, Listener, Place, Rules, Surroundings};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::ids::{GatewayId, InstallationId, ProfileId, UserId, WorkspaceId};
use glovebox_protocol::sign::{Credential, Credentials, SigningKey};
use glovebox_runtime::FakeRuntime;
use glovebox_server::app::{App, Parts};
use glovebox_server::{Config, GatewayProgram, LostLines, MachineRuntime, Queue, StreamLimits};
use glovebox_store::{
    KeyScope, MasterKey, NewApiKey, NewSession, NewUser, Objects, ProfileState, Role, Store, Token,
};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};

use crate::wire::{Answer, Who, send};

/// A server that answers.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) app: App,
    tasks: Vec<tokio::task::AbortHandle>,
    folder: tempfile::TempDir,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// What a server is told in a test.
pub(crate) fn config(folder: &Path) -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        metrics_listen: None,
        tls: None,
        data: folder.into(),
        database: crate::database::address(folder),
        public_url: None,
        trusted_proxies: Vec::new(),
        insecure_http: false,
        sandbox_enabled: true,
        sandbox_gui_config: true,
        history_days: 90,
        streams: StreamLimits::default(),
        queues: Queue::ALL.to_vec(),
        lost_lines: LostLines::default(),
        gateway: GatewayProgram {
            program: "/nowhere".into(),
            runtime: MachineRuntime::Embedded,
            tree: folder.into(),
            run: folder.join("run"),
            search: "/usr/bin:/bin".into(),
            accept_weaker: String::new(),
            max_sandboxes: None,
            max_memory: None,
        },
    }
}

impl Stage {
    /// A server over a runtime that plays one.
    pub(crate) async fn start() -> Self {
        Self::told(|_| ()).await
    }

    /// The same, of what it is told `change` has its say.
    pub(crate) async fn told(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        change(&mut config);
        for name in ["objects", "spool"] {
            fs_err::create_dir_all(folder.path().join(name)).unwrap();
        }
        let store = Store::open(&config.database).await.unwrap();
        store.migrate().await.unwrap();
        let master = MasterKey::random().unwrap();
        store.adopt_master_key(&master).await.unwrap();
        let signing = Arc::new(SigningKey::generate().unwrap());
        let installation = InstallationId::new();
        let (credential, _) = Credential::generate().unwrap();
        let socket = folder.path().join("gateway.sock");
        let gateway = gateway(&socket, &signing, installation, credential.clone()).await;
        let identity = GatewayIdentity {
            credential,
            installation: Some(installation),
        };
        let app = App::new(Parts {
            objects: Objects::in_folder(&folder.path().join("objects")).unwrap(),
            config,
            store,
            master,
            installation,
            signing,
            gateway: GatewayClient::new(identity, GatewayAddress::Unix(socket)),
        });
        app.ensure_this_machine().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = glovebox_server::http::router(app.clone());
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(async move { axum::serve(listener, service).await });
        Self {
            address,
            app,
            tasks: vec![gateway, serving.abort_handle()],
            folder,
        }
    }

    /// Ends the gateway: nobody answers there any more.
    pub(crate) fn end_gateway(&self) {
        self.tasks[0].abort();
    }

    /// Where its data lies.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> &Store {
        self.app.store()
    }

    /// Makes a user with a session.
    pub(crate) async fn user(&self, name: &str, is_system_admin: bool) -> (UserId, Who) {
        let token = Token::random("gbsn_").unwrap();
        let mut changes = self.store().begin().await.unwrap();
        let user = changes
            .create_user(&NewUser {
                email: format!("{name}@example.com"),
                name: name.into(),
                password_hash: None,
                is_system_admin,
            })
            .await
            .unwrap();
        changes
            .create_session(&NewSession {
                user_id: user,
                token: token.hash(),
                address: "127.0.0.1".into(),
                user_agent: "test".into(),
                expires_at: Utc::now() + TimeDelta::hours(1),
            })
            .await
            .unwrap();
        changes.commit().await.unwrap();
        (user, Who::Session(token.reveal().to_owned()))
    }

    pub(crate) async fn workspace(&self, name: &str) -> WorkspaceId {
        let mut changes = self.store().begin().await.unwrap();
        let id = changes.create_workspace(name).await.unwrap();
        changes.commit().await.unwrap();
        id
    }

    /// Makes a user that is a member of a workspace.
    pub(crate) async fn member(
        &self,
        workspace: WorkspaceId,
        name: &str,
        role: Role,
    ) -> (UserId, Who) {
        let (user, who) = self.user(name, false).await;
        let mut changes = self.store().begin().await.unwrap();
        changes.add_member(workspace, user, role).await.unwrap();
        changes.commit().await.unwrap();
        (user, who)
    }

    /// Makes a key with every scope; of a service where there is no user.
    pub(crate) async fn key(
        &self,
        workspace: WorkspaceId,
        user: Option<UserId>,
        scopes: &[KeyScope],
    ) -> Who {
        let token = Token::random("gbk_").unwrap();
        let mut changes = self.store().begin().await.unwrap();
        changes
            .create_api_key(&NewApiKey {
                workspace_id: workspace,
                user_id: user,
                name: "a key".into(),
                token: token.hash(),
                scopes: scopes.to_vec(),
            })
            .await
            .unwrap();
        changes.commit().await.unwrap();
        Who::Key(token.reveal().to_owned())
    }

    /// Makes the profile of this machine active and the default, and lets code run at all and in
    /// a workspace: what a system admin does in the console.
    pub(crate) async fn open(&self, workspace: WorkspaceId) -> ProfileId {
        let mut profile = self.store().profiles().await.unwrap().remove(0);
        profile.state = ProfileState::Active;
        // The runtime that plays one has no template.
        profile.settings.start = Start::Fresh;
        let mut row = self.store().workspace(workspace).await.unwrap().unwrap();
        row.code_execution = true;
        let mut changes = self.store().begin().await.unwrap();
        changes.update_profile(&profile).await.unwrap();
        changes.update_workspace(&row).await.unwrap();
        let deployment = json!({ "code_execution": true, "default_profile": profile.id });
        changes.set("deployment", &deployment).await.unwrap();
        changes.commit().await.unwrap();
        profile.id
    }

    pub(crate) async fn get(&self, who: &Who, path: &str) -> Answer {
        send(self.address, who, "GET", path, &[], Bytes::new()).await
    }

    pub(crate) async fn call(&self, who: &Who, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        let body = Bytes::from(body.to_string());
        send(self.address, who, method, path, &headers, body).await
    }
}

/// A gateway of a runtime that plays one.
async fn gateway(
    socket: &Path,
    key: &SigningKey,
    installation: InstallationId,
    credential: Credential,
) -> tokio::task::AbortHandle {
    let rules = Rules {
        gateway: GatewayId::new(),
        installation,
        agent_keys: vec![key.public()],
        images: "glovebox-sandbox".parse().unwrap(),
        max_sandboxes: 100,
        max_memory_bytes: 1 << 40,
        ending_window_ms: 60_000,
    };
    let surroundings = Surroundings {
        clock: glovebox_gateway::system_clock(),
        journal: Journal::new(|_| ()),
        place: Place {
            state: None,
            listen: None,
        },
    };
    let runtime = Arc::new(FakeRuntime::new("python3".into(), BTreeMap::new()));
    let gateway = Gateway::new(rules, Credentials(vec![credential]), runtime, surroundings);
    let gateway = Arc::new(gateway.unwrap());
    let listener = UnixListener::bind(socket).unwrap();
    gateway.adopt().await;
    tokio::spawn(async move { gateway.serve(Listener::Unix(listener)).await }).abort_handle()
}
