//! The commands that talk to a server.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

use super::assistant::AssistantArgs;
use super::calls::{Authorize, Call, Report};
use super::conversation::{MailReply, Message, Record, Session as SessionOnly, SessionEvent, Switch, Turn};
use super::directory::DirectoryArgs;
use super::effect::EffectArgs;
use super::export::Export;
use super::gates::Decide;
use super::mail::MailArgs;
use super::policy::PolicyArgs;
use super::retention::{RetentionArgs, SessionArgs};
use super::start::Start;
use super::tenant::{BootstrapKey, TenantArgs};
use super::values::duration;
use super::webhooks::{EndpointArgs, Listen, SourceArgs, Trigger};
use super::work::Work;

/// The commands that talk to a server.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Store definitions as their next versions, and let new sessions start with them.
    #[command(after_help = "\
Examples:
  switchward deploy deploy-gate.json
  switchward deploy *.json --no-activate

The same bytes as a version that exists return that version.")]
    Deploy(On<Deploy>),
    /// Let new sessions start with a version; an older one too.
    #[command(after_help = "Example:\n  switchward activate deploy-gate 3")]
    Activate(On<Activate>),
    /// Retire a version: no session starts with it any more, and sessions that run keep it.
    #[command(after_help = "\
Example:
  switchward retire deploy-gate 2

The active version cannot be retired: activate another one first. `switchward activate` brings a retired one back.")]
    Retire(On<Retire>),
    /// Start a session.
    #[command(after_help = "\
Examples:
  switchward start deploy-gate
  switchward start deploy-gate --key release-42 --label team=web --input '{\"ticket\":\"T-1\"}'
  switchward start --assistant support --message 'my parcel came broken'

A session that was started with --key is found by that key in every other command.")]
    Start(On<Start>),
    /// Answer the question that a session is at.
    #[command(after_help = "Example:\n  switchward answer release-42 yes --note 'checked twice'")]
    Answer(On<Answer>),
    /// Record what the user says in a conversation.
    #[command(after_help = "Example:\n  switchward message refund-7 'yes, go ahead'")]
    Message(On<Message>),
    /// End the agent's turn in a conversation: the transitions of its state are tried.
    #[command(after_help = "Example:\n  switchward turn refund-7 'Which order is it?'")]
    Turn(On<Turn>),
    /// Record data of a conversation.
    #[command(after_help = "Example:\n  switchward record refund-7 order=A-17 amount=12.50")]
    Record(On<Record>),
    /// Say that the agent's work in a state of a conversation is done; it moves nothing.
    Signal(On<SessionOnly>),
    /// Record an event from outside in a conversation.
    #[command(after_help = "Example:\n  switchward event refund-7 payment_received amount=12.50")]
    Event(On<SessionEvent>),
    /// Record a reply by mail that you pass on: what an approver or somebody who is waited for wrote.
    ///
    /// Nothing proves who wrote it. At a gate it is your own decision, if you may decide there, and is shown as vouched by
    /// you.
    #[command(after_help = "Example:\n  switchward reply refund-7 lead@example.com approve")]
    Reply(On<MailReply>),
    /// Turn a conversation to another of its workflows.
    Switch(On<Switch>),
    /// Try a state of a conversation once more.
    Retry(On<SessionOnly>),
    /// Ask whether the agent may call a tool. Ends with 0 allowed, 6 denied, 7 a person is asked.
    #[command(after_help = "\
Examples:
  switchward authorize release-42 bash
  switchward authorize release-42 mcp:filesystem:write_file --args '{\"path\":\"a.txt\"}' && write-it

An allowed call counts at once. After a person has approved it, repeat exactly the same call.")]
    Authorize(On<Authorize>),
    /// Report what a tool call, or the session itself, has cost.
    #[command(after_help = "\
Examples:
  switchward report release-42 bash --cost-usd 0.02
  switchward report release-42 --call-id call-7 --tokens 1200 --failed
  switchward report release-42 --cost-usd 0.10        # of no call in particular")]
    Report(On<Report>),
    /// Decide what a person was asked.
    #[command(after_help = "\
Examples:
  switchward list gates
  switchward decide gat_... approve
  switchward decide gat_... reject --comment 'not on a Friday'
  switchward decide gat_... discuss --comment 'what is it for?'    # it stays open
  switchward decide gat_... answer --answer 'Five stars'           # a part of a task")]
    Decide(On<Decide>),
    /// Raise what a session may cost.
    #[command(after_help = "Example:\n  switchward raise release-42 --cost-usd 12.50")]
    Raise(On<Raise>),
    /// Let a session stand still until it is resumed.
    Pause(On<Move>),
    /// Let a paused session go on.
    Resume(On<Move>),
    /// End a session as cancelled; this cannot be undone.
    Cancel(On<Cancel>),
    /// Delete or erase sessions that have ended.
    Session(On<SessionArgs>),
    /// Say how long what has ended is kept.
    Retention(On<RetentionArgs>),
    /// Write what happened in a tenant as JSON Lines, as it was at one time, for auditors.
    Export(On<Export>),
    /// Show one session, gate, definition or version.
    #[command(after_help = "\
