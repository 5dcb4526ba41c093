//! What is done with the directory.

use clap::{Args, Subcommand};

/// Arguments of `directory`.
#[derive(Debug, Args)]
pub(crate) struct DirectoryArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: DirectoryCommand,
}

/// What can be done with the directory.
#[derive(Debug, Subcommand)]
pub(crate) enum DirectoryCommand {
    /// Set all of it, from a JSON file: {"entries": [{"name": "kim", "members": ["kim@acme.example"]}], "audience": ["kim"]}.
    #[command(after_help = "\
Example:
  switchward directory put people.json

A name stands for addresses and other names. group:release is a group, owner:deploy-gate says whose a process is, and
the audience is told of gates that address nobody. Entries owner:NAME and definition:NAME also say what holds for the
gates of a definition; definition:NAME counts more:

  {\"name\": \"definition:deploy-gate\", \"audience\": [\"group:release\"], \"quorum\": 2,
   \"reminders\": {\"every\": \"4h\", \"max\": 3}, \"escalation\": [\"head@acme.example\"]}

{\"event_bindings\": [{\"definition\": \"order\", \"event_key\": \"paid\", \"sources\": [\"webhook:shop\"]}]} takes the event from this
source alone (and from operators): webhook:NAME, reply_token, integration or integration:SUBJECT; the key * is any event.")]
    Put(PutDirectory),
    /// Show it.
    Get,
}

/// Arguments of `directory put`.
#[derive(Debug, Args)]
pub(crate) struct PutDirectory {
    /// The file; - reads from stdin.
    pub(crate) file: String,
}
