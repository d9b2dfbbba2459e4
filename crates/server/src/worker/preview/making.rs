//! One preview on its way: a sandbox, the file and our script in it, and each part fetched as soon
//! as it is there. Nothing that comes back is believed; see `app/previews/check`.

use std::path::Path;

use bytes::Bytes;
use glovebox_client::{AgentClient, ClientError};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{EventBody, Outcome as Ending};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::process::{Argument, StartProcess, Stdin};
use glovebox_store::{Preview, PreviewState};

use super::source::spool_source;
use super::{Hand, Stopped, keep_part, sandbox};
use crate::app::App;
use crate::app::previews::check::{self, Line, NotAsAgreed, Outcome};
use crate::app::previews::contents::{Contents, Image, Page, Progress, Sheet, TextMedia};
use crate::app::previews::format::Format;
use crate::app::previews::scripts;
use crate::failure::chain;

/// How long the script may take, in milliseconds.
const TIME_LIMIT_MS: u64 = 200_000;

/// How much it may say, in bytes.
const OUTPUT_BYTES: u64 = 1 << 20;

/// The longest line of it, in bytes.
const LINE_BYTES: usize = 16 << 10;

const DAMAGED: &str = "the file is damaged, or not of the type that its name says";

pub(super) struct Making<'a> {
    app: &'a App,
    preview: &'a Preview,
    hand: Hand,
    format: Format,
    contents: Contents,
    /// Bytes of parts so far.
    total: u64,
}

impl<'a> Making<'a> {
    pub(super) fn new(app: &'a App, preview: &'a Preview, hand: Hand, format: Format) -> Self {
        Self {
            app,
            preview,
            hand,
            format,
            contents: Contents::of(preview).tried(),
            total: 0,
        }
    }

    pub(super) async fn run(mut self) -> Result<Contents, Stopped> {
        let app = self.app;
        let place = sandbox::place(app, self.preview.workspace_id).await?;
        sandbox::needs_gateway(app).await?;
        let file = spool_source(app, self.preview).await?;
        let note = async |id| {
            app.in_hand().uses(self.hand, id);
            self.contents.sandbox = Some(id);
            self.note().await
        };
        let id = sandbox::make(app, place, note).await?;
        self.contents.begun += 1;
        let made = match self.note().await {
            Ok(()) => self.in_sandbox(id, &file.path()).await,
            failed => failed,
        };
        sandbox::end(app, id, "the preview is made").await;
        self.contents.sandbox = None;
        self.contents.progress = None;
        self.contents.begun = 0;
        self.contents.unread = 0;
        made.map(|()| self.contents)
    }

    /// Lets people see what is there so far.
    async fn note(&self) -> Result<(), Stopped> {
        let document = serde_json::to_value(&self.contents).unwrap_or_default();
        self.app
            .store()
            .note_preview(self.preview.id, PreviewState::Making, &document)
            .await?;
        Ok(())
    }

    async fn in_sandbox(&mut self, id: SandboxId, file: &Path) -> Result<(), Stopped> {
        let agent = self.app.agent(id);
        let ending = self.format.word();
        let input = format!("in/file.{ending}");
        for (name, content) in scripts::FILES {
            let name = format!("{}/{name}", scripts::FOLDER);
            push(&agent, &name, Bytes::from_static(content.as_bytes())).await?;
        }
        let name = FileName::from_bytes(input.as_bytes()).map_err(|_| damaged())?;
        let put = agent.put_path(&name, file).await;
        put.map_err(|error| sandbox::unavailable(&error))?;
        let argv = [
            "python3",
            "-I",
            "-B",
            scripts::MAIN,
            ending,
            &format!("/workspace/{input}"),
            "/workspace/out",
        ];
        let start = StartProcess {
            execution: ExecutionId::new(),
            argv: argv.map(Argument::from).to_vec(),
            env: std::collections::BTreeMap::new(),
            stdin: Stdin::Empty,
            time_limit_ms: TIME_LIMIT_MS,
            output_limit_bytes: Some(OUTPUT_BYTES),
        };
        self.follow(&agent, &start).await?;
        let outcome = fetch(&agent, "outcome.json", check::MAX_OUTCOME_BYTES).await?;
        let outcome: Outcome = serde_json::from_slice(&outcome).map_err(|_| damaged())?;
        self.take_outcome(&agent, outcome).await
    }

