//! Checks whether a token was given to anybody, before a mail with it causes DNS queries.

use switchward_engine::gate_view;
use switchward_state::approval::{MailKey, MailToken, Way};
use switchward_state::{Key, Row, View as _};

use crate::api::{Api, unreadable};
use crate::error::Refusal;

/// What is known about the sender of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was made for them, or for somebody else at a gate that asks them as well.
    Asked,
    /// It was made for somebody else, or for nobody.
    Unknown,
}

/// Returns whether a token was made for the person with this address, or for others at a gate that asks this person too.
///
/// # Errors
/// The shard cannot be read.
pub(super) fn of(api: &Api, token: &MailToken, from: &str) -> Result<Origin, Refusal> {
    let view = api.cluster.shard_of(token.session.bucket()).read_stale();
    let row = view.row(&Key::tenancy(token.tenant)).map_err(unreadable)?;
    let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(Origin::Unknown) };
    let keys = tenancy.mail_keys(view.ring(), token.tenant);
    if made(&keys, token, from) {
        return Ok(Origin::Asked);
    }
    let gate = view.consistent(|rows| gate_view(rows, token.tenant, token.session, token.about));
    let Some(gate) = gate.map_err(unreadable)? else { return Ok(Origin::Unknown) };
    let to = gate.open().gate.asked.as_ref().map(|asked| asked.to.as_slice()).unwrap_or_default();
    let asked = to.iter().any(|one| one.eq_ignore_ascii_case(from));
    let known = asked && to.iter().any(|one| made(&keys, token, one));
    Ok(if known { Origin::Asked } else { Origin::Unknown })
}

fn made(keys: &[MailKey], token: &MailToken, person: &str) -> bool {
    keys.iter().any(|key| key.made(token, Way::Reply, person))
}
