//! What is there to see of a file: stored beside the state of its preview.

use glovebox_protocol::ids::SandboxId;
use glovebox_store::Preview;
use serde::{Deserialize, Serialize};

/// What there is to see, or why there is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Contents {
    /// Why there is no preview, or what is to be known of it: one line.
    pub(crate) message: Option<String>,
    /// What to do about that.
    pub(crate) fix: Option<String>,
    /// Whether the failure is none of the file's, so that it is worth while to try again.
    pub(crate) may_pass: bool,
    /// What is not shown, where something is not.
    pub(crate) cut: Option<String>,
    pub(crate) pages: Option<Vec<Page>>,
    /// How many pages the file has; more than are shown where it was cut.
    pub(crate) page_count: Option<u32>,
    pub(crate) sheets: Option<Vec<Sheet>>,
    pub(crate) image: Option<Image>,
    pub(crate) text_media: Option<TextMedia>,
    pub(crate) progress: Option<Progress>,
    /// The sandbox in which it is being made: whoever takes over ends it.
    pub(crate) sandbox: Option<SandboxId>,
    /// How many sandboxes were made for it, of which none has brought it to its end.
    pub(crate) begun: i64,
    /// How often its file could not be read.
    pub(crate) unread: i64,
}

/// A page that can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Counts up from 1.
    pub(crate) number: u32,
    /// Of its picture, in pixels.
    pub(crate) width: u32,
    /// Of its picture, in pixels.
    pub(crate) height: u32,
    /// What stands on it, for those who do not see it.
    #[serde(default)]
    pub(crate) text: String,
}

/// A sheet that can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sheet {
    /// Counts up from 1.
    pub(crate) number: u32,
    pub(crate) name: String,
    /// How many are shown.
    pub(crate) rows: u32,
    /// How many are shown.
    pub(crate) columns: u32,
    /// Whether it has more than is shown.
    pub(crate) is_cut: bool,
}

/// A picture that can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
}

/// What kind of text there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TextMedia {
    /// Plain text.
    Text,
    /// JSON, laid out for reading.
    Json,
    /// Markdown, as HTML that is safe to put into a page.
    Markdown,
    /// A page of its own, for a frame.
    Html,
}

/// How much of it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    /// Pages or sheets that can be seen already.
    pub(crate) done: u32,
    /// How many there will be.
    pub(crate) of: u32,
}

impl Contents {
    /// Of a preview; nothing where the row holds what nobody here wrote.
    pub(crate) fn of(preview: &Preview) -> Self {
        serde_json::from_value(preview.contents.clone()).unwrap_or_default()
    }

    /// Nothing is there any more but how often it was tried.
    pub(crate) fn tried(&self) -> Self {
        Self {
            begun: self.begun,
            unread: self.unread,
            ..Self::default()
        }
    }

    /// There is none, and why.
    pub(crate) fn failed(message: impl Into<String>, fix: Option<String>) -> Self {
        Self {
            message: Some(message.into()),
            fix,
            ..Self::default()
        }
    }

    /// There is none just now, and why.
    pub(crate) fn failed_for_now(message: impl Into<String>, fix: Option<String>) -> Self {
        Self {
            may_pass: true,
            ..Self::failed(message, fix)
        }
    }
}
