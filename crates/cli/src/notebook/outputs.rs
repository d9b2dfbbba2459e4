//! Turns the events of a run into the outputs that stand in a notebook.
//!
//! What is held of one notebook has a budget, whatever its cells show: this process is on the
//! host, and no limit of the sandbox holds for it.

mod kept;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use glovebox_protocol::event::{EventBody, Shown};
use serde::ser::{Serialize, SerializeSeq as _, Serializer};

use kept::{Content, Kept, OVERHEAD, Written, text_cost};

use crate::quantity::size;

/// How many bytes all outputs of a notebook may take in it.
const BUDGET: u64 = 64 * 1024 * 1024;

/// What exceptions may take beyond that: they say why a notebook stopped.
const FOR_ERRORS: u64 = 1024 * 1024;

/// The outputs of all cells that have run.
#[derive(Debug)]
pub(crate) struct Outputs {
    cells: BTreeMap<usize, CellOutputs>,
    /// Displays that can still be updated, by their id.
    displays: HashMap<String, usize>,
    updated: Vec<Updated>,
    /// The cell that runs.
    current: usize,
    /// Counts what was added, so that an update is known to be later than an output.
    clock: u64,
    budget: u64,
    /// How much of the budget is used up.
    used: u64,
    /// Whether something did not fit, and since when nothing more is taken in.
    full: bool,
    /// Whether that was not told yet.
    untold: bool,
}

#[derive(Debug, Default)]
struct CellOutputs {
    execution_count: Option<u32>,
    shown: Vec<Place>,
    /// The end of a stream's bytes that is no whole character yet.
    partial: Vec<u8>,
    clear_at_next: bool,
}

/// An output in its place.
#[derive(Debug)]
struct Place {
    kept: Kept,
    cost: u64,
    added: u64,
    /// Which updates are meant for it.
    display: Option<usize>,
}

/// All outputs with one display id. An update is held once, however many there are.
#[derive(Debug, Default)]
struct Updated {
    places: u64,
    latest: Option<Update>,
}

#[derive(Debug)]
struct Update {
    content: Rc<Content>,
    cost: u64,
    at: u64,
    /// How many outputs show it.
    places: u64,
}

impl Update {
    const fn total(&self) -> u64 {
        self.cost.saturating_mul(self.places)
    }
}

impl Default for Outputs {
    fn default() -> Self {
        Self::with_budget(BUDGET)
    }
}

impl Outputs {
    fn with_budget(budget: u64) -> Self {
        Self {
            cells: BTreeMap::new(),
            displays: HashMap::new(),
            updated: Vec::new(),
            current: 0,
            clock: 0,
            budget,
            used: 0,
            full: false,
            untold: false,
        }
    }

    /// A cell begins.
    pub(crate) fn begin(&mut self, cell: usize) {
        self.current = cell;
        self.cells.insert(cell, CellOutputs::default());
    }

    /// The number in `In[n]` of a cell that has run.
    pub(super) fn count_of(&self, cell: usize) -> Option<u32> {
        self.cells.get(&cell)?.execution_count
    }