    /// Runs the script to its end, and takes what it names on the way.
    async fn follow(&mut self, agent: &AgentClient, start: &StartProcess) -> Result<(), Stopped> {
        let failed = |error: ClientError| sandbox::unavailable(&error);
        let mut running = agent.run(start).await.map_err(failed)?;
        let mut lines = Lines::default();
        loop {
            match running.next().await.map_err(failed)? {
                Some(EventBody::Stdout(output)) => {
                    for line in lines.take(&output.0) {
                        // What is no line of ours is none of our script's, or of one that was
                        // taken over: the outcome decides.
                        if let Ok(line) = serde_json::from_slice::<Line>(&line) {
                            self.take_line(agent, line).await?;
                        }
                    }
                }
                Some(EventBody::Stderr(output)) => {
                    let said = String::from_utf8_lossy(&output.0);
                    tracing::debug!(preview = %self.preview.id, said = check::line(&said), "a preview");
                }
                Some(EventBody::ExecutionEnded(ended)) => {
                    return match ended.outcome {
                        Ending::Exited { code: 0 } => Ok(()),
                        Ending::OutOfMemory { .. } => {
                            Err(of_file("it takes more memory than a preview may use"))
                        }
                        Ending::TimeLimit { .. } => {
                            Err(of_file("it takes more time than a preview may take"))
                        }
                        other => {
                            tracing::info!(preview = %self.preview.id, ended = %other, "a preview broke off");
                            Err(damaged())
                        }
                    };
                }
                Some(EventBody::Failed(body)) => {
                    return Err(sandbox::unavailable(&ClientError::Refused(Box::new(body))));
                }
                Some(_) => {}
                None => return Err(sandbox::unavailable(&ClientError::Cut)),
            }
        }
    }

    async fn take_line(&mut self, agent: &AgentClient, line: Line) -> Result<(), Stopped> {
        // Once: a script that was taken over says it over and over.
        let is_first = self.contents.progress.is_none();
        let of = line.pages.filter(|_| is_first);
        let mut is_news = of.is_some();
        if let Some(of) = of {
            let of = of.min(check::MAX_PAGES);
            self.contents.progress = Some(Progress { done: 0, of });
        }
        if let Some(page) = line.page {
            is_news |= self.take_page(agent, page).await?;
        }
        if let Some(sheet) = line.sheet {
            is_news |= self.take_sheet(agent, sheet).await?;
        }
        // With the end comes the outcome, which says all.
        if is_news && !line.done {
            self.note().await?;
        }
        Ok(())
    }

    /// Takes a page with its two pictures, if it is the next one. Says whether it was.
    async fn take_page(&mut self, agent: &AgentClient, page: Page) -> Result<bool, Stopped> {
        page.check()?;
        let there = self.contents.pages.as_ref().map_or(0, Vec::len);
        if page.number as usize != there + 1 {
            return Ok(false);
        }
        let name = format!("page-{}.png", page.number);
        let picture = fetch(agent, &name, check::MAX_PAGE_BYTES).await?;
        if !check::is_png(&picture, page.width, page.height) {
            return Err(NotAsAgreed("the picture of a page").into());
        }
        let small_name = format!("thumbnail-{}.png", page.number);
        let small = fetch(agent, &small_name, check::MAX_PAGE_BYTES).await?;
        if !check::is_small_png(&small) {
            return Err(NotAsAgreed("the small picture of a page").into());
        }
        self.keep(&name, "image/png", &picture).await?;
        self.keep(&small_name, "image/png", &small).await?;
        self.contents.pages.get_or_insert_default().push(page);
        self.advance();
        Ok(true)
    }

    /// Takes a sheet, if it is the next one. Says whether it was.
    async fn take_sheet(&mut self, agent: &AgentClient, mut sheet: Sheet) -> Result<bool, Stopped> {
        sheet.check()?;
        let there = self.contents.sheets.as_ref().map_or(0, Vec::len);
        if sheet.number as usize != there + 1 {
            return Ok(false);
        }
        let name = format!("sheet-{}.json", sheet.number);
        let document = fetch(agent, &name, check::MAX_SHEET_BYTES).await?;
        let document = check::sheet(&document)?;
        self.keep(&name, "application/json", &document).await?;
        sheet.name = check::line(&sheet.name);
        self.contents.sheets.get_or_insert_default().push(sheet);
        self.advance();
        Ok(true)
    }

    fn advance(&mut self) {
        if let Some(progress) = &mut self.contents.progress {
            progress.done = (progress.done + 1).min(progress.of);
        }
    }

