//! What the agent says for the people who run the machine: a few sentences in its whole life.

use std::io::Write as _;
use std::sync::Arc;

/// Takes a sentence.
pub type Words = Arc<dyn Fn(&str) + Send + Sync>;

/// Writes to the standard error, which in a box goes to the launcher.
pub(crate) fn to_standard_error() -> Words {
    Arc::new(|words| {
        // With nowhere to say it there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "glovebox-agent: {words}");
    })
}
