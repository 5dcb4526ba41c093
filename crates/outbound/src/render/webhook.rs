//! Messages to endpoints: what each says, signed with the secrets of the moment it is sent.
//!
//! Chosen: it is signed here, for every attempt, and only the signature goes over the bus. Rejected: to sign in the delivery
//! worker, which would need the secrets over the bus, or would have to read the tenancy itself. An attempt is
//! begun within the time that one may take, so that the timestamp is well within what receivers allow.

use std::time::Duration;
use switchward_delivery::channels::Event;
use switchward_gateway::names;
use switchward_machine::{OpenId, SessionId, TenantId, Time};
use switchward_query::outgoing::ShardView;
use switchward_state::delivery::{
    DeliveryDetail, Effect, EffectBody, Endpoint, EventProblem, EventSubject, FailureCode, PublishedType,
};
use switchward_state::seal::KeyRing;
use switchward_state::{OutboxScope, ViewError};
use switchward_webhook::{Body, Data, EventType, Group, SigningSecret, limits::SECRETS_ACTIVE_MAX, standard};

use super::event_type::event_type;
use crate::rules::Names;

/// What becomes of a message to an endpoint.
pub(crate) enum Hook {
    /// It is sent.
    Send(Event),
    /// Its endpoint does not exist any more.
    Drop,
    /// It cannot be sent, for this reason.
    Fail(Unsent),
}

/// Why an effect cannot be sent.
pub(crate) struct Unsent {
    /// The code of its dead letter.
    pub(crate) code: FailureCode,
    /// The error of the library that makes or signs messages; `None` if the code says it all.
    pub(crate) detail: Option<DeliveryDetail>,
}

impl From<FailureCode> for Unsent {
    fn from(code: FailureCode) -> Self {
        Self { code, detail: None }
    }
}

impl From<EventProblem> for Unsent {
    fn from(problem: EventProblem) -> Self {
        FailureCode::Unsendable(problem).into()
    }
}

impl Unsent {
    /// A message that a library refuses to make or to sign.
    fn refused(error: impl ToString) -> Self {
        Self { code: FailureCode::WebhookFailed, detail: DeliveryDetail::quote(error.to_string()) }
    }
}

/// A message to an endpoint, as its effect has it.
struct Published<'a> {
    endpoint: &'a str,
    kind: PublishedType,
    sequence: u64,
    at: Time,
    about: Option<&'a EventSubject>,
}

/// What becomes of this message now.
///
/// # Errors
/// A row cannot be read.
pub(crate) fn hook(
    view: &ShardView,
    names: &impl Names,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    now: Time,
) -> Result<Hook, ViewError> {
    let EffectBody::Publish { endpoint: id, kind, sequence, at, about } = &effect.body else {
        return Ok(Hook::Drop);
    };
    let tenancy = match OutboxScope::from(session) {
        OutboxScope::Tenant => view.tenancy_record(tenant)?,
        OutboxScope::Session(_) => view.tenancy(tenant)?,
    };
    let Some(tenancy) = tenancy else { return Ok(Hook::Drop) };
    let Some(endpoint) = tenancy.endpoint(id) else { return Ok(Hook::Drop) };
    if let Some(reason) = endpoint.disabled {
        return Ok(Hook::Fail(EventProblem::EndpointDisabled { reason }.into()));
    }
    let published =
        Published { endpoint: id, kind: *kind, sequence: *sequence, at: *at, about: about.as_ref() };
    let made = data(view, names, tenant, session, &published)?;
    let signed = made.map_err(Unsent::from).and_then(|(kind, at, data)| {
        let body = Body::new(kind, at, data).and_then(|body| body.to_json()).map_err(Unsent::refused)?;
        let id = message_id(tenant, session, *sequence);
        signed(view.ring(), tenant, endpoint, &id, now, body).map_err(Unsent::refused)
    });
    Ok(match signed {
        Ok(event) => Hook::Send(event),
        Err(why) => Hook::Fail(why),
    })
}

/// The id of a message: that of its event. It is the same for every attempt, and for an event that is republished.
pub(crate) fn message_id(tenant: TenantId, session: SessionId, sequence: u64) -> String {
    match OutboxScope::from(session) {
        OutboxScope::Tenant => format!("ten_{}-{sequence}", tenant.0),
        OutboxScope::Session(session) => format!("{session}-{sequence}"),
    }
}

