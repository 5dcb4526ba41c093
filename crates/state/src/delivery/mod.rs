//! Deliveries: the outbox, outbound mail and its caps, endpoints and sources of webhooks.

pub(crate) mod apply;
pub(crate) mod apply_endpoints;
mod command;
mod destination_commands;
mod detail;
mod detail_of_mail;
mod detail_of_request;
mod disabled_reason;
mod endpoint;
mod event;
mod event_problem;
mod event_subject;
mod facts;
mod failure_code;
pub mod mail_caps;
mod mail_full;
mod memory;
mod message_text;
mod outbox;
mod outgoing;
mod published_type;
mod republish;
mod summary;
mod webhook_source;
mod webhook_source_kind;

pub use command::DeliveryCommand;
pub use command::{
    AckEffect, DeferEffect, DismissEffect, FailEffect, HoldEffects, RecordBounce, RetryEffect,
};
pub use destination_commands::{ChangeEndpoint, ChangeWebhookSource};
pub use detail::{DeliveryDetail, JobProblem, ModelProblem, PingProblem, SizedPart};
pub use detail_of_mail::MailProblem;
pub use detail_of_request::{AddressProblem, ExchangeProblem, HeaderProblem, RequestProblem};
pub use disabled_reason::DisabledReason;
pub use endpoint::{Endpoint, EndpointHealth};
pub use event::DeliveryEvent;
pub use event_problem::EventProblem;
pub use event_subject::EventSubject;
pub use facts::WebhookSourceFact;
pub use failure_code::{BadFailureCode, FailureCode, ReportedCode};
pub use mail_caps::{MailCount, mail_counts, mail_full, mail_limits, waiting};
pub use mail_full::{MailCap, MailFull};
pub use message_text::MessageText;
pub(crate) use outbox::web_destination;
pub use outbox::{
    Attempt, DeliveryFailure, Effect, EffectBody, EffectProgress, EffectSource, MailHead, Outbox, Purpose,
};
pub use outgoing::{BadMail, Draft, Outgoing};
pub use published_type::PublishedType;
pub use republish::{PublishedEvent, Republish};
pub use summary::{EffectKind, EffectStatus, EffectSummary, EndpointSummary, SecretsSummary, SourceSummary};
pub use webhook_source::{Correlation, SourceSecret, TextSource, WebhookSource};
pub use webhook_source_kind::WebhookSourceKind;
