//! What was decided about the calls of a session, from its history.

use std::mem;
use std::ops::ControlFlow;
use switchward_api::v1;
use switchward_machine::SessionId;
use switchward_query::limits::LOOKED_AT_MAX;
use switchward_query::{GetHistoryBefore, Reader, Source};
use switchward_state::policy::PolicyEvent;
use switchward_state::{Event, History};

use crate::api::Call;
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{Page, decision_named, filter, order, unknown_term};
use crate::refusals::unreadable;
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
    let rows = call.api.reader(Source::session(id)).await?;
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
    let (found, end) = call.look_for(before(rows, query(call, id, end), page.size, wanted)).await?;
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
    let rows = call.api.reader(Source::session(id)).await?;
    let wanted = move |_: &Call<'_>, _: u64, history: &History| {
        let permits = |event: &&Event| {
            matches!(event, Event::Policy(PolicyEvent::CallPermitted { number: Some(_), call, .. })
                if call.call_id == call_id)
        };
        history.events.iter().filter(permits).map(|_| ()).collect()
    };
    let (found, _) = call.look_for(before(rows, query(call, id, sequence), 1, wanted)).await?;
    Ok(!found.is_empty())
}

type Looked<T> = (Vec<T>, u64);

fn query(call: &Call<'_>, session: SessionId, end: u64) -> GetHistoryBefore {
    GetHistoryBefore { tenant: call.caller.tenant, session, end }
}

/// Reads a session's history backwards, one slice a call, until `size` entries are found. `wanted` gets the sequence before
/// the first event of a row, and returns what of the row is wanted, the newest first. Returns the entries, the newest first,
/// and the sequence at which reading stopped; 0 is the beginning of the history.
fn before<T: Send + 'static>(
    rows: Reader,
    mut query: GetHistoryBefore,
    size: usize,
    wanted: impl Fn(&Call<'_>, u64, &History) -> Vec<T> + Send + 'static,
) -> impl FnMut(&Call<'_>, &mut Share) -> Result<ControlFlow<Looked<T>>, Refusal> {
    let (mut found, mut looked) = (Vec::new(), 0);
    move |call, share| {
        // History is kept oldest first, so it is read piece by piece from its end.
        while query.end > 0 && found.len() < size && looked < LOOKED_AT_MAX {
            let piece = rows.answer(&query).map_err(unreadable)?;
            looked += piece.len();
            query.end = query.end.saturating_sub(GetHistoryBefore::REACH);
            for row in piece.iter().rev() {
                found.extend(wanted(call, row.first, &row.history));
                if found.len() >= size {
                    query.end = row.first;
                    break;
                }
            }
            match share.pace()? {
                Pace::On => {}
                Pace::Rests => return Ok(ControlFlow::Continue(())),
                Pace::Ends => break,
            }
        }
        Ok(ControlFlow::Break((mem::take(&mut found), query.end)))
    }
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
