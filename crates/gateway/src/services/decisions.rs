//! What was decided about the calls of a session, from its history.

use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_api::v1;
use switchward_machine::SessionId;
use switchward_shard::StateView;
use switchward_state::policy::PolicyEvent;
use switchward_state::{Event, History, Row, View, ViewError};

use super::history::{history_prefix, sequence_of};
use crate::api::{Call, refusal, unreadable};
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{LOOKED_AT_MAX, Page, decision_named, filter, order, unknown_term};
use crate::scans::{Pace, Share};
use crate::{convert, names};

/// Lists a session's decisions, the newest first.
pub(super) async fn list(
    call: &Call<'_>,
    message: v1::ListDecisionsRequest,
) -> Result<v1::ListDecisionsResponse, Refusal> {
    let id = names::session(&call.caller, "session", &message.session)?;
    let session = call.session(id, &message.session).await?;
    let mask = Mask::read("DecisionRecord", message.read_mask)?;
    order(&message.order_by, "sequence desc")?;
    let mut wanted = (None, None);
    for (name, value) in filter(&message.filter)? {
        match name.as_str() {
            "decision" => wanted.0 = Some(decision_named(&value)?),
            "capability" => wanted.1 = Some(value),
            name => return Err(unknown_term(name, "decision and capability")),
        }
    }
    let list = ["decisions", &call.caller.tenant_name, &id.to_string(), &message.filter];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let view = call.shard(id).read().await.map_err(refusal)?;
    let end = match page.after.as_deref().map(<[u8; 8]>::try_from) {
        None => session.session.sequence,
        Some(Ok(first)) => u64::from_be_bytes(first),
        Some(Err(_)) => return Err(Refusal::field("page_token", "is not a page token of this list")),
    };
    let is_wanted = move |record: &v1::DecisionRecord| {
        wanted.0.is_none_or(|decision| decision == record.decision())
            && wanted.1.as_ref().is_none_or(|capability| *capability == record.capability)
    };
    let wanted = move |call: &Call<'_>, first: u64, history: &History| {
        let mut records: Vec<_> = records(call, id, first, history).filter(&is_wanted).collect();
        records.reverse();
        records
    };
    let (found, end) = call.look_for(before(view, id, end, page.size, wanted)).await?;
    let next_page_token = if end > 0 { page.token(&end.to_be_bytes()) } else { String::new() };
    Ok(v1::ListDecisionsResponse { decisions: mask.keep_each(found), next_page_token })
}

/// Returns true if a call of this id was permitted, and was then to be reported. `sequence` is the session's. A call that
/// the session has forgotten, because too much has happened since, is none.
pub(super) async fn permitted(
    call: &Call<'_>,
    id: SessionId,
    sequence: u64,
    call_id: String,
) -> Result<bool, Refusal> {
    let view = call.shard(id).read().await.map_err(refusal)?;
    let wanted = move |_: &Call<'_>, _: u64, history: &History| {
        let permits = |event: &&Event| {
            matches!(event, Event::Policy(PolicyEvent::CallPermitted { number: Some(_), call, .. })
                if call.call_id == call_id)
        };
        history.events.iter().filter(permits).map(|_| ()).collect()
    };
    let (found, _) = call.look_for(before(view, id, sequence, 1, wanted)).await?;
    Ok(!found.is_empty())
}

type Looked<T> = (Vec<T>, u64);

/// Reads a session's history backwards from `end`, one slice a call, until `size` entries are found. `wanted` gets the
/// sequence before the first event of a row, and returns what of the row is wanted, the newest first. Returns the entries,
/// the newest first, and the sequence at which reading stopped; 0 is the beginning of the history.
fn before<T: Send + 'static>(
    view: StateView,
    id: SessionId,
    mut end: u64,
    size: usize,
    wanted: impl Fn(&Call<'_>, u64, &History) -> Vec<T> + Send + 'static,
) -> impl FnMut(&Call<'_>, &mut Share) -> Result<ControlFlow<Looked<T>>, Refusal> {
    let (mut found, mut looked) = (Vec::new(), 0);
    move |call, share| {
        let prefix = history_prefix(call.caller.tenant, id);
        // History is kept oldest first, so it is read piece by piece from its end.
        while end > 0 && found.len() < size && looked < LOOKED_AT_MAX {
            let rows = piece(&view, &prefix, end).map_err(unreadable)?;
            looked += rows.len();
            end = end.saturating_sub(PIECE);
            for (first, row) in rows.into_iter().rev() {
                let Row::History(history) = &*row else { continue };
                found.extend(wanted(call, first, history));
                if found.len() >= size {
                    end = first;
                    break;
                }
            }
            match share.pace()? {
                Pace::On => {}
                Pace::Rests => return Ok(ControlFlow::Continue(())),
                Pace::Ends => break,
            }
        }
        Ok(ControlFlow::Break((mem::take(&mut found), end)))
    }
}

/// Sequences of history that are read at once.
const PIECE: u64 = 512;

/// The rows of history that begin within the last [`PIECE`] sequences before `end`, each with the sequence before its
/// first event.
fn piece(view: &StateView, prefix: &[u8], end: u64) -> Result<Vec<(u64, Arc<Row>)>, ViewError> {
    let begin = end.saturating_sub(PIECE);
    let after = begin.checked_sub(1).map(|before| [prefix, &before.to_be_bytes()].concat());
    let mut rows = Vec::new();
    view.scan(prefix, after.as_deref(), &mut |key, row| match sequence_of(key) {
        Some(first) if first < end => {
            rows.push((first, Arc::clone(row)));
            ControlFlow::Continue(())
        }
        Some(_) | None => ControlFlow::Break(()),
    })?;
    Ok(rows)
}

fn records<'a>(
    call: &'a Call<'_>,
    id: SessionId,
    first: u64,
    history: &'a History,
) -> impl Iterator<Item = v1::DecisionRecord> + 'a {
    history.events.iter().zip(first + 1..).filter_map(move |(event, sequence)| {
        convert::events::decision(&call.caller, id, sequence, history, event)
    })
}
