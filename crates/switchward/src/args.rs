//! The command line. `--help`, the man pages and docs/cli.md print the doc comments of this module.

mod assistant;
mod backup;
mod calls;
mod client;
mod clock;
mod cluster;
mod connection;
mod context;
mod conversation;
mod definitions;
mod dev;
mod directory;
mod docs;
mod effect;
mod export;
pub(crate) mod files;
mod gates;
mod graph;
pub(crate) mod groups;
mod mail;
mod page;
mod policy;
mod retention;
mod run_of;
mod secrets;
mod start;
mod tenant;
mod values;
mod webhooks;
mod work;

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use assistant::{AssistantCommand, DeleteAssistant, GetAssistant, PutAssistant};
pub(crate) use backup::{BackupArgs, BackupCommand, RunServer};
pub(crate) use calls::{Authorize, Report};
pub(crate) use client::{
    Answer, Cancel, ClientCommand, CreateKey, Explain, Get, KeyRole, Keys, KeysCommand, List, ListCommand,
    ListFilter, ListOf, Move, Raise, RevokeKey, Watch,
};
pub(crate) use clock::{AdvanceClock, ClockCommand};
pub(crate) use cluster::{
    ClusterArgs, ClusterCall, ClusterCerts, ClusterCommand, ClusterDrain, ClusterInit, ClusterJoin,
    ClusterLevel, ClusterRemove, ClusterReplace, ClusterTransfer, ClusterVerify,
};
pub(crate) use connection::{Connection, On};
pub(crate) use context::{CompletionArgs, ContextArgs, ContextCommand, SetContext};
pub(crate) use conversation::{
    MailReply, Message, Record, Session as SessionOnly, SessionEvent, Switch, Turn,
};
pub(crate) use definitions::{Activate, Archive, Delete, Deploy, Diff, ListDefinitions, Retire, Unarchive};
pub(crate) use dev::{ClockKind, DevArgs, DevCommand};
pub(crate) use directory::{DirectoryCommand, PutDirectory};
pub(crate) use docs::{DocsArgs, ManArgs};
pub(crate) use effect::{DismissEffect, EffectCommand, NamedEffect, ReleaseEffects};
pub(crate) use export::Export;
pub(crate) use gates::{AssignGate, Decide, GateAction, GateCommand, GatesCommand};
pub(crate) use graph::{GraphArgs, Picture};
pub(crate) use mail::{DeleteMail, IngestMail, MailArgs, MailCommand, QuarantineCommand, SendMail, ShowMail};
pub(crate) use page::Page;
pub(crate) use policy::{AttachPolicy, DetachPolicy, PolicyCommand};
pub(crate) use retention::{EndSession, PutRetention, RetentionCommand, SessionCommand};
pub(crate) use secrets::{DropKey, SecretsArgs, SecretsCommand, SecretsStatus};
pub(crate) use start::Start;
pub(crate) use tenant::{
    BootstrapKey, CreateTenant, DefaultEffect, DeleteTenant, GetTenant, LinkAuth, SetTenant, TenantArgs,
    TenantCommand, TenantQuotas,
};
pub(crate) use values::{Limit, Weight, duration, quorum};
pub(crate) use webhooks::{
    CreateSource, DeleteEndpoint, DeleteSource, EndpointCommand, KindOfSource, Listen, NamedEndpoint,
    NamedSource, PingEndpoint, PutEndpoint, RecoverEndpoint, RotateEndpoint, RotateSource, SchemaArgs,
    SchemaCommand, SourceCommand, Trigger,
};
pub(crate) use work::{CompleteWork, ExtendLease, FailWork, KindOfWork, PollWork, ReleaseWork, WorkCommand};

/// Run processes that people and AI agents carry out together.
///
/// `switchward demo` plays a demo. `switchward dev` starts a server on this machine, which the other commands then
/// call.
#[derive(Debug, Parser)]
#[command(name = "switchward", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Output format.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Parses the command line; ends the process after a usage error, and after `--help` and `--version`.
    pub(crate) fn of_process() -> Self {
        let matches = groups::grouped(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables and sentences for people, in colour on a terminal.
    Text,
    /// One JSON object per line for programs, as the server's HTTP API returns it.
    Json,
    /// Like json, with one line for each entry of a list.
    Jsonl,
}

impl Output {
    /// Returns true if the output is for programs.
    pub(crate) fn json(self) -> bool {
        match self {
            Self::Text => false,
            Self::Json | Self::Jsonl => true,
        }
    }
}

/// The commands; each is run by a module of `commands`.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub(crate) enum Command {
    /// Check definitions for errors; needs no server.
    Check(CheckArgs),
    /// Draw a definition as a graph; needs no server.
    Graph(GraphArgs),
    /// Play scenario files on a virtual clock; needs no server.
    Simulate(SimulateArgs),
    /// Play all scenarios below a folder; needs no server.
    Test(TestArgs),
    /// Start a development server on this machine.
    Dev(DevArgs),
    /// Start a server.
    Server(RunServer),
    /// Back up a server while it runs, or verify a backup.
    Backup(BackupArgs),
    /// Manage the key ring that encrypts a server's secrets.
    Secrets(SecretsArgs),
    /// Prepare and manage servers that work together as a cluster.
    Cluster(ClusterArgs),
    /// Print the JSON Schemas of webhook bodies; needs no server.
    Schema(SchemaArgs),
    /// Check a server's configuration (read-only).
    Doctor(DoctorArgs),
    /// Play a demo: an agent at a deploy gate, or a cluster.
    Demo(DemoArgs),
    /// Manage contexts: a server's address and an API key.
    Context(ContextArgs),
    /// List and print the documentation pages.
    Docs(DocsArgs),
    /// Print or write the man pages.
    Man(ManArgs),
    /// Print a completion script for a shell.
    Completion(CompletionArgs),
    /// The commands that call a server.
    #[command(flatten)]
    Client(ClientCommand),
}

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward check deploy-gate.json
  switchward check processes/ --strict
  generate | switchward check - -o json

