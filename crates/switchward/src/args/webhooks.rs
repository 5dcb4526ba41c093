//! Arguments of `endpoint`, `source`, `listen`, `trigger` and `schema`.

use clap::{Args, Subcommand, ValueEnum};
use std::time::Duration;

use super::page::Page;
use super::values::duration;

/// Arguments of `endpoint`.
#[derive(Debug, Args)]
pub(crate) struct EndpointArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: EndpointCommand,
}

/// What can be done with endpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum EndpointCommand {
    /// Create an endpoint, or change its URL and event types; the secret of a new endpoint is shown once.
    #[command(after_help = "\
Examples:
  switchward endpoint put ops https://ops.example/switchward
  switchward endpoint put pager https://pager.example/in --event 'approval.*' --event session.failed

Messages are signed according to Standard Webhooks. `put` enables a disabled endpoint.")]
    Put(PutEndpoint),
    /// Show an endpoint.
    Get(NamedEndpoint),
    /// List endpoints by name.
    List(Page),
    /// Replace an endpoint's secret; the new one is shown once, the old one also signs for a while.
    Rotate(RotateEndpoint),
    /// Send one message to an endpoint now and show the response.
    Ping(PingEndpoint),
    /// Send an endpoint the messages that it has missed.
    #[command(after_help = "\
Examples:
  switchward endpoint recover ops --since 2h
  switchward endpoint recover ops --since 1d --session release-42 --delivered")]
    Recover(RecoverEndpoint),
    /// Delete an endpoint; undelivered messages are dropped.
    Delete(DeleteEndpoint),
}

/// Arguments of `endpoint put`.
#[derive(Debug, Args)]
pub(crate) struct PutEndpoint {
    /// The endpoint's name: a-z, 0-9 and -.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The URL that receives messages.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// An event type, such as session.started or session.*; can be repeated [default: all types].
    #[arg(long = "event", value_name = "TYPE")]
    pub(crate) events: Vec<String>,
}

/// What the subcommands that are about one endpoint take.
#[derive(Debug, Args)]
pub(crate) struct NamedEndpoint {
    /// The endpoint's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Arguments of `endpoint rotate`.
#[derive(Debug, Args)]
pub(crate) struct RotateEndpoint {
    /// The endpoint's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How long the current secret also signs, at most 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1d")]
    pub(crate) overlap: Duration,
    /// Stop signing with the current secret at once.
    #[arg(long, conflicts_with = "overlap")]
    pub(crate) now: bool,
}

/// Arguments of `endpoint ping`.
#[derive(Debug, Args)]
pub(crate) struct PingEndpoint {
    /// The endpoint's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Send an example event of this type, with invented names [default: a ping].
    #[arg(long = "event", value_name = "TYPE", default_value = "")]
    pub(crate) event: String,
}

/// Arguments of `trigger`.
#[derive(Debug, Args)]
pub(crate) struct Trigger {
    /// The event type, such as session.completed; `switchward schema events` lists the types.
    #[arg(value_name = "TYPE")]
    pub(crate) event: String,
    /// The endpoint's name.
    #[arg(value_name = "ENDPOINT")]
    pub(crate) name: String,
}

/// Arguments of `listen`.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// An event type, such as session.started or session.*; can be repeated [default: all types].
    #[arg(long = "event", value_name = "TYPE")]
    pub(crate) events: Vec<String>,
    /// Forward verified messages unchanged to this URL on this machine; its response is passed to the server.
    #[arg(long, value_name = "URL")]
    pub(crate) forward: Option<String>,
    /// The port to listen on; 0 for any free port.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Exit after this number of messages.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u32>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// What to print.
    #[command(subcommand)]
    pub(crate) what: SchemaCommand,
}

/// Each prints JSON Schema.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Print the schemas of webhook bodies, by event type.
    #[command(
        after_help = "Examples:\n  switchward schema events\n  switchward schema events session.completed"
    )]
    Events {
        /// The event type [default: one object with all types].
        #[arg(value_name = "TYPE")]
        event: Option<String>,
    },
}

/// Arguments of `endpoint recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverEndpoint {
    /// The endpoint's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Send the messages of this past time, such as 2h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Duration,
    /// Send only the messages of this session, by its id or key.
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Also send messages that were delivered.
    #[arg(long)]
    pub(crate) delivered: bool,
}

/// Arguments of `endpoint delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteEndpoint {
    /// The endpoint's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `source`.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: SourceCommand,
}

/// What can be done with sources.
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Create a source; its secret is shown once.
    #[command(after_help = "\
Examples:
  switchward source create shop --kind standard-webhooks --session-at /order/session --event paid
  switchward source create repo --kind github --secret @secret.txt --session release-42 --event-at /action

The sender posts its messages to /v1/in/TENANT/NAME; each becomes an event of the session that it names.")]
    Create(CreateSource),
    /// Show a source.
    Get(NamedSource),
    /// List sources by name.
    List(Page),
    /// Replace a source's secret; the old one stays valid for a while.
    Rotate(RotateSource),
    /// Delete a source; its messages are refused from then on.
    Delete(DeleteSource),
}

/// How messages of a source are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindOfSource {
    /// Signed according to Standard Webhooks.
    StandardWebhooks,
    /// Signed as GitHub does.
    Github,
    /// Signed as Stripe does.
    Stripe,
    /// Signed as Slack does.
    Slack,
    /// A secret in the header `authorization`; duplicates are recognised by the header `webhook-id` or
    /// `idempotency-key`.
    Bearer,
    /// Not authenticated; only on a development server.
    None,
}

/// Arguments of `source create`.
#[derive(Debug, Args)]
pub(crate) struct CreateSource {
    /// The source's name: a-z, 0-9 and -.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How the messages are authenticated.
    #[arg(long, value_enum, default_value_t = KindOfSource::StandardWebhooks)]
    pub(crate) kind: KindOfSource,
    /// The secret, if the sender defines it: @FILE, or - for the standard input [default: a new secret].
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// The session of all messages, by its id or key.
    #[arg(
        long,
        value_name = "SESSION",
        conflicts_with = "session_at",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) session: String,
    /// The JSON pointer to the session's id or key in a message.
    #[arg(long, value_name = "POINTER", default_value = "", hide_default_value = true)]
    pub(crate) session_at: String,
    /// The event's key.
    #[arg(
        long,
        value_name = "KEY",
        conflicts_with = "event_at",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) event: String,
    /// The JSON pointer to the event's key in a message.
    #[arg(long, value_name = "POINTER", default_value = "", hide_default_value = true)]
    pub(crate) event_at: String,
    /// The JSON pointer to the event's data in a message [default: the whole message].
    #[arg(long, value_name = "POINTER", default_value = "", hide_default_value = true)]
    pub(crate) data_at: String,
    /// How long duplicates are recognised by their signature, 1m to 90d; only for github, which signs no time
    /// [default: 7d].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) known: Option<Duration>,
}

/// What the subcommands that are about one source take.
#[derive(Debug, Args)]
pub(crate) struct NamedSource {
    /// The source's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Arguments of `source rotate`.
#[derive(Debug, Args)]
pub(crate) struct RotateSource {
    /// The source's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The new secret, if the sender defines it: @FILE, or - for the standard input [default: a new secret].
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// How long the current secret stays valid, at most 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1d")]
    pub(crate) overlap: Duration,
    /// Invalidate the current secret at once.
    #[arg(long, conflicts_with = "overlap")]
    pub(crate) now: bool,
}

/// Arguments of `source delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteSource {
    /// The source's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
