//! What can be typed. The doc comments here are what `--help` prints.

mod assistant;
mod backup;
mod calls;
mod client;
mod context;
mod conversation;
mod directory;
mod effect;
mod export;
pub(crate) mod files;
mod gates;
mod graph;
mod mail;
mod policy;
mod retention;
mod secrets;
mod start;
mod tenant;
mod values;
mod webhooks;
mod work;

use clap::{Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use assistant::{AssistantCommand, DeleteAssistant, GetAssistant, PutAssistant};
pub(crate) use backup::{BackupArgs, BackupCommand, RunServer};
pub(crate) use calls::{Authorize, Report};
pub(crate) use client::{
    Activate, AdvanceClock, Answer, Cancel, ClientCommand, ClockCommand, Connection, CreateKey, Deploy,
    Explain, Get, KeyRole, Keys, KeysCommand, List, ListCommand, ListFilter, ListOf, Move, On, Page, Raise,
    Retire, RevokeKey, Watch,
};
pub(crate) use context::{CompletionArgs, ContextArgs, ContextCommand, SetContext};
pub(crate) use conversation::{
    MailReply, Message, Record, Session as SessionOnly, SessionEvent, Switch, Turn,
};
pub(crate) use directory::{DirectoryCommand, PutDirectory};
pub(crate) use effect::{DismissEffect, EffectCommand, NamedEffect};
pub(crate) use export::Export;
pub(crate) use gates::{Decide, Verdict};
pub(crate) use graph::{GraphArgs, Picture};
pub(crate) use mail::{DeleteMail, IngestMail, MailArgs, MailCommand, QuarantineCommand, SendMail, ShowMail};
pub(crate) use policy::{AttachPolicy, DetachPolicy, PolicyCommand};
pub(crate) use retention::{EndSession, PutRetention, RetentionCommand, SessionCommand};
pub(crate) use secrets::{DropKey, SecretsArgs, SecretsCommand, SecretsStatus};
pub(crate) use start::Start;
pub(crate) use tenant::{
    BootstrapKey, CreateTenant, DefaultEffect, DeleteTenant, GetTenant, Limit, LinkAuth, SetTenant,
    TenantArgs, TenantCommand, TenantQuotas, Weight,
};
pub(crate) use values::{duration, quorum};
pub(crate) use webhooks::{
    CreateSource, DeleteEndpoint, DeleteSource, EndpointCommand, KindOfSource, Listen, NamedEndpoint,
    NamedSource, PingEndpoint, PutEndpoint, RecoverEndpoint, RotateEndpoint, RotateSource, SchemaArgs,
    SchemaCommand, SourceCommand, Trigger,
};
pub(crate) use work::{CompleteWork, ExtendLease, FailWork, KindOfWork, PollWork, ReleaseWork, WorkCommand};

/// Processes that people and AI agents carry out together.
///
/// `switchward demo` shows it, `switchward dev` starts a server on this machine, and the other commands then talk to
/// it. They end with 0 done, 1 an error, 2 called wrongly, 3 not found, 4 in conflict with what is, 5 findings,
/// 6 denied, 7 still waiting for somebody, 69 no server.
#[derive(Debug, Parser)]
#[command(name = "switchward", version, max_term_width = 100)]
pub(crate) struct Args {
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people: tables and sentences, in colour on a terminal.
    Text,
    /// For programs: one JSON object a line, as the server answers over HTTP.
    Json,
    /// As json, and lists with one entry a line.
    Jsonl,
}

impl Output {
    /// Whether a program reads it.
    pub(crate) fn json(self) -> bool {
        match self {
            Self::Text => false,
            Self::Json | Self::Jsonl => true,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub(crate) enum Command {
    /// Say everything that is wrong with definitions; needs no server.
    Check(CheckArgs),
    /// Draw a definition as a graph; needs no server.
    Graph(GraphArgs),
    /// Play scenarios against a virtual clock; needs no server.
    Simulate(SimulateArgs),
    /// Play every scenario below a folder; needs no server.
    Test(TestArgs),
    /// Start a server for development on this machine.
    Dev(DevArgs),
    /// Start a server.
    Server(RunServer),
    /// Copy everything that a server holds while it runs, or look through such a copy.
    Backup(BackupArgs),
    /// Make and change the key ring that a server's secrets are encrypted under.
    Secrets(SecretsArgs),
    /// Print the forms of what the server sends, as JSON Schema; needs no server.
    Schema(SchemaArgs),
    /// Say what of a server's configuration works; changes nothing.
    Doctor(DoctorArgs),
    /// Watch an agent being walked through a deploy gate.
    Demo(DemoArgs),
    /// Show and choose the server that commands are sent to, and the key; needs no server.
    Context(ContextArgs),
    /// Print a script with which a shell completes commands.
    Completion(CompletionArgs),
    /// What talks to a server.
    #[command(flatten)]
    Client(ClientCommand),
}

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward check deploy-gate.json
  switchward check processes/ --strict
  generate | switchward check - --format checkpoint -o json

Ends with 5 where there are errors. With -o json, one object a line for each file:
  {\"file\",\"format\",\"ok\",\"findings\":[{\"code\",\"severity\",\"line\",\"column\",\"message\",\"allowed\",\"nearest\",\"hint\"}]}")]
pub(crate) struct CheckArgs {
    /// Files, folders, or `-` for the standard input. In a folder, every *.json, *.yaml and *.yml that is a definition.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// End with 5 on warnings, too.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The format, where it shall not be told from the file.
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<String>,
    /// Print findings alone, and nothing if there are none.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The formats by their names, so that a wrong one is refused with the right ones.
fn formats() -> clap::builder::PossibleValuesParser {
    switchward_formats::Format::ALL.map(switchward_formats::Format::name).into()
}

/// Arguments of `simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward simulate release.yaml
  switchward simulate scenarios/*.yaml -o json

Ends with 5 where an expectation does not hold, with 2 where a file is no scenario.")]
pub(crate) struct SimulateArgs {
    /// Scenario files; what they name is looked up beside them.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print what does not hold alone, and nothing if everything does.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward test processes/
  switchward test processes/ --junit report.xml

Ends with 5 where an expectation does not hold, with 2 where a scenario cannot be read.")]
pub(crate) struct TestArgs {
    /// Folders, or scenario files. In a folder, every *.json, *.yaml and *.yml that names a `definition`.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write a JUnit report here.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// Arguments of `dev`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward dev
  switchward dev --data-dir ./data
  switchward dev --port 0 --clock manual -o json
  switchward dev --default deny

Prints the address and a key each for the agent, the person and a worker, and writes a context for each of them:
dev-agent, dev-person and dev-worker. Each is a file of its own, and an agent is given no other than dev-agent.
With -o json, one line when it is ready.")]
pub(crate) struct DevArgs {
    /// Where to keep everything; without it, everything is gone when the server stops.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The port to listen on; 0 for any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 7400)]
    pub(crate) port: u16,
    /// A host, besides this machine, by whose name the pages /mail and /webhooks may be asked for, such as that of a
    /// tunnel; may be said again.
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,
    /// The clock; a manual one stands still until `switchward clock advance` moves it.
    #[arg(long, value_enum, default_value_t = ClockKind::System)]
    pub(crate) clock: ClockKind,
    /// A file with milliseconds by which the machine's clock is taken to be off, read whenever it is looked at; for tests
    /// of clocks that jump.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) clock_off: Option<PathBuf>,
    /// Shards of a new data folder; without it, chosen by the number of cores.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) shards: Option<u32>,
    /// What holds for a tool call that no rule of a policy names; without it, it is allowed.
    #[arg(long = "default", value_name = "EFFECT", value_enum)]
    pub(crate) default_effect: Option<Unnamed>,
}

/// What holds for a tool call that no rule of a policy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unnamed {
    /// It is allowed.
    Allow,
    /// A person is asked.
    Ask,
    /// It is denied.
    Deny,
}

impl From<Unnamed> for switchward_engine::DefaultEffect {
    fn from(unnamed: Unnamed) -> Self {
        match unnamed {
            Unnamed::Allow => Self::Allow,
            Unnamed::Ask => Self::Ask,
            Unnamed::Deny => Self::Deny,
        }
    }
}

/// Where a development server's time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockKind {
    /// The machine's own.
    System,
    /// Moved by hand.
    Manual,
}

/// What a server is started with, and looked at by `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// The configuration, TOML.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen, like 0.0.0.0:7400.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where to keep everything.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The certificate chain, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Allow listening on more than loopback without TLS, where something in front speaks it.
    #[arg(long)]
    pub(crate) insecure_listen: bool,
    /// Shards of a new data folder.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) shards: Option<u32>,
    /// What to log: a level like `info`, or a filter like `info,switchward_shard=debug`.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
}

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward doctor --config /etc/switchward/switchward.toml
  switchward doctor --config /etc/switchward/switchward.toml -o json
  switchward doctor --config /etc/switchward/switchward.toml --send

Takes what `server` takes, and looks from this machine at the disk, the port, the certificate, the
clock, Redis, the mail server, the mailbox and the DNS. One line each: ok, warn or fail, with what
to do. Ends with 5 where something fails. With -o json, one object:
  {\"ok\",\"checks\":[{\"check\",\"verdict\",\"message\",\"advice\"}]}

With --send, a mail goes to a reply address of ours with an Authentication-Results field that no
mail server wrote, and is waited for in the mailbox, or by LMTP where no server runs: does the mail
server in front take such a field out?")]
pub(crate) struct DoctorArgs {
    /// Send one mail to ourselves as well, to find out whether a forged header field comes through.
    #[arg(long)]
    pub(crate) send: bool,
    /// The server's.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Starts this program as a server of its own and plays an agent and a person against its public API. Needs no network,
writes to a temporary folder only, and takes a few seconds. With -o json, what was done and what came of it as one
object, with -o jsonl one step a line.")]
pub(crate) struct DemoArgs {
    /// Keep the server's data here; a new or empty folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Write what was told as JSON, to be compared with what was recorded.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) steps_json: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