    async fn take_outcome(&mut self, agent: &AgentClient, outcome: Outcome) -> Result<(), Stopped> {
        if let Some(failed) = outcome.failed {
            let fix = outcome.fix.map(|fix| check::line(&fix));
            return Err(Stopped::File(Contents::failed(check::line(&failed), fix)));
        }
        self.contents.cut = outcome.cut.map(|cut| check::line(&cut));
        if let Some(pages) = outcome.pages {
            self.take_all_pages(agent, pages).await?;
            self.contents.page_count = outcome.count;
        }
        for sheet in outcome.sheets.unwrap_or_default() {
            self.take_sheet(agent, sheet).await?;
        }
        if let Some(made) = outcome.image {
            let picture = fetch(agent, "image", check::MAX_IMAGE_BYTES).await?;
            made.check(&picture)?;
            self.keep("image", &made.media, &picture).await?;
            self.contents.image = Some(Image {
                width: made.width,
                height: made.height,
            });
        }
        if outcome.text {
            let text = fetch(agent, "text.txt", check::MAX_TEXT_BYTES).await?;
            let text = String::from_utf8_lossy(&text);
            self.keep("text", "text/plain", text.as_bytes()).await?;
            self.contents.text_media = Some(TextMedia::Text);
        }
        if outcome.is_without_office {
            self.contents.message = Some(
                "only its text is shown: there is no LibreOffice where sandboxes run, which \
                 draws pages"
                    .into(),
            );
            self.contents.fix = Some(
                "ask whoever runs Glovebox for it; `glovebox doctor` names the packages".into(),
            );
        }
        let is_something = self.contents.pages.is_some()
            || self.contents.sheets.is_some()
            || self.contents.image.is_some()
            || self.contents.text_media.is_some();
        is_something.then_some(()).ok_or_else(damaged)
    }

    /// The words of each page come with the outcome.
    async fn take_all_pages(
        &mut self,
        agent: &AgentClient,
        pages: Vec<Page>,
    ) -> Result<(), Stopped> {
        for page in pages.into_iter().take(check::MAX_PAGES as usize) {
            let at = page.number.saturating_sub(1) as usize;
            let there = self.contents.pages.as_mut().and_then(|all| all.get_mut(at));
            match there {
                Some(there) => {
                    page.check()?;
                    there.text = page.text;
                }
                None => {
                    self.take_page(agent, page).await?;
                }
            }
        }
        Ok(())
    }

    async fn keep(&mut self, name: &str, media_type: &str, bytes: &[u8]) -> Result<(), Stopped> {
        self.total += bytes.len() as u64;
        if self.total > check::MAX_TOTAL_BYTES {
            return Err(of_file("its pages are larger than a preview keeps"));
        }
        keep_part(self.app, self.preview, name, media_type, bytes).await
    }
}

impl From<NotAsAgreed> for Stopped {
    fn from(error: NotAsAgreed) -> Self {
        tracing::warn!(%error, "a preview");
        damaged()
    }
}

fn of_file(message: &str) -> Stopped {
    Stopped::File(Contents::failed(message, Some("download it".into())))
}

fn damaged() -> Stopped {
    of_file(DAMAGED)
}

async fn push(agent: &AgentClient, name: &str, content: Bytes) -> Result<(), Stopped> {
    let name = FileName::from_bytes(name.as_bytes()).map_err(|_| damaged())?;
    let put = agent.put_bytes(&name, content).await;
    put.map(|_| ())
        .map_err(|error| sandbox::unavailable(&error))
}

/// Fetches a part. One that is not there, or larger than it may be, is the file's fault.
async fn fetch(agent: &AgentClient, name: &str, limit: u64) -> Result<Vec<u8>, Stopped> {
    let path = format!("out/{name}");
    let path = FileName::from_bytes(path.as_bytes()).map_err(|_| damaged())?;
    agent.get_bytes(&path, limit).await.map_err(|error| {
        let is_of_file = matches!(
            error,
            ClientError::TooLong { .. } | ClientError::Corrupt { .. }
        ) || matches!(
            error.code(),
            Some(ErrorCode::NotFound | ErrorCode::Invalid | ErrorCode::Conflict)
        );
        if is_of_file {
            tracing::info!(name, error = chain(&error), "a part of a preview");
            damaged()
        } else {
            sandbox::unavailable(&error)
        }
    })
}

/// Lines out of pieces of output. Of one that is too long nothing is given.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.begun.len() + part.len() <= LINE_BYTES {
                self.begun.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                whole.push(std::mem::take(&mut self.begun));
            }
        }
        whole
    }
}
