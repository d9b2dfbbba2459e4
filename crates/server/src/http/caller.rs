//! Who calls: extractors that a handler cannot go without.

use axum::extract::FromRequestParts;
use glovebox_protocol::ids::{SandboxId, ThreadId, WorkspaceId};
use glovebox_store::{Access, Actor, ActorKind, KeyScope, Session, Thread, Token, User};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;

use super::error::ApiError;
use super::requests::Origin;
use crate::app::App;
use crate::app::account::KEY_PREFIX;

/// The cookie of a session, where people reach the server without TLS.
pub(crate) const COOKIE: &str = "glovebox_session";

/// The same with TLS: a browser then takes it from this host only, and over TLS only.
const SECURE_COOKIE: &str = "__Host-glovebox_session";

/// How exact the time of a session's last use is, in seconds.
const USE_IS_NOTED_EVERY: i64 = 300;

/// Where a request came from, for the audit log.
#[derive(Debug, Clone)]
pub(crate) struct From(pub(crate) Actor);

/// Somebody who is signed in with a session.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    pub(crate) user: User,
    pub(crate) session: Session,
    pub(crate) actor: Actor,
}

/// Somebody who is signed in and looks after the installation. To everybody else what it guards
/// is not there.
#[derive(Debug, Clone)]
pub(crate) struct SystemAdmin(pub(crate) SignedIn);

/// Somebody with a session, or a program with a key.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    Session(Box<SignedIn>),
    Key(Access),
}

/// The name of the cookie that this server sets.
pub(crate) fn cookie_name(app: &App) -> &'static str {
    if app.config().is_secure() {
        SECURE_COOKIE
    } else {
        COOKIE
    }
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<Token> {
    headers
        .get_all(http::header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| Token::unverified(value))
}

fn bearer(headers: &HeaderMap) -> Option<Token> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && token.trim().starts_with(KEY_PREFIX))
        .then(|| Token::unverified(token.trim()))
}

fn origin(parts: &Parts) -> Result<Origin, ApiError> {
    let origin = parts.extensions.get::<Origin>().cloned();
    origin.ok_or_else(ApiError::internal)
}

fn actor(origin: Origin, kind: ActorKind, id: Option<String>, name: &str) -> Actor {
    Actor {
        kind,
        id,
        name: name.into(),
        address: origin.address.to_string(),
        request_id: origin.request_id,
    }
}

impl FromRequestParts<App> for From {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let origin = origin(parts)?;
        Ok(Self(actor(origin, ActorKind::Unknown, None, "")))
    }
}

impl FromRequestParts<App> for SignedIn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let origin = origin(parts)?;
        let token = cookie(&parts.headers, cookie_name(app));
        let token = token.ok_or_else(ApiError::not_signed_in)?;
        let found = app.store().session(&token.hash()).await?;
        let (session, user) = found.ok_or_else(ApiError::not_signed_in)?;
        let age = chrono::Utc::now() - session.seen_at;
        if age.num_seconds() > USE_IS_NOTED_EVERY {
            app.store().touch_session(session.id).await?;
        }
        let id = Some(user.id.to_string());
        Ok(Self {
            actor: actor(origin, ActorKind::User, id, &user.email),
            user,
            session,
        })
    }
}

impl FromRequestParts<App> for SystemAdmin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let signed_in = SignedIn::from_request_parts(parts, app).await?;
        if signed_in.user.is_system_admin {
            Ok(Self(signed_in))
        } else {
            Err(ApiError::not_found("page or route"))
        }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            let signed_in = SignedIn::from_request_parts(parts, app).await?;
            return Ok(Self::Session(Box::new(signed_in)));
        }
        let token = bearer(&parts.headers).ok_or_else(ApiError::not_signed_in)?;
        let access = app.store().access_of_key(&token.hash()).await?;
        let access = access.ok_or_else(ApiError::not_signed_in)?;
        Ok(Self::Key(access))
    }
}

