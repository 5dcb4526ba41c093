//! The commands that call a server.

use clap::{Args, Subcommand, ValueEnum};
use std::time::Duration;

use super::assistant::AssistantArgs;
use super::calls::{Authorize, Call, Report};
use super::clock::Clock;
use super::connection::On;
use super::conversation::{MailReply, Message, Record, Session as SessionOnly, SessionEvent, Switch, Turn};
use super::definitions::{Activate, Archive, Delete, Deploy, Diff, ListDefinitions, Retire, Unarchive};
use super::directory::DirectoryArgs;
use super::effect::EffectArgs;
use super::export::Export;
use super::gates::GatesCommand;
use super::mail::MailArgs;
use super::page::Page;
use super::policy::PolicyArgs;
use super::retention::{RetentionArgs, SessionArgs};
use super::run_of::RunOf;
use super::start::Start;
use super::tenant::{BootstrapKey, TenantArgs};
use super::values::duration;
use super::webhooks::{EndpointArgs, Listen, SourceArgs, Trigger};
use super::work::Work;

/// The commands that call a server.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Store definitions as new versions and activate them.
    #[command(after_help = "\
Examples:
  switchward deploy deploy-gate.json
  switchward deploy processes/ --dry-run
  switchward deploy *.json --no-activate

A definition is deployed after those that it calls. If a version with the same bytes exists, it is returned and no new \
one is made. The first error ends the command; what was deployed before stays. With --dry-run, nothing is changed: each \
definition is checked and compared with its active version. Exits with 5 then if one has errors. With -o json, prints \
one object per file:
  {\"file\",\"definition\",\"action\",\"version\",\"differences\",\"findings\"}")]
    Deploy(On<Deploy>),
    /// Activate a version for new sessions.
    #[command(after_help = "Example:\n  switchward activate deploy-gate 3")]
    Activate(On<Activate>),
    /// Retire a version, so that no session starts with it.
    #[command(after_help = "\
Example:
  switchward retire deploy-gate 2

Running sessions keep the version. The active version cannot be retired; activate another one first. `switchward \
activate` brings a retired version back.")]
    Retire(On<Retire>),
    /// Compare two versions of a definition, or a version and a file.
    #[command(after_help = "\
Examples:
  switchward diff deploy-gate
  switchward diff deploy-gate 2 3
  switchward diff deploy-gate --file deploy-gate.json --strict

Compares the active version with the latest one, unless versions or a file are given. What weakens a control is marked: \
a person who is not asked any more, a rule or a guard that is gone, a limit that is higher.")]
    Diff(On<Diff>),
    /// Archive a definition, so that no session starts with it.
    #[command(after_help = "\
Example:
  switchward archive deploy-gate

Running sessions go on. Lists leave the definition out. `switchward unarchive` brings it back.")]
    Archive(On<Archive>),
    /// Take an archived definition back into use.
    #[command(after_help = "Example:\n  switchward unarchive deploy-gate")]
    Unarchive(On<Unarchive>),
    /// Delete an archived definition, or a retired version of one.
    #[command(after_help = "\
Examples:
  switchward delete deploy-gate --dry-run
  switchward delete deploy-gate 2 --yes

Is refused while a session that has not ended, another definition, an assistant or the tenant needs it; the error names \
them. Numbers of versions are never used again.")]
    Delete(On<Delete>),
    /// Start a session.
    #[command(after_help = "\
Examples:
  switchward start deploy-gate
  switchward start deploy-gate --key release-42 --label team=web --input '{\"ticket\":\"T-1\"}'
  switchward start --assistant support --message 'my parcel came broken'

Every other command accepts the session's key instead of its id.")]
    Start(On<Start>),
    /// Answer the question of a session's state.
    #[command(after_help = "Example:\n  switchward answer release-42 yes --note 'checked twice'")]
    Answer(On<Answer>),
    /// Record a message of the user in a conversation.
    #[command(after_help = "Example:\n  switchward message refund-7 'yes, go ahead'")]
    Message(On<Message>),
    /// End the agent's turn and try the state's transitions.
    #[command(after_help = "Example:\n  switchward turn refund-7 'Which order is it?'")]
    Turn(On<Turn>),
    /// Record data of a conversation.
    #[command(after_help = "Example:\n  switchward record refund-7 order=A-17 amount=12.50")]
    Record(On<Record>),
    /// Record that the agent's work in a state is done.
    ///
    /// The session stays in the state until the agent's turn ends.
    Signal(On<SessionOnly>),
    /// Record an outside event in a conversation.
    #[command(after_help = "Example:\n  switchward event refund-7 payment_received amount=12.50")]
    Event(On<SessionEvent>),
    /// Record a reply that somebody sent by mail.
    ///
    /// The server has no proof of who wrote it. At a gate, the reply counts as your own decision if you may decide the
    /// gate, and is shown as vouched by you.
    #[command(after_help = "Example:\n  switchward reply refund-7 lead@example.com approve")]
    Reply(On<MailReply>),
    /// Switch a conversation to another of its workflows.
    Switch(On<Switch>),
    /// Retry a state of a conversation.
    Retry(On<SessionOnly>),
    /// Ask whether the agent may make a tool call.
    #[command(after_help = "\
