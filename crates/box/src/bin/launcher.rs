//! `glovebox-launcher`: makes boxes for the runtime at the other end of its standard input.

use std::process::ExitCode;

fn main() -> ExitCode {
    glovebox_box::launcher::run(std::env::args_os().skip(1))
}
