//! Checks reply tokens, and finds the run that waits for one.

use switchward_machine::RunId;
use switchward_state::session::ReplyToken;
use switchward_state::{Key, ReadRows as _, Reason, Rejection};

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

/// The run that a token names, if it still stands in the node that the token was made for.
pub(crate) fn addressed(turn: &Turn<'_, '_>, token: &ReplyToken) -> Result<RunId, Stop> {
    let run = token.run;
    let at = turn.rows.run_at(&Key::run(turn.tenant(), turn.session_id()?, run))?;
    let same = at.is_some_and(|at| at.entry == token.entry);
    if same && turn.active(&*turn.session()?)?.is_active(run)? {
        return Ok(run);
    }
    Err(Rejection::new(Reason::StateMismatch, "the state that the reply token was made for was left").into())
}