Examples:
  switchward get release-42
  switchward get gat_...
  switchward get deploy-gate
  switchward get deploy-gate/versions/3 --source > deploy-gate.json")]
    Get(On<Get>),
    /// List sessions, gates, definitions and what belongs to them.
    List(On<List>),
    /// Follow a session: everything that happened, and what happens next, until it ends.
    #[command(
        after_help = "Examples:\n  switchward watch release-42\n  switchward watch release-42 --from 12 -o jsonl"
    )]
    Watch(On<Watch>),
    /// Say what would be decided about a tool call, and why; counts nothing.
    #[command(after_help = "Example:\n  switchward explain release-42 mcp:filesystem:write_file")]
    Explain(On<Explain>),
    /// Read or move the clock of `switchward dev --clock manual`.
    #[command(after_help = "Examples:\n  switchward clock\n  switchward clock advance 1h30m")]
    Clock(On<Clock>),
    /// Make and delete assistants: named lists of workflows, with instructions that hold in all of them.
    Assistant(On<AssistantArgs>),
    /// Say who is who: what names of people, groups and owners stand for when somebody is asked or told.
    Directory(On<DirectoryArgs>),
    /// Attach policies to definitions, or to the whole tenant.
    Policy(On<PolicyArgs>),
    /// Mail of sessions: bring what came in, send in a session's name, look at what was not taken.
    Mail(On<MailArgs>),
    /// Look at what a session sends out, send a dead letter again or give it up; `switchward list effects` lists them.
    #[command(after_help = "\
Examples:
  switchward list effects --filter 'status=\"dead\"'
  switchward effect show eff_...
  switchward effect retry eff_...")]
    Effect(On<EffectArgs>),
    /// Say where this tenant wants to be told of what happens, by signed webhooks.
    Endpoint(On<EndpointArgs>),
    /// Say from where webhooks come in, and which session's events they become.
    Source(On<SourceArgs>),
    /// Be told of what happens by webhooks on this machine, for as long as this runs; for development.
    #[command(after_help = "\
Examples:
  switchward listen
  switchward listen --event 'approval.*' --forward http://127.0.0.1:3000/hooks

The server must be able to reach this machine at 127.0.0.1, as `switchward dev` can.")]
    Listen(On<Listen>),
    /// Send an example of an event to an endpoint; for development.
    #[command(after_help = "Example:\n  switchward trigger session.completed ops")]
    Trigger(On<Trigger>),
    /// Make and revoke API keys; `switchward list keys` shows them.
    Keys(On<Keys>),
    /// Make, show and set tenants; on a stopped server, too.
    Tenant(On<TenantArgs>),
    /// Take work that sessions need done from outside, and hand in what came of it.
    Work(On<Work>),
}

/// A command together with the server that it talks to.
#[derive(Debug, Args)]
pub(crate) struct On<T: Args> {
    /// The command's own arguments.
    #[command(flatten)]
    pub(crate) what: T,
    /// The server.
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// The server that a command talks to, and as whom.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Connection {
    /// The server's address; without it, that of the context.
    #[arg(long, global = true, value_name = "URL", env = "SWITCHWARD_ADDRESS")]
    pub(crate) address: Option<String>,
    /// The API key; without it, that of the context. Better given in the environment, where no list of processes shows
    /// it.
    #[arg(long, global = true, value_name = "KEY", env = "SWITCHWARD_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Use the server and the key of this context, whatever the environment says; without it, SWITCHWARD_CONTEXT, or
    /// else the one that `switchward context use` chose.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The certificate authority of the server, PEM; without it, those that this machine trusts.
    #[arg(long, global = true, value_name = "FILE", env = "SWITCHWARD_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// How long one call may take.
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Makes repeating this command safe: the same id has the same result. Without it, one is drawn.
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) request_id: Option<String>,
    /// Print results alone, no advice.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Never ask anything.
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
}

/// Arguments of `deploy`.
#[derive(Debug, Args)]
pub(crate) struct Deploy {
    /// One definition each; one that calls another of them may stand before it.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Store the version, and let new sessions go on with the one before.
    #[arg(long)]
    pub(crate) no_activate: bool,
}

/// Arguments of `activate`.
#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// The definition's name.
    pub(crate) definition: String,
    /// The number of the version, or `latest`.
    pub(crate) version: String,
}

