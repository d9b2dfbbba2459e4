//! What the API shows of a preview.

use glovebox_store::Preview;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::previews::contents::{Contents, Image, Page, Progress, Sheet, TextMedia};

/// What a file looks like.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewView {
    pub(crate) id: String,
    /// `waiting`, `making`, `ready` or `failed`.
    pub(crate) state: String,
    /// As what the file is read: `pptx`, `xlsx`, `pdf`, …
    pub(crate) format: String,
    /// Why there is nothing to see, or what is to be known of what there is.
    pub(crate) message: Option<String>,
    /// What to do about that.
    pub(crate) fix: Option<String>,
    /// Whether the file has more than is shown.
    pub(crate) is_cut: bool,
    /// What is shown then.
    pub(crate) cut_message: Option<String>,
    /// Pages that can be seen.
    pub(crate) pages: Option<Vec<Page>>,
    /// How many the file has.
    pub(crate) page_count: Option<u32>,
    /// Sheets that can be seen.
    pub(crate) sheets: Option<Vec<Sheet>>,
    /// A picture that can be seen.
    pub(crate) image: Option<Image>,
    /// What kind of text can be read.
    pub(crate) text_media: Option<TextMedia>,
    /// How much is made.
    pub(crate) progress: Option<Progress>,
}

impl PreviewView {
    pub(crate) fn of(preview: &Preview) -> Self {
        let contents = Contents::of(preview);
        Self {
            id: preview.id.to_string(),
            state: preview.state.to_string(),
            format: preview.format.clone(),
            message: contents.message,
            fix: contents.fix,
            is_cut: contents.cut.is_some()
                || contents.sheets.iter().flatten().any(|sheet| sheet.is_cut),
            cut_message: contents.cut,
            pages: contents.pages,
            page_count: contents.page_count,
            sheets: contents.sheets,
            image: contents.image,
            text_media: contents.text_media,
            progress: contents.progress,
        }
    }
}
