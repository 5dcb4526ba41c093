//! Reply tokens: the holder of one may record events in the state that it was made for, and nothing else. Operators and
//! admins can read them; for everybody else [`crate::hide`] masks them.

use switchward_api::v1;
use switchward_query::{CheckReplyToken, GetTenant};
use switchward_state::Actor;
use switchward_state::catalogue::Role;
use switchward_state::session::ReplyToken;
use tonic::metadata::MetadataMap;

use crate::api::{Api, Call};
use crate::auth::{Caller, roles};
use crate::error::Refusal;
use crate::{auth, names, stale};

/// The prefix of a token.
pub(crate) const PREFIX: &str = "swr_";
/// The prefix of the mark that replaces a token in stored texts.
pub(crate) const MARK: &str = "swp_";
/// The actor of calls with a token.
const SUBJECT: &str = "reply_token";

/// Returns the token that a credential is, if it is one and no key.
pub(crate) fn of(credential: Option<&str>) -> Option<Result<ReplyToken, Refusal>> {
    let credential = credential?;
    credential.starts_with(PREFIX).then(|| credential.parse().map_err(|_| auth::invalid()))
}

impl Api {
    /// Returns the call of this token's holder.
    ///
    /// # Errors
    /// As [`Api::caller_by_token`].
    pub(crate) async fn call_by_token(
        &self,
        metadata: &MetadataMap,
        token: &ReplyToken,
    ) -> Result<Call<'_>, Refusal> {
        Ok(self.call_of(self.caller_by_token(token).await?, metadata))
    }

    /// Returns this token's holder as a caller.
    ///
    /// # Errors
    /// CREDENTIAL_INVALID for one that was not made for its session; the state that it was made for is not looked at.
    pub(crate) async fn caller_by_token(&self, token: &ReplyToken) -> Result<Caller, Refusal> {
        let tenant = stale::find(&self.cluster, &GetTenant { name: token.tenant.clone() }).await?;
        let tenant = tenant.filter(|tenant| tenant.deleted.is_none()).ok_or_else(auth::invalid)?;
        if !self.ask(&CheckReplyToken { tenant: tenant.id, token: token.clone() }).await? {
            return Err(auth::invalid());
        }
        Ok(Caller {
            tenant: tenant.id,
            tenant_name: tenant.name.clone(),
            settings: tenant.settings,
            actor: Actor { subject: SUBJECT.into(), role: Role::Integration },
            key_id: String::new(),
        })
    }
}

/// The name of the session that a token is for; a request that names another one is answered as if that did not exist.
///
/// # Errors
/// NOT_FOUND.
pub(crate) fn session(caller: &Caller, token: &ReplyToken, name: &str) -> Result<String, Refusal> {
    let own = names::of_session(caller, token.session);
    let same = name.is_empty() || names::session(caller, "name", name)? == token.session;
    if same { Ok(own) } else { Err(Refusal::not_found("session", name)) }
}

/// Returns the session as this caller may see it: all of it, or its state only. Callers that only report external events
/// see nothing of what the session holds.
pub(crate) fn shown_to(caller: &Caller, session: v1::Session) -> v1::Session {
    if caller.actor.role != Role::Integration {
        return session;
    }
    let v1::Session { name, status, status_word, reason, at, sequence, update_time, end_time, .. } = session;
    v1::Session {
        name,
        status,
        status_word,
        reason,
        at,
        sequence,
        update_time,
        end_time,
        ..v1::Session::default()
    }
}

/// Returns true if a caller of this role may read reply tokens: the roles that may record events with their key alone.
pub(crate) fn may_read(role: Role) -> bool {
    roles::OPERATE.contains(&role)
}

/// The token of a session's current state, for a caller who may read it.
pub(crate) fn shown(caller: &Caller, token: Option<&ReplyToken>) -> String {
    token.filter(|_| may_read(caller.actor.role)).map(|token| token.to_string()).unwrap_or_default()
}