    /// The outputs of one cell, as they stand in a notebook.
    pub(super) const fn of_cell(&self, cell: usize) -> CellOutputsOf<'_> {
        CellOutputsOf {
            outputs: self,
            cell,
        }
    }

    /// Takes in one event of the cell that runs. What is returned is to be told to the person:
    /// it comes once, when the budget is used up.
    pub(crate) fn take(&mut self, event: &EventBody) -> Option<String> {
        match event {
            EventBody::Stdout(bytes) => self.add_stream("stdout", &bytes.0),
            EventBody::Stderr(bytes) => self.add_stream("stderr", &bytes.0),
            EventBody::Display(shown) => self.add_shown(None, shown),
            EventBody::Result {
                execution_count,
                shown,
            } => self.add_shown(Some(*execution_count), shown),
            EventBody::Error {
                name,
                value,
                traceback,
            } => {
                let error = Kept::error(name, value, traceback);
                let cost = error.cost();
                self.clear_if_due();
                if self.used.saturating_add(cost) <= self.budget + FOR_ERRORS {
                    self.used += cost;
                    self.add(error, cost, None);
                } else {
                    self.is_full();
                }
            }
            EventBody::UpdateDisplay(shown) => self.update(shown),
            EventBody::ClearOutput { wait: true } => {
                self.cells.entry(self.current).or_default().clear_at_next = true;
            }
            EventBody::ClearOutput { wait: false } => self.clear(),
            _ => {}
        }
        self.told()
    }

    /// Adds output of an earlier cell that came after the cell's end.
    pub(crate) fn take_late(&mut self, cell: usize, bytes: &[u8]) -> Option<String> {
        let present = std::mem::replace(&mut self.current, cell);
        self.add_stream("stdout", bytes);
        let told = self.told();
        self.current = present;
        told
    }

    /// The number in `In[n]`.
    pub(crate) fn set_count(&mut self, execution_count: u32) {
        self.cells.entry(self.current).or_default().execution_count = Some(execution_count);
    }

    /// Adds a line of Glovebox's own to the errors of the cell, such as that output was dropped.
    pub(crate) fn add_note(&mut self, note: &str) {
        // There are a few of them at most for each cell, and each is short.
        let line = format!("{note}\n");
        self.clear_if_due();
        let cost = self.cost_of_text("stderr", line.as_bytes());
        self.used = self.used.saturating_add(cost);
        self.push_text("stderr", line.as_bytes(), cost);
    }

    fn told(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.untold) {
            return None;
        }
        let note = format!(
            "warning: the notebook's outputs are over {}; it keeps no more of them",
            size(self.budget)
        );
        self.add_note(&note);
        Some(note)
    }

    /// Takes room from the budget. Once something did not fit, nothing more does: what is kept
    /// has no gaps.
    fn fits(&mut self, cost: u64) -> bool {
        let used = self.used.saturating_add(cost);
        if self.full || used > self.budget {
            self.is_full();
            return false;
        }
        self.used = used;
        true
    }

    const fn is_full(&mut self) {
        self.untold |= !self.full;
        self.full = true;
    }

    fn add_stream(&mut self, name: &'static str, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.clear_if_due();
        let cost = self.cost_of_text(name, bytes);
        if self.fits(cost) {
            self.push_text(name, bytes, cost);
        }
    }

    fn cost_of_text(&self, name: &str, bytes: &[u8]) -> u64 {
        let text = text_cost(&String::from_utf8_lossy(bytes));
        if self.goes_on(name) {
            text
        } else {
            text + OVERHEAD
        }
    }

    /// Whether the last output is of this stream.
    fn goes_on(&self, name: &str) -> bool {
        let last = self
            .cells
            .get(&self.current)
            .and_then(|cell| cell.shown.last());
        last.is_some_and(|last| matches!(&last.kept, Kept::Stream { name: of, .. } if *of == name))
    }

    /// Puts text in its place; room for it was taken already.
    fn push_text(&mut self, name: &'static str, bytes: &[u8], cost: u64) {
        if !self.goes_on(name) {
            let text = String::new();
            self.add(Kept::Stream { name, text }, 0, None);
            self.cells.entry(self.current).or_default().partial.clear();
        }
        let cell = self.cells.entry(self.current).or_default();
        cell.partial.extend_from_slice(bytes);
        let new = take_text(&mut cell.partial);
        if let Some(place) = cell.shown.last_mut()
            && let Kept::Stream { text, .. } = &mut place.kept
        {
            place.cost += cost;
            text.push_str(&new);
        }
    }

    fn add_shown(&mut self, execution_count: Option<u32>, shown: &Shown) {
        self.clear_if_due();
        let output = Kept::Shown {
            execution_count,
            content: Content::of(&shown.data, &shown.metadata),
        };
        let cost = output.cost();
        // An id stays when its output is cleared.
        let id = shown.display_id.as_deref();
        let for_id = match id {
            Some(id) if !self.displays.contains_key(id) => OVERHEAD + id.len() as u64,
            _ => 0,
        };
        if !self.fits(cost.saturating_add(for_id)) {
            return;
        }
        let display = id.map(|id| match self.displays.get(id) {
            Some(display) => *display,
            None => {
                self.updated.push(Updated::default());
                let display = self.updated.len() - 1;
                self.displays.insert(id.to_owned(), display);
                display
            }
        });
        if let Some(display) = display {
            self.updated[display].places += 1;
        }
        self.add(output, cost, display);
    }

    /// Puts an output in its place; room for it was taken already.
    fn add(&mut self, kept: Kept, cost: u64, display: Option<usize>) {
        self.clock += 1;
        let added = self.clock;
        let cell = self.cells.entry(self.current).or_default();
        cell.shown.push(Place {
            kept,
            cost,
            added,
            display,
        });
    }

    /// An update changes every output with that id, in earlier cells too.
    fn update(&mut self, shown: &Shown) {
        let id = shown.display_id.as_ref();
        let Some(display) = id.and_then(|id| self.displays.get(id)).copied() else {
            return;
        };
        let places = self.updated[display].places;
        if places == 0 {
            return;
        }
        let content = Content::of(&shown.data, &shown.metadata);
        let cost = Kept::cost_with(&content);
        let before = self.updated[display].latest.as_ref();
        let freed = before.map_or(0, Update::total);
        self.used -= freed;
        // It is written once for each of them.
        if !self.fits(cost.saturating_mul(places)) {
            self.used += freed;
            return;
        }
        self.clock += 1;
        self.updated[display].latest = Some(Update {
            content,
            cost,
            at: self.clock,
            places,
        });
    }

    fn clear_if_due(&mut self) {
        if self
            .cells
            .get(&self.current)
            .is_some_and(|cell| cell.clear_at_next)
        {
            self.clear();
        }
    }

    fn clear(&mut self) {
        let cell = self.cells.entry(self.current).or_default();
        cell.partial.clear();
        cell.clear_at_next = false;
        for place in std::mem::take(&mut cell.shown) {
            self.used = self.used.saturating_sub(place.cost);
            let Some(display) = place.display else {
                continue;
            };
            let updated = &mut self.updated[display];
            updated.places -= 1;
            if let Some(update) = &mut updated.latest
                && update.at > place.added
            {
                update.places -= 1;
                self.used = self.used.saturating_sub(update.cost);
            }
        }
    }
}

/// The outputs of one cell.
pub(super) struct CellOutputsOf<'a> {
    outputs: &'a Outputs,
    cell: usize,
}

impl Serialize for CellOutputsOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cell = self.outputs.cells.get(&self.cell);
        let shown = cell.map_or(&[][..], |cell| &cell.shown);
        let mut list = serializer.serialize_seq(Some(shown.len()))?;
        for place in shown {
            let update = place
                .display
                .and_then(|display| self.outputs.updated[display].latest.as_ref())
                .filter(|update| update.at > place.added);
            list.serialize_element(&Written {
                kept: &place.kept,
                content: update.map(|update| &*update.content),
            })?;
        }
        list.end()
    }
}

/// Takes the text out of bytes that may end in the middle of a character; what is no text
/// becomes the replacement character.
fn take_text(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                rest = after;
                match error.error_len() {
                    Some(length) => {
                        text.push(char::REPLACEMENT_CHARACTER);
                        rest = &rest[length..];
                    }
                    None => break,
                }
            }
        }
    }
    *bytes = rest.to_vec();
    text
}

#[cfg(test)]
mod tests;
