//! Streams of events, of which there are only so many.

use serde_json::json;

use super::caller::Caller;
use super::error::ApiError;
use crate::app::App;
use crate::app::streams::{OpenStream, TooManyStreams, Who};

/// Counts one more stream of a caller, for as long as what this gives lives.
pub(super) fn open(app: &App, caller: &Caller) -> Result<OpenStream, ApiError> {
    let who = match caller {
        Caller::Session(signed_in) => Who::User(signed_in.user.id),
        Caller::Key(access) => access.api_key().map_or(Who::Unknown, Who::Key),
    };
    Ok(app.streams().open(who, app.config().streams)?)
}

impl From<TooManyStreams> for ApiError {
    fn from(error: TooManyStreams) -> Self {
        let (TooManyStreams::Own(limit) | TooManyStreams::InAll(limit)) = error;
        let fix = "close one that is not needed; what happens in a thread can also be asked for \
                   again and again at its `history`";
        Self::quota("too_many_streams", error.to_string(), fix).with(json!({ "limit": limit }))
    }
}