/// Arguments of `retire`.
#[derive(Debug, Args)]
pub(crate) struct Retire {
    /// The definition's name.
    pub(crate) definition: String,
    /// The number of the version, or `latest`.
    pub(crate) version: String,
}

/// Arguments of `answer`.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The session's id or key.
    pub(crate) session: String,
    /// One of the answers that the question takes.
    pub(crate) answer: String,
    /// The state that is answered; refused where the session is at another one.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Kept in the history beside the answer.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
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

/// A cap: one of the two.
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
    /// Why; kept in the history.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The session and why.
    #[command(flatten)]
    pub(crate) what: Move,
    /// Do not ask whether you mean it.
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
    /// Of what.
    #[command(subcommand)]
    pub(crate) what: ListCommand,
}

/// What can be listed.
#[derive(Debug, Subcommand)]
pub(crate) enum ListCommand {
    /// Sessions, newest first.
    #[command(after_help = "\
Examples:
  switchward list sessions
  switchward list sessions --filter 'status=\"waiting\" AND labels.team=\"web\"'")]
    Sessions(ListFilter),
    /// What people are asked, oldest first.
    #[command(after_help = "Example:\n  switchward list gates --filter 'kind=\"tool_ask\"'")]
    Gates(ListFilter),
    /// What was sent and has not arrived; what cannot be delivered comes first.
    #[command(after_help = "Example:\n  switchward list effects --filter 'status=\"dead\"'")]
    Effects(ListFilter),
    /// Definitions by name.
    Definitions(Page),
    /// The versions of a definition, newest first.
    Versions(ListOf),
    /// Everything that happened in a session, oldest first.
    Events(ListOf),
    /// What was decided about a session's tool calls.
    #[command(after_help = "Example:\n  switchward list decisions release-42 --filter 'decision=\"deny\"'")]
    Decisions(ListOf),
    /// API keys, newest first.
    Keys(Page),
}

/// A list that can be narrowed.
#[derive(Debug, Args)]
pub(crate) struct ListFilter {
    /// Which: word="value", joined by AND.
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// How many.
    #[command(flatten)]
    pub(crate) page: Page,
}

/// A list of what belongs to something.
#[derive(Debug, Args)]
pub(crate) struct ListOf {
    /// The definition's name, or the session's id or key.
    #[arg(value_name = "NAME")]
    pub(crate) of: String,
    /// Which decisions: word="value", joined by AND.
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// How many.
    #[command(flatten)]
    pub(crate) page: Page,
}

/// How much of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Page {
    /// Most entries, 0 for all of them; without it 100, and all of what a session holds.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,
    /// Go on where a list ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) page_token: Option<String>,
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The session's id or key.
    pub(crate) session: String,
    /// The first event to show.
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

/// Arguments of `clock`.
#[derive(Debug, Args)]
pub(crate) struct Clock {
    /// What to do with it; without it, it is read.
    #[command(subcommand)]
    pub(crate) what: Option<ClockCommand>,
}

/// What can be done with a manual clock.
#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// Move it forward; every timer on the way fires at its own time.
    Advance(AdvanceClock),
}

/// Arguments of `clock advance`.
#[derive(Debug, Args)]
pub(crate) struct AdvanceClock {
    /// How far: 90s, 5m, 1h30m, 3d.
    #[arg(value_parser = duration)]
    pub(crate) by: Duration,
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
    /// Make a key; its secret is shown once.
    #[command(after_help = "Example:\n  switchward keys create approver --subject dana --expires-in 90d")]
    Create(CreateKey),
    /// Revoke a key at once; this cannot be undone.
    Revoke(RevokeKey),
    /// Make an admin key in the data folder of a stopped server; its secret is shown once.
    #[command(after_help = "\
Example:
  switchward keys bootstrap --data-dir /var/lib/switchward --tenant acme

For operators who have lost all admin keys. Run it as the server's user; `switchward tenant create` makes the first tenant.")]
    Bootstrap(BootstrapKey),
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// What its holder may do.
    #[arg(value_enum)]
    pub(crate) role: KeyRole,
    /// The person or program that will hold it; without it, the key's own id.
    #[arg(long, value_name = "WHO")]
    pub(crate) subject: Option<String>,
    /// A name for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// When it expires: 12h, 90d; without it, never.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires_in: Option<Duration>,
}

/// What a key's holder may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRole {
    /// Starts and answers sessions and asks for tool calls.
    Agent,
    /// Deploys and activates definitions.
    Author,
    /// Decides gates.
    Approver,
    /// Runs sessions, and decides gates.
    Operator,
    /// Everything, keys too.
    Admin,
    /// Takes work and hands in its results.
    Worker,
    /// Brings events and what users say; reads nothing.
    Integration,
}

/// Arguments of `keys revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeKey {
    /// The key's id.
    pub(crate) key: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
