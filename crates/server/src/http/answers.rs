//! Answers that many routes share: pages, and the errors that each can give.

use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use super::ErrorBody;

/// Everything that can go wrong with any call. Which of them a call gives depends on what it does;
/// each is described by its `code`.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described, in the document")]
pub(crate) enum Errors {
    /// The request itself is wrong.
    #[response(status = 400)]
    Invalid(ErrorBody),
    /// Nobody is signed in, or with a wrong password or key.
    #[response(status = 401)]
    NotSignedIn(ErrorBody),
    /// It may be seen and not be done. `code` is the name of a denial of the gate, or `forbidden`.
    #[response(status = 403)]
    Forbidden(ErrorBody),
    /// There is no such thing, or the caller may not know of it.
    #[response(status = 404)]
    NotFound(ErrorBody),
    /// There is such a route, and not for this method.
    #[response(status = 405)]
    Method(ErrorBody),
    /// It does not fit what is there.
    #[response(status = 409)]
    Conflict(ErrorBody),
    /// More than may be sent.
    #[response(status = 413)]
    TooLarge(ErrorBody),
    /// The body is of another kind than the call takes.
    #[response(status = 415)]
    MediaType(ErrorBody),
    /// A quota is reached, or it was tried too often.
    #[response(status = 429)]
    TooMany(ErrorBody),
    /// The server failed, or a stored file was altered (`file_altered`) or lost (`file_lost`).
    #[response(status = 500)]
    Internal(ErrorBody),
    /// What makes sandboxes, or the database (`database_unavailable`), cannot be reached, or the machine
    /// has no room for another sandbox.
    #[response(status = 503)]
    Unavailable(ErrorBody),
    /// The server's disk has no room (`disk_full`).
    #[response(status = 507)]
    DiskFull(ErrorBody),
}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// What is on it.
    pub(crate) items: Vec<T>,
    /// What to send as `cursor` for the next page; nothing where this is the last.
    pub(crate) next_cursor: Option<String>,
}

/// How many things a page has when nobody says.
pub(crate) const PAGE: u32 = 50;

/// How many it has at most.
pub(crate) const MAX_PAGE: u32 = 500;

/// How many things a page is to have, where somebody says.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct PageSize(u32);

impl TryFrom<u32> for PageSize {
    type Error = String;

    fn try_from(limit: u32) -> Result<Self, String> {
        if (1..=MAX_PAGE).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(format!("a page has 1 to {MAX_PAGE} things, not {limit}"))
        }
    }
}

/// Which page of a list.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The `next_cursor` of the page before.
    pub(crate) cursor: Option<String>,
    /// How many things at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    pub(crate) limit: Option<PageSize>,
}

impl PageQuery {
    /// One more than is shown: whether there is one says whether there is a next page.
    pub(crate) fn fetch(&self) -> u32 {
        self.shown() + 1
    }

    /// How many are shown.
    pub(crate) fn shown(&self) -> u32 {
        self.limit.map_or(PAGE, |PageSize(limit)| limit)
    }

    /// The cursor as the id that it is.
    pub(crate) fn after<T: std::str::FromStr>(&self) -> Result<Option<T>, super::ApiError> {
        self.cursor.as_deref().map(parse_cursor).transpose()
    }

    /// Makes a page of what was fetched.
    pub(crate) fn page<R, T>(
        &self,
        mut fetched: Vec<R>,
        id: impl Fn(&R) -> String,
        view: impl FnMut(R) -> T,
    ) -> Page<T> {
        let shown = self.shown() as usize;
        let has_more = fetched.len() > shown;
        fetched.truncate(shown);
        let next_cursor = fetched.last().filter(|_| has_more).map(id);
        Page {
            items: fetched.into_iter().map(view).collect(),
            next_cursor,
        }
    }
}

fn parse_cursor<T: std::str::FromStr>(text: &str) -> Result<T, super::ApiError> {
    text.parse().map_err(|_| {
        super::ApiError::invalid(
            "the cursor is none that a list has given",
            "send the next_cursor of the page before, or none for the first page",
        )
    })
}

/// The longest text that a list is searched for, in characters.
const MAX_SEARCHED: usize = 200;

/// A text that a list is searched for, under the name of its parameter. What no name and no title
/// holds is refused here: a database would call it an error of its own.
pub(crate) fn searched(
    parameter: &'static str,
    text: Option<String>,
) -> Result<Option<String>, super::ApiError> {
    let is_fine = |text: &String| text.chars().count() <= MAX_SEARCHED && !text.contains('\0');
    if text.as_ref().is_none_or(is_fine) {
        return Ok(text);
    }
    Err(super::ApiError::invalid(
        format!("{parameter} has at most {MAX_SEARCHED} characters, and no U+0000"),
        "send less of what is looked for",
    ))
}
