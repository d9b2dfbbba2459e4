//! Group Z: kernels that are copies of a template, and sandboxes that are made in advance.
//!
//! What needs the figures of a runtime, such as which templates live, is beside the runtime's own
//! tests.

pub mod harm;
pub mod identity;
pub mod inherited;

use anyhow::{Result, ensure};

use super::lab::{PROBE_FOLDER, Subject};
use super::run::Ran;

/// Has a kernel tell something of itself: the words of `copies.py`.
async fn tell(subject: &Subject, words: &[&str]) -> Result<Ran> {
    let list = serde_json::to_string(words)?;
    let code = format!(
        "import sys\n\
         sys.path.insert(0, '{PROBE_FOLDER}')\n\
         import copies\n\
         copies.main({list})\n"
    );
    let ran = subject.kernel(&code).await?;
    ensure!(
        ran.outcome.is_success(),
        "the kernel did not tell {words:?}: the cell {}{}",
        ran.outcome,
        ran.raised.unwrap_or_default()
    );
    Ok(ran)
}