Exits with 5 if there are errors. With -o json, prints one object per file:
  {\"file\",\"format\",\"ok\",\"findings\":[{\"code\",\"severity\",\"line\",\"column\",\"message\",\"allowed\",\"nearest\",\"hint\"}]}")]
pub(crate) struct CheckArgs {
    /// Files, folders, or `-` for the standard input. In folders, every *.json, *.yaml and *.yml file that is a
    /// definition is checked.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Exit with 5 also if there are only warnings.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The format of the files [default: detected from the content].
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<String>,
    /// Print only findings.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The names of the formats; a usage error lists them.
fn formats() -> clap::builder::PossibleValuesParser {
    switchward_formats::Format::ALL.map(switchward_formats::Format::name).into()
}

/// Arguments of `simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward simulate release.yaml
  switchward simulate scenarios/*.yaml -o json

Exits with 5 if an expectation does not hold, and with 2 if a file is not a scenario.")]
pub(crate) struct SimulateArgs {
    /// Scenario files. The paths that they contain are relative to their folders.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print only expectations that do not hold.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward test processes/
  switchward test processes/ --junit report.xml

Exits with 5 if an expectation does not hold, and with 2 if a scenario cannot be read.")]
pub(crate) struct TestArgs {
    /// Folders or scenario files. In folders, every *.json, *.yaml and *.yml file with the key `definition` is played.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write a JUnit report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// The effect for tool calls that no policy rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unnamed {
    /// Allow the call.
    Allow,
    /// Ask a person.
    Ask,
    /// Deny the call.
    Deny,
}

impl From<Unnamed> for switchward_state::catalogue::DefaultEffect {
    fn from(unnamed: Unnamed) -> Self {
        match unnamed {
            Unnamed::Allow => Self::Allow,
            Unnamed::Ask => Self::Ask,
            Unnamed::Deny => Self::Deny,
        }
    }
}

/// The configuration of a server, which `server` and `doctor` take.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// The configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on, such as 0.0.0.0:7400.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The data folder.
    #[arg(long, value_name = "DIR", value_parser = path_in_text())]
    pub(crate) data_dir: Option<PathBuf>,
    /// The certificate chain (PEM).
    #[arg(long, value_name = "FILE", value_parser = path_in_text())]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", value_parser = path_in_text())]
    pub(crate) tls_key: Option<PathBuf>,
    /// Allow addresses other than loopback without TLS, for servers behind a TLS proxy.
    #[arg(long)]
    pub(crate) insecure_listen: bool,
    /// The number of shards of a new data folder.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) shards: Option<u32>,
    /// The log level, such as `info`, or a filter, such as `info,switchward_shard=debug`.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
}

/// A path that a configuration can hold, which is text. Another one would name another file there.
fn path_in_text() -> impl TypedValueParser<Value = PathBuf> {
    NonEmptyStringValueParser::new().map(PathBuf::from)
}

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward doctor --config /etc/switchward/switchward.toml
  switchward doctor --config /etc/switchward/switchward.toml -o json
  switchward doctor --config /etc/switchward/switchward.toml --send

Takes the same options as `server`. Checks the data folder, memory, port, certificate, secret files, clock, Redis, \
mail server, mailbox and DNS from this machine, and prints one line for each: ok, warn or fail, with advice. If the \
configuration has [cluster], it also checks the certificate of this server, and asks all other servers for their \
clocks, feature levels, disks, keys and Redis; the server itself may run or not. Exits with 5 if a check fails. With -o json, prints one object:
  {\"ok\",\"checks\":[{\"check\",\"status\",\"message\",\"advice\"}]}

With --send, sends a mail with a forged Authentication-Results field to the server's own reply address, and waits \
for it in the mailbox, or by LMTP if no server runs. The check `forged` reports whether the mail server in front \
removes such fields.")]
pub(crate) struct DoctorArgs {
    /// Also send a test mail to the server's own reply address, with a forged header field.
    #[arg(long)]
    pub(crate) send: bool,
    /// The configuration.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Starts this program as a separate server, and plays an agent and a person who call its public API. Needs no network, \
writes only to a temporary folder, and takes a few seconds. With -o json, prints all steps as one object; with -o \
jsonl, one step per line.

With `cluster`, starts three servers instead, and plays an approval by mail while the servers that lead are killed."
)]
pub(crate) struct DemoArgs {
    /// Another demo.
    #[command(subcommand)]
    pub(crate) what: Option<DemoCommand>,
    /// Keep the server's data in this folder, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Write the steps as JSON, for a comparison with the recorded history.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) steps_json: Option<PathBuf>,
}

/// The other demos.
#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// Play an approval by mail while the leaders of a cluster are killed.
    #[command(after_help = "\
Starts three servers of this program as a cluster, without Redis, and kills two of them with SIGKILL, one after the \
other, while an agent waits for an approval by mail. Shows for how long no write was accepted, that the mail was sent \
once, and that all servers have the same history. Needs no network, writes only to a temporary folder, and takes up to \
a minute. All processes are stopped and the folder is deleted at the end, after an error and after ctrl-c, too.")]
    Cluster,
}

#[cfg(test)]
mod tests;
