//! The routes: what a verified request asks for. Each hands over to one function.

use std::sync::Arc;

use glovebox_protocol::artifact::Sweep;
use glovebox_protocol::claim::{ClaimSandbox, MAX_CLAIMANT};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::{StartProcess, WorkloadEnded};
use hyper::http::request::Parts;

use crate::body::{MAX_EXECUTE, MAX_JSON, SignedBody};
use crate::claimed::Claimed;
use crate::error::ApiError;
use crate::files;
use crate::process;
use crate::reply::{self, Reply};
use crate::shared::Shared;
use crate::sweep;

/// Fulfils one request. Nothing has an effect before the whole body is verified. What counts as
/// use of the sandbox does so until its answer has been sent.
pub(crate) async fn route(
    shared: &Arc<Shared>,
    claimed: &Claimed,
    parts: &Parts,
    body: &mut SignedBody,
) -> Reply {
    let path = parts.uri.path();
    let method = parts.method.as_str();
    let query = parts.uri.query();
    let rest = path
        .strip_prefix("/v1/")
        .ok_or_else(|| no_route(method, path))?;
    let (noun, name) = rest.split_once('/').unwrap_or((rest, ""));
    match (noun, query) {
        ("list", _) | (_, None) => {}
        ("processes", Some("eof")) if name.ends_with("/stdin") => {}
        ("workload", Some("unused")) if name == "end" => {}
        (_, Some(_)) => return Err(ApiError::invalid("this route takes no such query")),
    }
    if claimed.is_unclaimed() && !matches!((method, rest), ("GET", "status") | ("POST", "claim")) {
        return Err(ApiError::waits_for_claim());
    }
    let in_use = is_use(method, noun, name).then(|| shared.activity.begin());
    let mut response = match noun {
        "files" | "stat" | "list" => {
            file_route(shared, claimed, (method, noun, name), query, body).await
        }
        "processes" => process_route(shared, (method, name), query.is_some(), body).await,
        "executions" => log_route(shared, (method, name), body).await,
        "kernel" => kernel_route(shared, (method, name), body).await,
        _ => sandbox_route(shared, claimed, (method, rest), query.is_some(), body).await,
    }?;
    response.body_mut().hold(in_use);
    Ok(response)
}

/// Whether such a request is use of the sandbox, or only asks about it.
fn is_use(method: &str, noun: &str, name: &str) -> bool {
    match noun {
        "files" | "stat" | "list" | "processes" | "executions" | "artifacts" => true,
        "kernel" => (method, name) != ("GET", ""),
        _ => false,
    }
}

async fn sandbox_route(
    shared: &Arc<Shared>,
    claimed: &Claimed,
    route: (&str, &str),
    unused: bool,
    body: &mut SignedBody,
) -> Reply {
    match route {
        ("GET", "status") => {
            body.empty().await?;
            reply::ok(&shared.status(claimed).await?)
        }
        ("POST", "claim") => {
            let request: ClaimSandbox = body.json(MAX_JSON).await?;
            if !(1..=MAX_CLAIMANT).contains(&request.claimant.len()) {
                return Err(ApiError::invalid(format!(
                    "`claimant` has to be 1 to {MAX_CLAIMANT} bytes long"
                )));
            }
            claimed.give(request.claimant)?;
            shared.begin_use(claimed);
            reply::ok(&shared.status(claimed).await?)
        }
        ("POST", "artifacts/sweep") => {
            let request: Sweep = body.json(MAX_JSON).await?;
            sweep::check(&request)?;
            let inputs = claimed.inputs.files();
            let swept = shared
                .files
                .run(move |workspace| sweep::sweep(workspace, &request, &inputs))
                .await?;
            reply::ok(&swept)
        }
        ("POST", "workload/end") => {
            body.empty().await?;
            let processes = if unused {
                shared.kernel.end_idle().await?
            } else {
                shared.workload.end().await
            };
            reply::ok(&WorkloadEnded { processes })
        }
        (method, path) => Err(no_route(method, path)),
    }
}

