//! Publishes events of the tenant itself to its endpoints: its definitions, and endpoints that are disabled. The messages
//! wait in the catalogue, go out as those of sessions do, and are no dead letters: one that is given up is gone.

use switchward_state::catalogue::TenantOutbox;
use switchward_state::delivery::{
    DeliveryEvent, Effect, EffectBody, EffectSource, EventSubject, PublishedType,
};
use switchward_state::limits::TENANT_OUTBOX_MAX;
use switchward_state::{Key, ReadRows as _};

use crate::turn::{Stop, Turn};

/// Queues a message for each endpoint that wants it.
pub(crate) fn publish(turn: &mut Turn<'_, '_>, kind: PublishedType, about: EventSubject) -> Result<(), Stop> {
    let tenancy = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let Some(tenancy) = tenancy else { return Ok(()) };
    let TenantOutbox { last, waiting } = tenancy.outbox.unwrap_or_default();
    let free = usize::try_from(TENANT_OUTBOX_MAX.saturating_sub(waiting)).unwrap_or(0);
    let wanting: Vec<String> =
        tenancy.endpoints.iter().filter(|one| one.wants(kind)).map(|one| one.id.clone()).collect();
    drop(tenancy);
    // All messages about one event carry one sequence.
    let sequence = last + 1;
    let about = Some(about);
    for (number, endpoint) in (sequence..).zip(wanting.into_iter().take(free)) {
        let (at, about) = (turn.now(), about.clone());
        let effect = Effect {
            source: EffectSource::Tenant,
            number,
            deliver_at: at,
            trace: turn.trace.clone(),
            body: EffectBody::Publish { endpoint, kind, sequence, at, about },
            progress: None,
        };
        turn.emit(DeliveryEvent::Queued { effect })?;
    }
    Ok(())
}
