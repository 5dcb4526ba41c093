//! `switchward completion`: completion scripts for shells.

use clap::CommandFactory as _;

use crate::args::{Args, CompletionArgs};
use crate::exit::Exit;
use crate::output::print_bytes;

/// Prints the completion script of a shell.
pub(crate) fn run(args: &CompletionArgs) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "switchward", &mut script);
    print_bytes(&script)
}
