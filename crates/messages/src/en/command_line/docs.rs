//! The words of `docs/cli.md` that are not those of a command.

/// The beginning of the page.
pub const CLI_INTRODUCTION: &str = "\
# The command line

This page is for everybody who uses the program `switchward`. After reading it you know every command, its arguments,
options, defaults and environment variables, and what the exit codes mean.

`switchward COMMAND --help` prints the same for one command, and `switchward man --dir DIR` writes man pages. Do not
edit this page: `switchward docs --generate-cli` prints it, and a test compares the two.
";
/// The heading of the options that all commands have.
pub const OPTIONS_OF_ALL: &str = "Options of every command";
/// The heading of the options for the connection to a server.
pub const OPTIONS_OF_CALLS: &str = "Options of commands that call a server";
/// Below the options for the connection to a server.
pub const PRECEDENCE: &str = "The command line takes precedence over the environment, which takes precedence over the context in use. The \
     variable `SWITCHWARD_CONTEXT` selects a context, and `SWITCHWARD_CONTEXTS` sets the folder of the contexts.";
/// At a command that has the options for the connection to a server.
pub const CALLS_SERVER: &str = "Calls a server: see [its options](#options-of-commands-that-call-a-server).";