Examples:
  switchward authorize release-42 bash
  switchward authorize release-42 mcp:filesystem:write_file --args '{\"path\":\"a.txt\"}' && write-it

Exits with 0 if the call is allowed, 6 if it is denied, and 7 if a person must decide. An allowed call counts at \
once. After a person has approved the call, repeat it with the same arguments.")]
    Authorize(On<Authorize>),
    /// Report what a tool call or a session has cost.
    #[command(after_help = "\
Examples:
  switchward report release-42 bash --cost-usd 0.02
  switchward report release-42 --call-id call-7 --tokens 1200 --failed
  switchward report release-42 --cost-usd 0.10        # not about a tool call")]
    Report(On<Report>),
    /// The commands about gates.
    #[command(flatten)]
    Gates(GatesCommand),
    /// Raise the budget cap of a session.
    #[command(after_help = "Example:\n  switchward raise release-42 --cost-usd 12.50")]
    Raise(On<Raise>),
    /// Pause a session.
    Pause(On<Move>),
    /// Resume a paused session.
    Resume(On<Move>),
    /// Cancel a session; this cannot be undone.
    Cancel(On<Cancel>),
    /// Delete or erase ended sessions.
    Session(On<SessionArgs>),
    /// Set how long ended sessions and their records are kept.
    Retention(On<RetentionArgs>),
    /// Export a tenant's records as JSON Lines.
    Export(On<Export>),
    /// Show a session, gate, definition or version.
    #[command(after_help = "\
Examples:
  switchward get release-42
  switchward get gat_...
  switchward get deploy-gate
  switchward get deploy-gate/versions/3 --source > deploy-gate.json")]
    Get(On<Get>),
    /// List sessions, gates, effects, definitions and more.
    List(On<List>),
    /// Follow a session's history until the session ends.
    #[command(
        after_help = "Examples:\n  switchward watch release-42\n  switchward watch release-42 --from 12 -o jsonl"
    )]
    Watch(On<Watch>),
    /// Explain what would be decided about a tool call.
    #[command(after_help = "Example:\n  switchward explain release-42 mcp:filesystem:write_file")]
    Explain(On<Explain>),
    /// Read or advance the clock of `switchward dev`.
    #[command(after_help = "\
Examples:
  switchward clock
  switchward clock advance 1h30m

Only a server with `--clock manual` has a clock that can be advanced. Each server of a development cluster has a clock \
of its own: `switchward clock advance` moves that of the server that it calls, `switchward dev advance` those of all.")]
    Clock(On<Clock>),
    /// Manage assistants: named lists of workflows.
    Assistant(On<AssistantArgs>),
    /// Manage the directory of people, groups and owners.
    Directory(On<DirectoryArgs>),
    /// Attach policies to definitions or to the tenant.
    Policy(On<PolicyArgs>),
    /// Ingest and send mail, and inspect the quarantine.
    Mail(On<MailArgs>),
    /// Inspect, retry and dismiss outgoing effects.
    #[command(after_help = "\
Examples:
  switchward list effects --filter 'status=\"dead_letter\"'
  switchward effect show eff_...
  switchward effect retry eff_...")]
    Effect(On<EffectArgs>),
    /// Manage endpoints: URLs that receive events as webhooks.
    Endpoint(On<EndpointArgs>),
    /// Manage sources: senders of inbound webhooks.
    Source(On<SourceArgs>),
    /// Receive events on this machine; for development.
    #[command(after_help = "\
Examples:
  switchward listen
  switchward listen --event 'approval.*' --forward http://127.0.0.1:3000/hooks

Creates an endpoint, prints each event that it receives, and deletes the endpoint at the end. The server must reach \
this machine at 127.0.0.1, as `switchward dev` does.")]
    Listen(On<Listen>),
    /// Send an example event to an endpoint; for development.
    #[command(after_help = "Example:\n  switchward trigger session.completed ops")]
    Trigger(On<Trigger>),
    /// Create and revoke API keys.
    Keys(On<Keys>),
    /// Manage tenants, their settings and quotas.
    Tenant(On<TenantArgs>),
    /// Take work items of sessions and hand in results.
    Work(On<Work>),
}