/// What a message of this id and body is as a request to an endpoint, signed now.
///
/// # Errors
/// The endpoint has no usable secret.
pub(crate) fn signed(
    ring: &KeyRing,
    tenant: TenantId,
    endpoint: &Endpoint,
    id: &str,
    now: Time,
    body: String,
) -> Result<Event, String> {
    let secrets = endpoint.good_secrets(ring, tenant, now);
    let secrets: Vec<SigningSecret> =
        secrets.iter().filter_map(|text| text.parse().ok()).take(SECRETS_ACTIVE_MAX).collect();
    let headers = standard::sign(&secrets, id, Duration::from_millis(now.0), body.as_bytes());
    let headers = headers.map_err(|error| error.to_string())?;
    let ours = [
        ("content-type", "application/json".to_owned()),
        ("user-agent", concat!("switchward/", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    let headers = headers.into_iter().chain(ours).map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Event { endpoint: endpoint.id.clone(), url: endpoint.url.clone(), headers, body })
}

type Made = Result<(EventType, Duration, Data), EventProblem>;

/// What a message says: names, and where to ask for more.
fn data(
    view: &ShardView,
    names: &impl Names,
    tenant: TenantId,
    id: SessionId,
    published: &Published<'_>,
) -> Result<Made, ViewError> {
    let Published { endpoint, kind, sequence, at, about } = *published;
    let at_time = Duration::from_millis(at.0);
    if OutboxScope::from(id) == OutboxScope::Tenant {
        let tenant = names.name_of(tenant)?.unwrap_or_else(|| tenant.0.to_string());
        let made = of_tenant(kind, tenant, about);
        return Ok(made.map(|data| (event_type(kind), at_time, data)));
    }
    let Some(session) = view.session(tenant, id)? else {
        return Ok(Err(EventProblem::NoSession));
    };
    let tenant = names.name_of(tenant)?.unwrap_or_else(|| tenant.0.to_string());
    let kind = event_type(kind);
    let about = about.and_then(EventSubject::of_session);
    let number = || about.and_then(|number| number.parse().ok());
    let gate = || number().map(|gate| names::gate_name(&tenant, id, OpenId(gate)));
    let mut data = Data {
        session: Some(names::session_name(&tenant, id)),
        sequence: Some(sequence),
        definition: Some(session.definition.clone()).filter(|name| !name.is_empty()),
        ..Data::default()
    };
    match kind.group() {
        Group::Session => data.state = about.map(str::to_owned),
        Group::Approval => data.approval = gate(),
        Group::Task => data.task = gate(),
        Group::Policy => data.capability = about.map(str::to_owned),
        Group::Budget => data.budget = about.map(str::to_owned),
        Group::Delivery => data.delivery = number().map(|number| names::effect_name(&tenant, id, number)),
        Group::Definition | Group::Endpoint | Group::Ping => {
            data.endpoint = Some(names::endpoint_name(&tenant, endpoint));
        }
    }
    data.tenant.clone_from(&tenant);
    if kind.group() != Group::Budget && session.version > 0 {
        data.version = Some(session.version);
    }
    Ok(Ok((kind, at_time, data)))
}

/// What a message says that is about the tenant itself.
fn of_tenant(
    kind: PublishedType,
    tenant: String,
    about: Option<&EventSubject>,
) -> Result<Data, EventProblem> {
    match (event_type(kind).group(), about) {
        (Group::Definition, Some(EventSubject::Version { definition, number })) => {
            let (definition, version) = (Some(definition.clone()), Some(*number));
            Ok(Data { tenant, definition, version, ..Data::default() })
        }
        (Group::Endpoint, Some(EventSubject::Endpoint { id, reason })) => {
            let endpoint = Some(names::endpoint_name(&tenant, id));
            Ok(Data { endpoint, reason: Some(reason.to_string()), tenant, ..Data::default() })
        }
        (
            Group::Definition
            | Group::Endpoint
            | Group::Session
            | Group::Approval
            | Group::Task
            | Group::Policy
            | Group::Budget
            | Group::Delivery
            | Group::Ping,
            _,
        ) => Err(EventProblem::UnknownSubject { kind, about: about.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_state::{
        delivery::SourceSecret,
        seal::{RingKey, SecretOf},
    };
    use switchward_webhook::{Headers, SourceKind, Unproven, verify};

    const OPS: (TenantId, SecretOf<'_>) = (TenantId(1), SecretOf::Endpoint("ops"));

    fn text(byte: u8) -> String {
        SigningSecret::of(&[byte; 32]).unwrap().text()
    }

    fn secret(ring: &KeyRing, byte: u8, until: Option<Time>) -> SourceSecret {
        SourceSecret { sealed: ring.seal([byte; 24], OPS.0, OPS.1, text(byte).as_bytes()).unwrap(), until }
    }

    fn endpoint(secrets: Vec<SourceSecret>) -> Endpoint {
        let (id, url) = ("ops".to_owned(), "https://ops.example/in".to_owned());
        Endpoint { id, url, secrets, filters: Vec::new(), disabled: None, created: Time(1), health: None }
    }

    /// Both secrets of a rotation prove a message as long as the older one is good, and the timestamp is the attempt's.
    #[test]
    fn a_message_is_signed_with_the_secrets_of_the_moment() {
        let ring = KeyRing::of(vec![RingKey::of([1; 32])]);
        let endpoint = endpoint(vec![secret(&ring, 2, None), secret(&ring, 1, Some(Time(60_000)))]);
        for (now, old) in [(Time(59_000), true), (Time(60_000), false)] {
            let event = signed(&ring, OPS.0, &endpoint, "ses_1-7", now, "{}".to_owned()).unwrap();
            let headers = event.headers.iter();
            let list: Vec<(&str, &[u8])> =
                headers.map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            let proves = |byte| {
                let text = text(byte);
                let (kind, secrets) = (SourceKind::StandardWebhooks, [text.as_str()]);
                let at = Duration::from_millis(now.0);
                let headers = Headers::new(&list);
                verify(kind, &secrets, headers, b"{}", at, Unproven::Refused)
                    .is_ok_and(|verified| verified.id.as_deref() == Some("ses_1-7"))
            };
            assert_eq!((proves(2), proves(1)), (true, old), "{now:?}");
            assert!(!format!("{event:?}").contains("whsec_"), "a secret is in the delivery job");
        }
        let none = Endpoint { secrets: Vec::new(), ..endpoint.clone() };
        assert!(signed(&ring, OPS.0, &none, "ses_1-7", Time(1), "{}".to_owned()).is_err());
        // Another tenant cannot open these secrets.
        assert!(signed(&ring, TenantId(2), &endpoint, "ses_1-7", Time(1), "{}".to_owned()).is_err());
    }
}