impl SignedIn {
    /// The proof that this person may look into a workspace.
    ///
    /// # Errors
    /// When it is no member there: to it there is no such workspace.
    pub(crate) async fn access(
        &self,
        app: &App,
        workspace: WorkspaceId,
    ) -> Result<Access, ApiError> {
        let access = app.store().access_of_user(self.user.id, workspace).await?;
        access.ok_or_else(|| ApiError::not_found("workspace"))
    }
}

impl Caller {
    /// The proof for a workspace: a key has one, a person names one. `scope` is what a key has to
    /// be made for; nothing where the gate asks.
    ///
    /// # Errors
    /// When a person names none, or one that it may not know of; when the key lacks the scope.
    pub(crate) async fn access(
        &self,
        app: &App,
        workspace: Option<WorkspaceId>,
        scope: Option<KeyScope>,
    ) -> Result<Access, ApiError> {
        match self {
            Self::Session(signed_in) => {
                let workspace = workspace.ok_or_else(|| {
                    ApiError::invalid(
                        "the request names no workspace",
                        "send workspace_id; with an API key it is the key's own",
                    )
                })?;
                signed_in.access(app, workspace).await
            }
            Self::Key(access) => {
                if workspace.is_some_and(|named| named != access.workspace()) {
                    return Err(ApiError::not_found("workspace"));
                }
                scoped(access, scope)
            }
        }
    }

    /// The proof for the workspace of something that was looked up, of a kind that people know by
    /// this word: nothing where it is not there.
    ///
    /// # Errors
    /// When the caller may not know of it; when the key lacks the scope.
    pub(crate) async fn access_where(
        &self,
        app: &App,
        workspace: Option<WorkspaceId>,
        what: &'static str,
        scope: KeyScope,
    ) -> Result<Access, ApiError> {
        match self {
            Self::Session(signed_in) => {
                let unknown = || ApiError::not_found(what);
                let workspace = workspace.ok_or_else(unknown)?;
                let user = signed_in.user.id;
                let access = app.store().access_of_user(user, workspace).await?;
                access.ok_or_else(unknown)
            }
            Self::Key(access) => scoped(access, Some(scope)),
        }
    }

    /// The proof for the workspace of a thread, and the thread, if the caller may read it.
    ///
    /// # Errors
    /// When the caller may not know of the thread; when the key lacks the scope.
    pub(crate) async fn access_to_thread(
        &self,
        app: &App,
        thread: ThreadId,
        scope: KeyScope,
    ) -> Result<(Access, Thread), ApiError> {
        let workspace = app.store().workspace_of_thread(thread).await?;
        let access = self.access_where(app, workspace, "thread", scope).await?;
        let found = app.store().thread_of(&access, thread).await?;
        let found = found.ok_or_else(|| ApiError::not_found("thread"))?;
        Ok((access, found))
    }

    /// Who changes something, for the audit log.
    pub(crate) fn actor(&self, from: &From) -> Actor {
        match self {
            Self::Session(signed_in) => signed_in.actor.clone(),
            Self::Key(access) => Actor {
                kind: ActorKind::ApiKey,
                id: access.api_key().map(|id| id.to_string()),
                name: access.name().to_owned(),
                ..from.0.clone()
            },
        }
    }

    /// The proof for the workspace of a sandbox.
    ///
    /// # Errors
    /// When the caller may not know of the sandbox; when the key lacks the scope.
    pub(crate) async fn access_to(
        &self,
        app: &App,
        sandbox: SandboxId,
        scope: Option<KeyScope>,
    ) -> Result<Access, ApiError> {
        match self {
            Self::Session(signed_in) => {
                let unknown = || ApiError::not_found("sandbox");
                let lease = app.store().lease(sandbox).await?.ok_or_else(unknown)?;
                let user = signed_in.user.id;
                let access = app.store().access_of_user(user, lease.workspace_id).await?;
                access.ok_or_else(unknown)
            }
            Self::Key(access) => scoped(access, scope),
        }
    }
}

fn scoped(access: &Access, scope: Option<KeyScope>) -> Result<Access, ApiError> {
    match scope {
        Some(scope) if !access.has_scope(scope) => Err(ApiError::forbidden(
            format!("this key has no scope `{scope}`"),
            "make a key that has it",
        )),
        _ => Ok(access.clone()),
    }
}
