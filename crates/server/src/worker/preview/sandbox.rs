//! The throwaway sandbox of one preview: on the profile of its workspace, nobody's, beside all
//! quotas.

use chrono::{TimeDelta, Utc};
use glovebox_client::ClientError;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::CreateSandbox;
use glovebox_protocol::ids::{SandboxId, WorkspaceId};
use glovebox_protocol::limits::InputLimits;
use glovebox_store::{EndedWhy, LeaseState, NewLease, Profile, ProfileState, Workspace};

use super::Stopped;
use crate::app::App;
use crate::app::gate::{DEPLOYMENT, Denial, Deployment, may_run_at_all, resolve};
use crate::app::previews::{MAX_FILE_BYTES, check};
use crate::app::sandboxes::is_unknown;
use crate::failure::chain;

/// How long such a sandbox is there at most, whatever becomes of whoever uses it, in seconds.
const LIFE_SECONDS: i64 = 300;

/// Room for the scripts beside the file.
const BESIDE_BYTES: u64 = 1 << 20;

impl From<Denial> for Stopped {
    fn from(denial: Denial) -> Self {
        Self::Now {
            message: format!("it cannot be made now: {}", denial.message),
            fix: Some(denial.fix),
            again: false,
        }
    }
}

/// Where a preview of a workspace's file is made. No code of anybody runs there but our own, so of
/// the gate only the first two levels count: the installation and the profile.
pub(super) async fn place(
    app: &App,
    workspace: WorkspaceId,
) -> Result<(Workspace, Profile), Stopped> {
    let store = app.store();
    let deployment: Deployment = store.setting(DEPLOYMENT).await?.unwrap_or_default();
    may_run_at_all(store, app.break_glass(), &deployment).await??;
    let none = || Stopped::Now {
        message: "it cannot be made now: the workspace has no active runtime profile".into(),
        fix: Some("ask a system admin to activate one".into()),
        again: false,
    };
    let workspace = store.workspace(workspace).await?.ok_or_else(none)?;
    match resolve(store, &deployment, &workspace).await? {
        Some((profile, _)) if profile.state == ProfileState::Active => Ok((workspace, profile)),
        _ => Err(none()),
    }
}

/// Sees to it that somebody is there to ask for one, before anything is done that takes long.
pub(super) async fn needs_gateway(app: &App) -> Result<(), Stopped> {
    let answered = app.gateway().info().await;
    answered.map(|_| ()).map_err(|error| stopped(&error))
}

/// Makes one. Its id is known before it is there, and `note` keeps it.
pub(super) async fn make<N>(
    app: &App,
    (workspace, profile): (Workspace, Profile),
    note: N,
) -> Result<SandboxId, Stopped>
where
    N: AsyncFnOnce(SandboxId) -> Result<(), Stopped>,
{
    let settings = &profile.settings;
    let id = SandboxId::new();
    let new = NewLease {
        id,
        profile_id: profile.id,
        thread_id: None,
        class: settings.class,
        // It ends with its preview.
        idle_limit_ms: LIFE_SECONDS * 1000,
        hard_deadline: Utc::now() + TimeDelta::seconds(LIFE_SECONDS),
    };
    let mut changes = app.store().begin().await?;
    changes.create_preview_lease(workspace.id, &new).await?;
    changes.commit().await?;
    note(id).await?;
    let wanted = CreateSandbox {
        // What people may push in has its own limits.
        input_limits: InputLimits {
            file_bytes: MAX_FILE_BYTES,
            total_bytes: MAX_FILE_BYTES + BESIDE_BYTES,
        },
        ..app.wanted_sandbox(&new, &workspace, settings)
    };
    if let Err(error) = app.gateway().create(&wanted).await {
        app.store()
            .end_lease(id, EndedWhy::StartFailed, &chain(&error))
            .await?;
        // It may be there all the same, where only the answer was lost: its lease stays until the gateway
        // says that it is not.
        let is_gone = match app.gateway().delete(id).await {
            Ok(_) => true,
            Err(error) => is_unknown(&error),
        };
        if is_gone {
            // A preview may be tried for days, and each try would leave one.
            app.store().forget_start(id).await?;
        }
        return Err(stopped(&error));
    }
    app.store()
        .move_lease(id, LeaseState::Starting, LeaseState::Ready)
        .await?;
    Ok(id)
}

