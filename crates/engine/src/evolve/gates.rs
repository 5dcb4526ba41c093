//! Gates that open and close, and effects that come and go.

use switchward_machine::OpenId;

use super::Site;
use crate::state::{Closed, EffectBody, Held, Open, Resolution};
use crate::working::Working;
use crate::{Event, Key, Row, ViewError};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/mod.rs is exhaustive and says what comes here"
)]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    let id = site.session()?;
    match event {
        Event::GateOpened { gate, run, body } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.opens.push(*gate);
            session.next_id = gate.0 + 1;
            let at = rows.run_at_mut(&Key::run(site.tenant, id, *run))?;
            if let Some(exit) = body.exit {
                at.held = Some(Held { exit, gate: *gate });
            }
            let open = Open { run: *run, node: at.node, entry: at.entry, at: site.at, gate: body.clone() };
            rows.put(Key::open(site.tenant, id, *gate), Row::Open(open));
        }
        Event::GateClosed { gate, decision, by, comment } => {
            let resolution =
                Resolution::Decided { decision: *decision, by: by.clone(), comment: comment.clone() };
            close(rows, site, *gate, resolution)?;
        }
        Event::Voided { gates, grants, things, run } => {
            for (thing, run) in things.iter().zip(run.iter().cycle()) {
                super::flow::close(rows, site, *run, *thing)?;
            }
            for gate in gates {
                close(rows, site, *gate, Resolution::Voided)?;
            }
            for grant in grants {
                super::calls::drop_grant(rows, site, *grant)?;
            }
        }
        Event::EffectQueued { effect } => {
            rows.session_at_mut(&site.session_key()?)?.next_id = effect.number + 1;
            if let EffectBody::Notice { gate, .. } = &effect.body {
                rows.open_at_mut(&Key::open(site.tenant, id, *gate))?.gate.notice = Some(effect.number);
            }
            rows.put(Key::outbox(site.tenant, id, effect.number), Row::Outbox(effect.clone()));
        }
        Event::EffectAcked { number } => rows.delete(Key::outbox(site.tenant, id, *number)),
        _ => {}
    }
    Ok(())
}

/// Moves a gate to the closed ones; a notice that has not gone out yet has nothing left to say.
fn close(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    gate: OpenId,
    resolution: Resolution,
) -> Result<(), ViewError> {
    let id = site.session()?;
    let key = Key::open(site.tenant, id, gate);
    let Some(open) = rows.open_at(&key)?.map(|open| Open::clone(&open)) else {
        return Err(ViewError(format!("key {key:?} holds no open gate")));
    };
    rows.session_at_mut(&site.session_key()?)?.opens.retain(|known| *known != gate);
    let run = rows.run_at_mut(&Key::run(site.tenant, id, open.run))?;
    if run.held.is_some_and(|held| held.gate == gate) {
        run.held = None;
    }
    if let Some(notice) = open.gate.notice {
        rows.delete(Key::outbox(site.tenant, id, notice));
    }
    rows.delete(key);
    rows.put(Key::closed(site.tenant, id, gate), Row::Closed(Closed { open, resolution, at: site.at }));
    Ok(())
}
