//! Streams of events, of which there are only so many.

use serde_json::json;

use super::caller::Caller;
use super::error::ApiError;
use crate::app::App;
use crate::app::streams::{OpenStream, TooManyStreams, Who};

/// Counts one more stream of a caller, for as long as what this gives lives. `instead` says what else tells
/// what the stream would.
pub(super) fn open(app: &App, caller: &Caller, instead: &str) -> Result<OpenStream, ApiError> {
    let who = match caller {
        Caller::Session(signed_in) => Who::User(signed_in.user.id),
        // Whoever may make one key may make many.
        Caller::Key(access) => Who::Programs(access.workspace()),
    };
    let opened = app.streams().open(who, app.config().streams);
    opened.map_err(|error| refused(error, instead))
}

fn refused(error: TooManyStreams, instead: &str) -> ApiError {
    let (TooManyStreams::Own(limit) | TooManyStreams::InAll(limit)) = error;
    let fix = format!("close one that is not needed; {instead}");
    ApiError::quota("too_many_streams", error.to_string(), &fix).with(json!({ "limit": limit }))
}
