//! `glovebox version`

use std::io::Write as _;

use crate::failure::Failure;

/// Prints the version of the program and of the protocol it speaks.
pub(crate) fn run() -> Result<(), Failure> {
    let protocol = glovebox_protocol::PROTOCOL_VERSION;
    writeln!(
        std::io::stdout(),
        "glovebox {} (protocol {protocol})",
        env!("CARGO_PKG_VERSION")
    )
    .map_err(|_| Failure::OutputGone)
}