/// Arguments of `answer`.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The session's id or key.
    pub(crate) session: String,
    /// One of the allowed answers.
    pub(crate) answer: String,
    /// The expected state; the answer is refused if the session is in another one.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// A note for the history.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `raise`.
#[derive(Debug, Args)]
pub(crate) struct Raise {
    /// The session's id or key.
    pub(crate) session: String,
    /// The new cap.
    #[command(flatten)]
    pub(crate) cap: Cap,
}

/// A cap, in USD or in tokens.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Cap {
    /// The new cap in USD.
    #[arg(long, value_name = "USD")]
    pub(crate) cost_usd: Option<String>,
    /// The new cap in tokens.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) tokens: Option<u64>,
}

/// Arguments of `pause` and `resume`.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// The session's id or key.
    pub(crate) session: String,
    /// The reason, for the history.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The session and the reason.
    #[command(flatten)]
    pub(crate) what: Move,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// A session's id or key, a gate, a definition, or DEFINITION/versions/NUMBER.
    pub(crate) name: String,
    /// Print the source of a version, byte for byte.
    #[arg(long)]
    pub(crate) source: bool,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// The kind of resource.
    #[command(subcommand)]
    pub(crate) what: ListCommand,
}

/// The kinds of resources that can be listed.
#[derive(Debug, Subcommand)]
pub(crate) enum ListCommand {
    /// List sessions, newest first.
    #[command(after_help = "\
Examples:
  switchward list sessions
  switchward list sessions --filter 'status=\"waiting\" AND labels.team=\"web\"'")]
    Sessions(ListFilter),
    /// List open gates, oldest first.
    #[command(after_help = "Example:\n  switchward list gates --filter 'kind=\"tool_ask\"'")]
    Gates(ListFilter),
    /// List undelivered effects, dead letters first.
    #[command(after_help = "Example:\n  switchward list effects --filter 'status=\"dead_letter\"'")]
    Effects(ListFilter),
    /// List definitions by name.
    Definitions(ListDefinitions),
    /// List the versions of a definition, newest first.
    Versions(ListOf),
    /// List the history of a session, oldest first.
    Events(ListOf),
    /// List the decisions about a session's tool calls.
    #[command(after_help = "Example:\n  switchward list decisions release-42 --filter 'decision=\"deny\"'")]
    Decisions(ListOf),
    /// List API keys, newest first.
    Keys(Page),
}

/// What all lists that can be filtered take.
#[derive(Debug, Args)]
pub(crate) struct ListFilter {
    /// The filter: FIELD="VALUE", several joined by AND.
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// The page.
    #[command(flatten)]
    pub(crate) page: Page,
}

/// A list of the parts of a definition or a session.
#[derive(Debug, Args)]
pub(crate) struct ListOf {
    /// The definition's name, or the session's id or key.
    #[arg(value_name = "NAME")]
    pub(crate) of: String,
    /// The filter for decisions: FIELD="VALUE", several joined by AND.
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// The page.
    #[command(flatten)]
    pub(crate) page: Page,
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The session's id or key.
    pub(crate) session: String,
    /// The sequence number of the first event.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 1)]
    pub(crate) from: u64,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The call.
    #[command(flatten)]
    pub(crate) call: Call,
}

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: KeysCommand,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key; its secret is shown once.
    #[command(after_help = "Example:\n  switchward keys create approver --subject dana --expires-in 90d")]
    Create(CreateKey),
    /// Revoke a key at once; this cannot be undone.
    Revoke(RevokeKey),
    /// Create an admin key in the data folder of a stopped server; its secret is shown once.
    #[command(after_help = "\
Example:
  switchward keys bootstrap --config /etc/switchward/switchward.toml --tenant acme

For operators who have lost all admin keys. Run it as the server's user. For the first tenant of a new server, use \
`switchward tenant create --config`.")]
    Bootstrap(BootstrapKey),
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// The role of the key.
    #[arg(value_enum)]
    pub(crate) role: KeyRole,
    /// The person or program that will use the key [default: the key's id].
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
    /// A name for display.
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// The lifetime, such as 12h or 90d [default: the key does not expire].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires_in: Option<Duration>,
}

/// What a key's holder may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRole {
    /// Starts and answers sessions, asks for tool calls.
    Agent,
    /// Deploys and activates definitions.
    Author,
    /// Decides gates.
    Approver,
    /// Runs sessions, and decides gates.
    Operator,
    /// Everything, including keys.
    Admin,
    /// Takes work items and hands in results.
    Worker,
    /// Reports events and user messages; cannot read.
    Integration,
}

/// Arguments of `keys revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeKey {
    /// The key's id.
    pub(crate) key: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
