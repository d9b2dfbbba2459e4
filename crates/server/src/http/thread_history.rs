//! What has happened in a thread, page by page from its end.

use axum::Json;
use axum::extract::{Path, Query, State};
use chrono::{DateTime, Utc};
use glovebox_protocol::thread::ThreadEvent;
use glovebox_store::KeyScope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Errors, Page, PageQuery, PageSize};
use super::caller::Caller;
use super::error::ApiError;
use super::threads::thread_id;
use crate::app::App;
use crate::failure::chain;

/// Something that happened in a thread, as its stream tells it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ThreadEventView {
    /// Counts up from 1 without gaps within one thread.
    seq: u64,
    /// When it happened.
    at: DateTime<Utc>,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    kind: String,
    /// What the kind says.
    #[schema(value_type = Object)]
    data: Value,
}

impl ThreadEventView {
    fn of(event: &ThreadEvent) -> Result<Self, ApiError> {
        serde_json::to_value(event)
            .and_then(serde_json::from_value)
            .map_err(|error| {
                tracing::error!(
                    seq = event.seq,
                    error = chain(&error),
                    "telling an event of a thread"
                );
                ApiError::internal()
            })
    }
}

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// The `next_cursor` of the page before, for what happened earlier.
    cursor: Option<String>,
    /// The number of the last event that the caller has, for what has happened since. An answer may hold
    /// a part of it: ask again, after its last event, until one is empty.
    after: Option<u64>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

/// Lists what has happened in a thread, the newest page first; the events of a page are in their order.
/// A page begins with a message where it holds one, so that it can be shown by itself. What happens
/// from then on tells the stream of events, after the number of the last one of the first page; whoever
/// may open no stream asks here with `after`, again and again until an answer is empty: `next_cursor` says
/// nothing then.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/history", tag = "threads",
    params(("thread" = String, Path, description = "Its id"), HistoryQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<ThreadEventView>), Errors))]
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<Page<ThreadEventView>>, ApiError> {
    let id = thread_id(&thread)?;
    caller
        .access_to_thread(&app, id, KeyScope::ThreadsRead)
        .await?;
    if query
        .after
        .is_some_and(|after| i64::try_from(after).is_err())
    {
        return Err(ApiError::invalid(
            "`after` is larger than the number of any event",
            "send the number of the last event that there is, or leave it out",
        ));
    }
    let page = PageQuery {
        cursor: query.cursor,
        limit: query.limit,
    };
    let before = page.after::<u64>()?;
    let events = match (before, query.after) {
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid(
                "the request asks for what was before and for what came after",
                "send cursor or after, and not both",
            ));
        }
        (None, Some(after)) => app.store().thread_events(id, after, page.shown()).await?,
        (before, None) => {
            app.store()
                .thread_events_before(id, before, page.shown())
                .await?
        }
    };
    let first = events.first().map(|event| event.seq);
    let next_cursor = first
        .filter(|first| *first > 1 && query.after.is_none())
        .map(|first| first.to_string());
    let items: Result<Vec<_>, _> = events.iter().map(ThreadEventView::of).collect();
    Ok(Json(Page {
        items: items?,
        next_cursor,
    }))
}
