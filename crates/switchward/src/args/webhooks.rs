//! What is done with endpoints and sources of webhooks.

use clap::{Args, Subcommand, ValueEnum};
use std::time::Duration;

use super::client::Page;
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
    /// Make one, or set where it is and what it wants; the secret of a new one is shown once.
    #[command(after_help = "\
Examples:
  switchward endpoint put ops https://ops.example/switchward
  switchward endpoint put pager https://pager.example/in --event 'approval.*' --event session.failed

Messages are signed after Standard Webhooks. One that is disabled is sent messages again.")]
    Put(PutEndpoint),
    /// Show one.
    Get(NamedEndpoint),
    /// List them by name.
    List(Page),
    /// Give one another secret, which is shown once; the one before it signs too for a while.
    Rotate(RotateEndpoint),
    /// Send it one message now, and say how it was answered.
    Ping(PingEndpoint),
    /// Send it what it has missed.
    #[command(after_help = "\
Examples:
  switchward endpoint recover ops --since 2h
  switchward endpoint recover ops --since 1d --session release-42 --delivered")]
    Recover(RecoverEndpoint),
    /// Delete one; what has not arrived is sent to nobody.
    Delete(DeleteEndpoint),
}

/// Arguments of `endpoint put`.
#[derive(Debug, Args)]
pub(crate) struct PutEndpoint {
    /// Its name: a-z, 0-9 and -.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Where messages go.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// A type that it wants, like session.started or session.*; may be said again. Without it, all.
    #[arg(long = "event", value_name = "TYPE")]
    pub(crate) events: Vec<String>,
}

/// An endpoint by its name.
#[derive(Debug, Args)]
pub(crate) struct NamedEndpoint {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Arguments of `endpoint rotate`.
#[derive(Debug, Args)]
pub(crate) struct RotateEndpoint {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How long the secret of now signs too, at most 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1d")]
    pub(crate) overlap: Duration,
    /// The secret of now stops at once.
    #[arg(long, conflicts_with = "overlap")]
    pub(crate) now: bool,
}

/// Arguments of `endpoint ping`.
#[derive(Debug, Args)]
pub(crate) struct PingEndpoint {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// An example of this type, whose names exist nowhere; without it, a ping.
    #[arg(long = "event", value_name = "TYPE", default_value = "")]
    pub(crate) event: String,
}

/// Arguments of `trigger`.
#[derive(Debug, Args)]
pub(crate) struct Trigger {
    /// The type, like session.completed; `switchward schema events` lists them.
    #[arg(value_name = "TYPE")]
    pub(crate) event: String,
    /// The endpoint.
    #[arg(value_name = "ENDPOINT")]
    pub(crate) name: String,
}

/// Arguments of `listen`.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// A type that is wanted, like session.started or session.*; may be said again. Without it, all.
    #[arg(long = "event", value_name = "TYPE")]
    pub(crate) events: Vec<String>,
    /// Hand verified messages on to this address of this machine, as they came; its answer is the server's.
    #[arg(long, value_name = "URL")]
    pub(crate) forward: Option<String>,
    /// The port to listen on; 0 for any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// End after this many messages.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u32>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Of what.
    #[command(subcommand)]
    pub(crate) what: SchemaCommand,
}

/// What has a schema.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// The bodies of webhooks, by their types.
    #[command(
        after_help = "Examples:\n  switchward schema events\n  switchward schema events session.completed"
    )]
    Events {
        /// The type; without it, one object with all of them.
        #[arg(value_name = "TYPE")]
        event: Option<String>,
    },
}

/// Arguments of `endpoint recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverEndpoint {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What has happened for so long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Duration,
    /// Only of this session, by its id or key.
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// What has arrived, too.
    #[arg(long)]
    pub(crate) delivered: bool,
}

/// Arguments of `endpoint delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteEndpoint {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask whether you mean it.
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
    /// Make one; its secret is shown once.
    #[command(after_help = "\
Examples:
  switchward source create shop --kind standard-webhooks --session-at /order/session --event paid
  switchward source create repo --kind github --secret @secret.txt --session release-42 --event-at /action

Its messages go to /v1/in/TENANT/NAME, and each becomes an event of the session that it names.")]
    Create(CreateSource),
    /// Show one.
    Get(NamedSource),
    /// List them by name.
    List(Page),
    /// Give one another secret; the one before it is good for a while more.
    Rotate(RotateSource),
    /// Delete one; its messages are refused from then on.
    Delete(DeleteSource),
}

/// How messages of a source prove where they are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindOfSource {
    /// Signed after Standard Webhooks.
    StandardWebhooks,
    /// Signed as GitHub does.
    Github,
    /// Signed as Stripe does.
    Stripe,
    /// Signed as Slack does.
    Slack,
    /// A secret in the header `authorization`; a message that comes twice is told by its header
    /// `webhook-id` or `idempotency-key`, where it has one.
    Bearer,
    /// Not at all; on a development server alone.
    None,
}

/// Arguments of `source create`.
#[derive(Debug, Args)]
pub(crate) struct CreateSource {
    /// Its name: a-z, 0-9 and -.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How its messages prove where they are from.
    #[arg(long, value_enum, default_value_t = KindOfSource::StandardWebhooks)]
    pub(crate) kind: KindOfSource,
    /// The secret, where it is given from outside: @FILE reads a file, - the standard input.
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// The session of all its messages, by its id or key.
    #[arg(
        long,
        value_name = "SESSION",
        conflicts_with = "session_at",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) session: String,
    /// Where in a message the session's id or key stands, as a JSON pointer.
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
    /// Where in a message the event's key stands, as a JSON pointer.
    #[arg(long, value_name = "POINTER", default_value = "", hide_default_value = true)]
    pub(crate) event_at: String,
    /// Where in a message the event's data stands, as a JSON pointer; without it, all of it.
    #[arg(long, value_name = "POINTER", default_value = "", hide_default_value = true)]
    pub(crate) data_at: String,
    /// For GitHub, which signs no time: how long a copy of a message is known by its signature, 1m to 90d [default: 7d].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) known: Option<Duration>,
}

/// A source by its name.
#[derive(Debug, Args)]
pub(crate) struct NamedSource {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Arguments of `source rotate`.
#[derive(Debug, Args)]
pub(crate) struct RotateSource {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The new secret, where it is given from outside: @FILE reads a file, - the standard input.
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// How long the secret of now is good too, at most 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1d")]
    pub(crate) overlap: Duration,
    /// The secret of now is void at once.
    #[arg(long, conflicts_with = "overlap")]
    pub(crate) now: bool,
}

/// Arguments of `source delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteSource {
    /// Its name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
