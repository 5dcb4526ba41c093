//! Arguments of `directory`.

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
    /// Replace the directory with a JSON file.
    #[command(after_help = "\
Example:
  switchward directory put people.json

The file:
  {\"entries\": [{\"name\": \"kim\", \"members\": [\"kim@acme.example\"]}], \"audience\": [\"kim\"]}

A name stands for its members: addresses and other names. group:NAME is a group, and owner:NAME names the owner of \
the definition NAME. The audience is notified of gates that address nobody. The entries owner:NAME and \
definition:NAME can also set how the gates of the definition NAME are handled; definition:NAME takes precedence:

  {\"name\": \"definition:deploy-gate\", \"audience\": [\"group:release\"], \"quorum\": 2,
   \"reminders\": {\"every\": \"4h\", \"max\": 3}, \"escalation\": [\"head@acme.example\"]}

event_bindings restricts the sources of an event:

  {\"event_bindings\": [{\"definition\": \"order\", \"event_key\": \"paid\", \"sources\": [\"webhook:shop\"]}]}

A source is webhook:NAME, reply_token, integration or integration:SUBJECT; operators can always send the event. The \
event key * stands for every event.")]
    Put(PutDirectory),
    /// Show the directory.
    Get,
}

/// Arguments of `directory put`.
#[derive(Debug, Args)]
pub(crate) struct PutDirectory {
    /// The file, or `-` for the standard input.
    pub(crate) file: String,
}
