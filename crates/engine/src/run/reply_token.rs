//! Checks reply tokens, and finds the run that waits for one.

use switchward_machine::RunId;
use switchward_state::session::ReplyToken;
use switchward_state::{Reason, Rejection};

use crate::turn::{Stop, Turn};

/// Refuses a token that was not made for this session.
pub(crate) fn check(turn: &Turn<'_, '_>, token: &ReplyToken) -> Result<(), Stop> {
    let named = turn.session()?.reply_tenant.as_ref() == Some(&token.tenant);
    let own = named && turn.mail_keys()?.iter().any(|key| key.made_reply(token));
    if own && token.session == turn.session_id()? {
        return Ok(());
    }
    Err(Rejection::new(Reason::CredentialInvalid, "the reply token is not valid").into())
}

/// The run that a token names, if it still stands in the node that the token was made for: the active leaf, or one that
/// waits for it.
pub(crate) fn addressed(turn: &Turn<'_, '_>, leaf: RunId, token: &ReplyToken) -> Result<RunId, Stop> {
    let mut next = Some(leaf);
    while let Some(run) = next {
        let at = turn.run(run)?;
        if run == token.run && at.entry == token.entry {
            return Ok(run);
        }
        next = at.parent.map(|parent| parent.run);
    }
    Err(Rejection::new(Reason::StateMismatch, "the state that the reply token was made for was left").into())
}
