//! Commands about what goes out.

use switchward_machine::Time;
use switchward_state::Body;
use switchward_state::delivery::{
    AckEffect, Attempt, ChangeEndpoint, ChangeWebhookSource, Correlation, DeferEffect, DeliveryCommand,
    DeliveryDetail, DisabledReason, DismissEffect, EventSubject, FailEffect, FailureCode, HoldEffects,
    PublishedEvent, PublishedType, RecordBounce, Republish, RetryEffect, SourceSecret, TextSource,
    WebhookSourceKind,
};

use super::catalogue::sealed;
use super::session::token;

fn effects() -> Vec<DeliveryCommand> {
    let (number, code, message) =
        (3, "smtp_550".parse::<FailureCode>().expect("a code"), "no such user".to_owned());
    let event = PublishedEvent {
        kind: PublishedType::SessionCompleted,
        sequence: 7,
        at: Time(8),
        about: Some(EventSubject::OfSession("5".into())),
    };
    let (endpoint, retry, events) = ("crm".to_owned(), vec![1, 2], vec![event]);
    vec![
        DeliveryCommand::AckEffect(AckEffect { number }),
        DeliveryCommand::FailEffect(FailEffect {
            number,
            code: code.clone(),
            detail: DeliveryDetail::quote(message.clone()),
            round: Some(1),
        }),
        DeliveryCommand::DeferEffect(DeferEffect {
            number,
            attempt: Attempt { round: 1, number: 2 },
            wait_ms: 90,
            code,
            detail: DeliveryDetail::quote(message.clone()),
            made: true,
        }),
        DeliveryCommand::RecordBounce(RecordBounce { token: token(), message }),
        DeliveryCommand::RetryEffect(RetryEffect { number }),
        DeliveryCommand::DismissEffect(DismissEffect { number }),
        DeliveryCommand::Republish(Republish { endpoint, retry, events }),
        DeliveryCommand::HoldEffects(HoldEffects { held: true }),
    ]
}

fn sources() -> Vec<ChangeWebhookSource> {
    let (name, etag) = (|| "shop".to_owned(), || "e".to_owned());
    let secret = || SourceSecret { sealed: sealed(), until: Some(Time(9)) };
    let correlation = || Correlation {
        session: TextSource::Pointer("/order/id".into()),
        event_key: TextSource::Fixed("order.paid".into()),
        data: "/order".into(),
        known_ms: Some(60_000),
    };
    vec![
        ChangeWebhookSource::Create {
            name: name(),
            kind: WebhookSourceKind::Github,
            secret: Some(secret()),
            correlation: correlation(),
        },
        ChangeWebhookSource::Correlate { name: name(), correlation: correlation(), etag: etag() },
        ChangeWebhookSource::Rotate { name: name(), secret: secret(), overlap_ms: 5, etag: etag() },
        ChangeWebhookSource::Delete { name: name(), etag: etag() },
    ]
}

fn endpoints() -> Vec<ChangeEndpoint> {
    let (id, etag) = (|| "crm".to_owned(), || "e".to_owned());
    vec![
        ChangeEndpoint::Put {
            id: id(),
            url: "https://crm.example/hook".into(),
            filters: vec!["session.*".into()],
            secret: sealed(),
            key: Some(sealed()),
            etag: etag(),
        },
        ChangeEndpoint::Rotate { id: id(), secret: sealed(), overlap_ms: 5, etag: etag() },
        ChangeEndpoint::Disable { id: id(), reason: DisabledReason::Gone },
        ChangeEndpoint::Delete { id: id(), etag: etag() },
        ChangeEndpoint::Note {
            id: id(),
            failure: Some(("http_500".parse().expect("a code"), DeliveryDetail::quote("it fails"))),
        },
    ]
}

pub(crate) fn commands() -> Vec<Body> {
    let mut all = effects();
    all.extend(sources().into_iter().map(DeliveryCommand::WebhookSource));
    all.extend(endpoints().into_iter().map(DeliveryCommand::Endpoint));
    all.into_iter().map(Body::Delivery).collect()
}
