//! The API: routes and what is true of all of them. Handlers extract, call one use case of
//! `app/`, and answer.

mod account;
mod admin;
mod answers;
mod artifacts;
mod attachments;
mod audit;
mod body;
mod caller;
mod console;
mod error;
mod executions;
mod files;
mod health;
mod keys;
mod knowledge;
mod members;
mod messages;
mod metrics;
mod models;
mod preview_views;
mod previews;
mod profile_settings;
mod profiles;
mod requests;
mod sandboxes;
mod session;
mod setup;
mod streams;
mod thread_events;
mod thread_history;
mod threads;
mod views;
mod workspaces;

pub use error::{ApiError, ErrorBody};
pub use metrics::metrics_router;

use axum::Router;
use axum::middleware;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// What the document says of the API as a whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Glovebox",
        description = "Run code in sealed sandboxes, and look after who may. Every error has the \
                       shape of `ErrorBody`. Calls need the cookie of a session, or \
                       `Authorization: Bearer KEY` with an API key.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(error::ErrorBody, audit::ExportForm)),
    modifiers(&Security)
)]
struct Document;

/// How callers prove who they are.
struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme,
        };
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme(
            "api_key",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
        components.add_security_scheme(
            "session",
            SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(caller::COOKIE))),
        );
    }
}

fn api() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(setup::state, setup::set_up))
        .routes(routes!(session::show, session::sign_in, session::sign_out))
        .routes(routes!(account::sessions))
        .routes(routes!(account::end_session))
        .routes(routes!(account::change_password))
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::code_execution))
        .routes(routes!(members::list, members::add))
        .routes(routes!(members::change, members::remove))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(admin::users, admin::create_user))
        .routes(routes!(admin::change_user))
        .routes(routes!(admin::workspaces, admin::create_workspace))
        .routes(routes!(admin::change_workspace))
        .routes(routes!(admin::sandboxes))
        .routes(routes!(admin::end_sandbox))
        .routes(routes!(audit::audit))
        .routes(routes!(audit::export_audit))
        .routes(routes!(profiles::deployment, profiles::change_deployment))
        .routes(routes!(profiles::list))
        .routes(routes!(profiles::show, profiles::change))
        .routes(routes!(profiles::test))
        .routes(routes!(profiles::canary))
        .routes(routes!(profiles::acknowledge))
        .routes(routes!(profiles::activate))
        .routes(routes!(profiles::disable))
        .routes(routes!(models::list, models::create))
        .routes(routes!(models::change, models::delete))
        .routes(routes!(models::test))
        .routes(routes!(sandboxes::list, sandboxes::create))
        .routes(routes!(sandboxes::show, sandboxes::end))
        .routes(routes!(executions::create))
        .routes(routes!(executions::show))
        .routes(routes!(executions::events))
        .routes(routes!(executions::interrupt))
        .routes(routes!(files::list))
        .routes(routes!(files::put, files::get, files::delete))
        .routes(routes!(artifacts::list))
        .routes(routes!(artifacts::show))
        .routes(routes!(artifacts::content))
        .routes(routes!(artifacts::versions))
        .routes(routes!(artifacts::restore))
        .routes(routes!(threads::chat))
        .routes(routes!(threads::list, threads::create))
        .routes(routes!(threads::show, threads::change, threads::delete))
        .routes(routes!(messages::send))
        .routes(routes!(messages::retry))
        .routes(routes!(messages::stop))
        .routes(routes!(thread_events::events))
        .routes(routes!(thread_history::history))
        .routes(routes!(attachments::upload))
        .routes(routes!(attachments::show, attachments::delete))
        .routes(routes!(attachments::content))
        .routes(routes!(knowledge::list, knowledge::add))
        .routes(routes!(knowledge::delete))
        .routes(routes!(knowledge::content))
        .routes(routes!(previews::of_artifact))
        .routes(routes!(previews::of_attachment))
        .routes(routes!(previews::of_knowledge_file))
        .routes(routes!(previews::page))
        .routes(routes!(previews::thumbnail))
        .routes(routes!(previews::sheet))
        .routes(routes!(previews::image))
        .routes(routes!(previews::text))
        .routes(routes!(previews::markdown))
        .routes(routes!(previews::html))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
}

/// The OpenAPI document, as it is committed.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    named(api().into_openapi())
}

/// Gives every operation a name that no other has, as handlers of different files may share
/// theirs, and every path the form that OpenAPI knows.
fn named(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths = paths
        .into_iter()
        .map(|(path, item)| (path.replace("{*", "{"), item))
        .collect();
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.patch,
        ];
        for operation in operations.into_iter().flatten() {
            let tag = operation.tags.iter().flatten().next();
            if let (Some(tag), Some(name)) = (tag, &operation.operation_id) {
                operation.operation_id = Some(format!("{}_{name}", tag.replace(' ', "_")));
            }
        }
    }
    document
}

/// All routes of a server.
pub fn router(app: App) -> Router {
    let (routes, document) = api().split_for_parts();
    routes
        .route("/api/v1/openapi.json", health::openapi(&named(document)))
        .route("/api/v1/docs", get(console::api_reference))
        .fallback(console::any)
        .method_not_allowed_fallback(requests::no_such_method)
        .layer(middleware::from_fn_with_state(
            app.clone(),
            requests::every_request,
        ))
        .with_state(app)
}