async fn file_route(
    shared: &Arc<Shared>,
    claimed: &Claimed,
    (method, noun, name): (&str, &str, &str),
    query: Option<&str>,
    body: &mut SignedBody,
) -> Reply {
    let parse = |text: &str| {
        text.parse::<FileName>()
            .map_err(|fault| ApiError::invalid(fault.to_string()))
    };
    if (method, noun) != ("PUT", "files") {
        body.empty().await?;
    }
    match (method, noun) {
        ("PUT", "files") => files::put(&shared.files, &claimed.inputs, parse(name)?, body).await,
        ("GET", "files") => {
            let limits = &shared.config.limits;
            let limit = limits.workspace_bytes.max(limits.file_size_bytes);
            files::get(&shared.files, parse(name)?, limit).await
        }
        ("DELETE", "files") => {
            let name = parse(name)?;
            let inputs = Arc::clone(&claimed.inputs);
            shared
                .files
                .run(move |workspace| {
                    workspace.remove(&name)?;
                    inputs.forget(&name);
                    Ok::<_, files::FileError>(())
                })
                .await??;
            reply::ok(&serde_json::json!({}))
        }
        ("GET", "stat") => {
            let name = parse(name)?;
            let stat = shared
                .files
                .run(move |workspace| {
                    workspace
                        .stat(&name)
                        .map(|stat| files::describe(name, &stat))
                })
                .await??;
            reply::ok(&stat)
        }
        ("GET", "list") if name.is_empty() => {
            let after = match query.map(|query| query.strip_prefix("after=")) {
                None => None,
                Some(Some(name)) => Some(parse(name)?),
                Some(None) => return Err(ApiError::invalid("a list takes only `after=NAME`")),
            };
            let listing = shared
                .files
                .run(move |workspace| files::list(workspace, after.as_ref()))
                .await?;
            reply::ok(&listing)
        }
        _ => Err(no_route(method, noun)),
    }
}

async fn process_route(
    shared: &Arc<Shared>,
    (method, rest): (&str, &str),
    eof: bool,
    body: &mut SignedBody,
) -> Reply {
    let (id, verb) = rest.split_once('/').unwrap_or((rest, ""));
    let id = || execution_id(id);
    match (method, rest, verb) {
        ("POST", "", _) => {
            let request: StartProcess = body.json(MAX_JSON).await?;
            process::start(&shared.workload, &shared.registry, request).await
        }
        ("POST", _, "stdin") => {
            let bytes = body.whole(MAX_JSON).await?;
            process::stdin(&shared.registry, id()?, &bytes, eof).await?;
            reply::ok(&serde_json::json!({}))
        }
        ("POST", _, "cancel") => {
            let how = body.json(MAX_JSON).await?;
            process::cancel(&shared.workload, &shared.registry, id()?, how)?;
            reply::ok(&serde_json::json!({}))
        }
        _ => Err(no_route(method, "processes")),
    }
}

async fn log_route(
    shared: &Arc<Shared>,
    (method, rest): (&str, &str),
    body: &mut SignedBody,
) -> Reply {
    match (method, rest.split_once('/')) {
        ("GET", Some((id, "log"))) => {
            body.empty().await?;
            shared.logs.get(execution_id(id)?)
        }
        ("GET", None) if !rest.is_empty() => {
            body.empty().await?;
            reply::ok(&shared.registry.look_up(execution_id(rest)?)?)
        }
        _ => Err(no_route(method, "executions")),
    }
}

async fn kernel_route(
    shared: &Arc<Shared>,
    (method, verb): (&str, &str),
    body: &mut SignedBody,
) -> Reply {
    if (method, verb) == ("GET", "") {
        body.empty().await?;
        return reply::ok(&shared.kernel.info());
    }
    match (method, verb) {
        ("POST", "") => shared.kernel.start(body.json(MAX_JSON).await?).await,
        ("DELETE", "") => {
            body.empty().await?;
            shared.kernel.shut_down().await
        }
        ("POST", "restart") => {
            body.empty().await?;
            shared.kernel.restart().await
        }
        ("POST", "interrupt") => {
            shared.kernel.interrupt(body.json(MAX_JSON).await?)?;
            reply::ok(&serde_json::json!({}))
        }
        ("POST", _) if verb.ends_with("/cancel") => {
            let call = execution_id(verb.trim_end_matches("/cancel"))?;
            shared.kernel.cancel(call, body.json(MAX_JSON).await?)?;
            reply::ok(&serde_json::json!({}))
        }
        ("POST", "execute") => shared.kernel.execute(body.json(MAX_EXECUTE).await?).await,
        _ => Err(no_route(method, "kernel")),
    }
}

fn execution_id(text: &str) -> Result<ExecutionId, ApiError> {
    text.parse::<ExecutionId>()
        .map_err(|fault| ApiError::invalid(fault.to_string()))
}

fn no_route(method: &str, path: &str) -> ApiError {
    let path = glovebox_protocol::file::escape_for_display(path.as_bytes());
    ApiError::not_found(format!("there is no route {method} {path}"))
}
