//! What was pushed into the sandbox: how many bytes, and which contents under which names.

use std::collections::HashMap;

use glovebox_protocol::event::mebibytes;
use glovebox_protocol::file::FileName;
use glovebox_protocol::limits::InputLimits;
use glovebox_protocol::sign::BodyDigest;

use crate::error::ApiError;
use crate::lock::Locked;

/// Counts what goes in and remembers it, so that it is not collected as if it were made here.
pub(crate) struct Inputs {
    limits: InputLimits,
    state: Locked<State>,
}

#[derive(Default)]
struct State {
    total_bytes: u64,
    files: HashMap<FileName, BodyDigest>,
}

impl Inputs {
    pub(crate) fn new(limits: InputLimits) -> Self {
        Self {
            limits,
            state: Locked::default(),
        }
    }

    /// Sets bytes of the budget aside for a file that is about to come.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), ApiError> {
        if bytes > self.limits.file_bytes {
            return Err(ApiError::input_limit(format!(
                "a file of {} is over the limit of {} for one file",
                mebibytes(bytes),
                mebibytes(self.limits.file_bytes)
            )));
        }
        self.state.with(|state| {
            let total = state.total_bytes.saturating_add(bytes);
            if total > self.limits.total_bytes {
                return Err(ApiError::input_limit(format!(
                    "with this file {} would have been pushed in, over the limit of {} for one sandbox",
                    mebibytes(total),
                    mebibytes(self.limits.total_bytes)
                )));
            }
            state.total_bytes = total;
            Ok(())
        })
    }

    /// Gives bytes back that did not come.
    pub(crate) fn release(&self, bytes: u64) {
        self.state
            .with(|state| state.total_bytes = state.total_bytes.saturating_sub(bytes));
    }

    /// Remembers a file that is in.
    pub(crate) fn remember(&self, name: FileName, sha256: BodyDigest) {
        self.state.with(|state| state.files.insert(name, sha256));
    }

    /// Forgets a file that was taken away on request.
    pub(crate) fn forget(&self, name: &FileName) {
        self.state.with(|state| state.files.remove(name));
    }

    /// Everything that was pushed in, by name.
    pub(crate) fn files(&self) -> HashMap<FileName, BodyDigest> {
        self.state.with(|state| state.files.clone())
    }

    /// Bytes pushed in since the start.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.state.with(|state| state.total_bytes)
    }
}
