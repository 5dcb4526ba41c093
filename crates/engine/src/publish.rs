//! What happens in a session is told to the endpoints of its tenant: at the end of each turn, in the same entry of the
//! log, a message for each event that an endpoint wants.

use crate::command::Scope;
use crate::limits::{PUBLISHED_ABOUT_BYTES_MAX, PUBLISHED_MAX, PUBLISHED_TURN_MAX};
use crate::public::{PublicEvent, machines_in, public_events};
use crate::state::{EffectBody, Endpoint};
use crate::turn::{Stop, Turn};
use crate::{Event, Key};

/// The types of events of sessions that endpoints can be told of, in order.
pub const PUBLISHED: [&str; 20] = [
    "approval.decided",
    "approval.escalated",
    "approval.requested",
    "approval.timed_out",
    "approval.undeliverable",
    "budget.exhausted",
    "policy.asked",
    "policy.denied",
    "session.abandoned",
    "session.blocked",
    "session.cancelled",
    "session.completed",
    "session.failed",
    "session.paused",
    "session.resumed",
    "session.started",
    "session.state_entered",
    "session.warned",
    "task.completed",
    "task.created",
];

/// Puts a message for each event of the turn and each endpoint that wants it into the outbox.
pub(crate) fn run(turn: &mut Turn<'_, '_>) -> Result<(), Stop> {
    let Scope::Session(id) = turn.command.scope else { return Ok(()) };
    if turn.events.is_empty() {
        return Ok(());
    }
    let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
    let Some(tenancy) = tenancy.filter(|known| known.endpoints.iter().any(|one| one.disabled.is_none()))
    else {
        return Ok(());
    };
    let machines = machines_in(turn.rows, turn.tenant(), id, &turn.events)?;
    let (root, sequence, waiting) = {
        let session = turn.session()?;
        (session.root, session.sequence, usize::try_from(session.outbox().published).unwrap_or(usize::MAX))
    };
    let first = sequence.saturating_sub(u64::try_from(turn.events.len()).unwrap_or(u64::MAX));
    let room = PUBLISHED_TURN_MAX.min(PUBLISHED_MAX.saturating_sub(waiting));
    let (mut bodies, mut beyond) = (Vec::new(), 0_usize);
    for (at, event) in public_events(&turn.events, &machines) {
        if PUBLISHED.binary_search(&event.kind).is_err() {
            continue;
        }
        for endpoint in tenancy.endpoints.iter().filter(|one| one.wants(event.kind)) {
            if bodies.len() < room {
                let after = first.saturating_add(u64::try_from(at).unwrap_or(u64::MAX)).saturating_add(1);
                bodies.push(body(turn, endpoint, &event, after));
            } else {
                beyond += 1;
            }
        }
    }
    for body in bodies {
        turn.send(root, body)?;
    }
    if beyond > 0 {
        let text = format!("{beyond} messages to endpoints are not sent: too many have not arrived");
        turn.emit(Event::Warned { text, of_definition: false })?;
    }
    Ok(())
}

fn body(turn: &Turn<'_, '_>, endpoint: &Endpoint, event: &PublicEvent, sequence: u64) -> EffectBody {
    EffectBody::Publish {
        endpoint: endpoint.id.clone(),
        kind: event.kind.to_owned(),
        sequence,
        at: turn.now(),
        about: about(event),
    }
}

/// What an event is about, by its group: never what was said or decided in words.
fn about(event: &PublicEvent) -> Option<String> {
    let name = match event.kind.split_once('.')?.0 {
        "approval" | "task" => "gate",
        "policy" => "capability",
        "session" => "state",
        "budget" => {
            let usd = event.fields.iter().any(|(name, _)| *name == "cap_usd");
            return Some(if usd { "usd" } else { "mails" }.to_owned());
        }
        _ => return None,
    };
    let (_, value) = event.fields.iter().find(|(known, _)| *known == name)?;
    Some(value[..value.floor_char_boundary(PUBLISHED_ABOUT_BYTES_MAX)].to_owned())
}
