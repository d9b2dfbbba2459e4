//! A server with real sandboxes and files to preview.

use std::time::{Duration, Instant};

use glovebox_protocol::ids::{ArtifactId, ExecutionId, SandboxId, WorkspaceId};
use glovebox_store::{NewArtifact, NewExecution};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::embedded::{Running, start};
use crate::wire::{Answer, Who, send};

/// How long one preview may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// Somebody who looks at files.
pub(crate) struct Previewed {
    pub(crate) server: Running,
    pub(crate) ada: Who,
    workspace: WorkspaceId,
    sandbox: SandboxId,
    execution: ExecutionId,
    _folder: tempfile::TempDir,
}

impl Previewed {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = start(folder.path()).await;
        let (ada, workspace) = server.begin().await;
        let wanted = json!({ "workspace_id": workspace });
        let made = server
            .call(&ada, "POST", "/api/v1/sandboxes", &wanted)
            .await
            .ok();
        let (workspace, sandbox) = (
            workspace.parse().unwrap(),
            made["id"].as_str().unwrap().parse().unwrap(),
        );
        let execution = ExecutionId::new();
        let mut changes = server.app.store().begin().await.unwrap();
        changes
            .place_execution(&NewExecution {
                id: execution,
                lease_id: sandbox,
                workspace_id: workspace,
                idempotency_key: None,
                request_hash: String::new(),
            })
            .await
            .unwrap();
        changes.commit().await.unwrap();
        Self {
            server,
            ada,
            workspace,
            sandbox,
            execution,
            _folder: folder,
        }
    }

    pub(crate) const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// A sandbox to make files in.
    pub(crate) fn sandbox(&self) -> String {
        self.sandbox.to_string()
    }

    /// Pushes a file into it.
    pub(crate) async fn put(&self, name: &str, bytes: &[u8]) {
        let path = format!("/api/v1/sandboxes/{}/files/{name}", self.sandbox);
        let body = bytes.to_vec().into();
        let put = send(self.server.address, &self.ada, "PUT", &path, &[], body);
        put.await.ok();
    }

    /// A file that was made in it.
    pub(crate) async fn made(&self, name: &str) -> Vec<u8> {
        let path = format!("/api/v1/sandboxes/{}/files/{name}", self.sandbox);
        let answer = self.server.get(&self.ada, &path).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        answer.bytes.to_vec()
    }

    /// From now on other code may run in the sandbox.
    pub(crate) async fn finish_execution(&self) {
        let store = self.server.app.store();
        store.finish_execution(self.execution, &[]).await.unwrap();
    }

    /// Keeps a file as if code had saved it.
    pub(crate) async fn artifact(&self, name: &str, bytes: &[u8]) -> ArtifactId {
        self.artifact_said_to_be(name, bytes, bytes).await
    }

    /// The same of a file whose row says that its bytes are others, of the same length.
    pub(crate) async fn artifact_said_to_be(
        &self,
        name: &str,
        bytes: &[u8],
        said: &[u8],
    ) -> ArtifactId {
        assert_eq!(bytes.len(), said.len());
        let id = ArtifactId::new();
        let app = &self.server.app;
        let mut upload = app.objects().create(id).await.unwrap();
        upload.write(bytes).await.unwrap();
        upload.finish().await.unwrap();
        let hash = digest(&SHA256, said);
        let mut changes = app.store().begin().await.unwrap();
        changes
            .create_artifact(&NewArtifact {
                id,
                workspace_id: self.workspace,
                lease_id: self.sandbox,
                execution_id: self.execution,
                name: name.into(),
                bytes: bytes.len() as u64,
                sha256: hash
                    .as_ref()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
                media_type: "application/octet-stream".into(),
            })
            .await
            .unwrap();
        changes.commit().await.unwrap();
        id
    }

    /// What a file looks like, once that is known.
    pub(crate) async fn preview_of(&self, id: ArtifactId) -> Value {
        let is_over = |view: &Value| matches!(view["state"].as_str(), Some("ready" | "failed"));
        self.view_when(id, is_over).await
    }

    /// What a file looks like, once something is so.
    pub(crate) async fn view_when(&self, id: ArtifactId, is_so: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/v1/artifacts/{id}/preview");
        let deadline = Instant::now() + PATIENCE;
        // Asked as a page asks: whoever asks all the time takes the processor from what is asked for.
        let mut looks = tokio::time::interval(Duration::from_millis(100));
        loop {
            looks.tick().await;
            let view = self.server.get(&self.ada, &path).await.ok();
            if is_so(&view) {
                return view;
            }
            assert!(Instant::now() < deadline, "{view}");
        }
    }

    pub(crate) async fn preview(&self, name: &str, bytes: &[u8]) -> Value {
        let id = self.artifact(name, bytes).await;
        self.preview_of(id).await
    }

    /// A part of a preview.
    pub(crate) async fn part(&self, preview: &Value, part: &str) -> Answer {
        let id = preview["id"].as_str().unwrap();
        self.server
            .get(&self.ada, &format!("/api/v1/previews/{id}/{part}"))
            .await
    }

    /// The rows of a sheet, as what its cells show.
    pub(crate) async fn shown(&self, preview: &Value, number: u32) -> Vec<Vec<String>> {
        let sheet = self.part(preview, &format!("sheets/{number}")).await.ok();
        let text = |cell: &Value| cell["v"].as_str().unwrap_or_default().to_owned();
        let row = |row: &Value| row.as_array().unwrap().iter().map(text).collect();
        sheet["rows"].as_array().unwrap().iter().map(row).collect()
    }

    pub(crate) async fn end(self) {
        let path = format!("/api/v1/sandboxes/{}", self.sandbox);
        self.server
            .call(&self.ada, "DELETE", &path, &json!({}))
            .await
            .ok();
        self.server.stop().await;
    }
}

/// Whether these bytes are a picture as people see one: of this many pixels, and not of one colour.
pub(crate) fn png_size(bytes: &[u8]) -> (u32, u32) {
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "no PNG");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}