/// Ends one. Where that fails, its lease has ended all the same, and the worker takes it away.
pub(super) async fn end(app: &App, id: SandboxId, detail: &str) {
    if let Err(error) = app.remove_sandbox(id, EndedWhy::Asked, detail).await {
        tracing::warn!(sandbox = %id, error = chain(&error), "ending the sandbox of a preview");
    }
}

/// What people are told where no sandbox can be had. Only what passes by itself is waited for: of all else
/// somebody has to know.
fn stopped(error: &ClientError) -> Stopped {
    tracing::warn!(error = chain(error), "there is no sandbox for a preview");
    let waits = |message: &str| Stopped::Waits {
        message: message.into(),
    };
    match error {
        error if error.is_gone() => waits("it waits: the runtime of sandboxes does not answer"),
        ClientError::Refused(body) => match body.code {
            ErrorCode::Exhausted => waits("it waits: there is no room for one more sandbox"),
            ErrorCode::RuntimeUnavailable | ErrorCode::StartTimeout => {
                waits("it waits: the runtime of sandboxes makes none just now")
            }
            _ => cannot(&body.message, body.fix.as_deref()),
        },
        other => cannot(&other.to_string(), None),
    }
}

fn cannot(message: &str, fix: Option<&str>) -> Stopped {
    let fix = fix.unwrap_or("a system admin sees the reason in the server's log");
    Stopped::Now {
        message: check::line(&format!("it cannot be made now: {message}")),
        fix: Some(check::line(fix)),
        again: false,
    }
}

/// What people are told where the runtime does not do what it was asked.
pub(super) fn unavailable(error: &ClientError) -> Stopped {
    tracing::warn!(error = chain(error), "the sandbox of a preview");
    let (message, fix) = match error.code() {
        Some(ErrorCode::DiskFull) => (
            "it is more than the workspace of a sandbox holds",
            "ask a system admin for a larger workspace disk in the profile",
        ),
        _ => (
            "it cannot be made now: the runtime of sandboxes does not answer",
            "try again in a moment; the download works all the same",
        ),
    };
    Stopped::Now {
        message: message.into(),
        fix: Some(fix.into()),
        again: true,
    }
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::error::ErrorBody;

    use super::*;

    #[test]
    fn a_preview_waits_only_for_what_passes_by_itself() {
        let refused = |code| {
            let body = ErrorBody::new(code, "the gateway says no").with_fix("do this");
            stopped(&ClientError::Refused(Box::new(body)))
        };
        let closed = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        for passing in [
            stopped(&ClientError::Connect(closed)),
            stopped(&ClientError::Cut),
            refused(ErrorCode::Exhausted),
            refused(ErrorCode::RuntimeUnavailable),
            refused(ErrorCode::StartTimeout),
        ] {
            assert!(matches!(passing, Stopped::Waits { .. }), "{passing:?}");
        }
        for code in [
            ErrorCode::CapabilityMissing,
            ErrorCode::ImageNotAllowed,
            ErrorCode::ProtocolMismatch,
            ErrorCode::Invalid,
            ErrorCode::Internal,
        ] {
            let Stopped::Now {
                message,
                fix,
                again: false,
            } = refused(code)
            else {
                panic!("{code:?} does not pass by itself");
            };
            assert_eq!(message, "it cannot be made now: the gateway says no");
            assert_eq!(fix.as_deref(), Some("do this"));
        }
        let theirs = ClientError::ProtocolMismatch { theirs: 9 };
        assert!(matches!(
            stopped(&theirs),
            Stopped::Now { again: false, .. }
        ));
    }
}
