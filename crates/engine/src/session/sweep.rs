//! What has lapsed is given up: old replies, unused approvals, calls that nobody reported, reservations, messages and calls
//! that are known again; and what has fallen due happens.

use switchward_machine::{Micros, OpenId};
use switchward_state::delivery::EffectBody;
use switchward_state::limits::{CALL_KEPT_MS, HOUR_MS, REQUESTS_KEPT_MS};
use switchward_state::policy::{PolicyEvent, by_ledger};
use switchward_state::session::{SessionEvent, Sweep};
use switchward_state::{Key, Kind, ReadRows as _, Reply};

use crate::run::leave;
use crate::turn::{Stop, Turn};
use crate::work::timers;

/// Looks at one row; does nothing if nothing has lapsed.
pub(crate) fn run(turn: &mut Turn<'_, '_>, sweep: &Sweep) -> Result<Reply, Stop> {
    let key = &sweep.key;
    if key.is(Kind::Session) {
        requests(turn)?;
    } else if key.is(Kind::Grant) {
        grant(turn, key)?;
    } else if key.is(Kind::Call) {
        call(turn, key)?;
    } else if key.is(Kind::OpenItem) {
        if let Some(number) = number(key) {
            timers::fall_due(turn, key, OpenId(number))?;
        }
    } else if key.is(Kind::Ledger) {
        let due = turn.rows.ledger_at(key)?.and_then(|row| row.lapses());
        if due.is_some_and(|due| due <= turn.now()) && !planted!(turn.rows, ReservationPermanent) {
            turn.emit(PolicyEvent::Swept(key.as_bytes().to_vec()))?;
        }
    } else if key.is(Kind::Request) {
        let given = turn.rows.request_at(key)?.map(|request| request.at);
        if given.is_some_and(|at| turn.now().since_ms(at) >= REQUESTS_KEPT_MS) {
            turn.emit(PolicyEvent::Swept(key.as_bytes().to_vec()))?;
        }
    } else if key.is(Kind::Recorded) {
        let until = turn.rows.recorded_at(key)?.map(|until| *until);
        if until.is_some_and(|until| until <= turn.now()) {
            turn.emit(PolicyEvent::Swept(key.as_bytes().to_vec()))?;
        }
    } else if let Some(hour) = key.hour_of_mailed()
        && turn.now().since_ms(hour) >= 2 * HOUR_MS
        && turn.rows.mailed_at(key)?.is_some()
    {
        turn.emit(PolicyEvent::Swept(key.as_bytes().to_vec()))?;
    }
    Ok(Reply::Done)
}

fn requests(turn: &mut Turn<'_, '_>) -> Result<(), Stop> {
    let session = turn.session()?;
    let over = session.ended.is_some_and(|ended| turn.now().since_ms(ended) >= REQUESTS_KEPT_MS);
    let any = !session.replies.is_empty();
    drop(session);
    if over && any {
        turn.emit(SessionEvent::RequestsForgotten)?;
    }
    Ok(())
}

fn number(key: &Key) -> Option<u64> {
    key.rest().get(16..24)?.try_into().ok().map(u64::from_be_bytes)
}

fn grant(turn: &mut Turn<'_, '_>, key: &Key) -> Result<(), Stop> {
    let lapsed = turn.rows.grant_at(key)?.is_some_and(|grant| grant.expires <= turn.now());
    let Some(number) = number(key).filter(|_| lapsed) else { return Ok(()) };
    let session = turn.session()?;
    let root = session.root;
    drop(session);
    leave::release(turn, root, number)?;
    turn.emit(PolicyEvent::GrantLapsed { number })?;
    Ok(())
}

fn call(turn: &mut Turn<'_, '_>, key: &Key) -> Result<(), Stop> {
    let Some(call) = turn.rows.call_at(key)? else { return Ok(()) };
    let Some(number) = number(key).filter(|_| turn.now().since_ms(call.at) >= CALL_KEPT_MS) else {
        return Ok(());
    };
    drop(call);
    give_back(turn, key, number)
}

/// A permitted call is taken for one that is not reported: what is held for it is given back.
pub(crate) fn give_back(turn: &mut Turn<'_, '_>, key: &Key, number: u64) -> Result<(), Stop> {
    let Some(call) = turn.rows.call_at(key)? else { return Ok(()) };
    let (root, rules, held) = (turn.session()?.root, call.rules.clone(), call.reservation);
    drop(call);
    turn.emit(PolicyEvent::CallLapsed { number })?;
    if held.is_some() {
        let (cost, at) = (Micros(0), turn.now());
        for (process, rules) in by_ledger(&rules) {
            turn.send(root, EffectBody::Settle { process, call: held, rules, cost, at, release: false })?;
        }
    }
    Ok(())
}
