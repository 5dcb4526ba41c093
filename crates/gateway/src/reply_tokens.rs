//! Reply tokens at the door: who brings one may record events in the state that it was made for, and nothing else.

use std::borrow::Cow;
use switchward_api::v1;
use switchward_engine::{Actor, Key, ReplyToken, Role, Row, View as _};
use tonic::metadata::MetadataMap;

use crate::auth::{self, Caller, roles};
use crate::door::{Call, Door, refusal, unreadable};
use crate::error::Refusal;
use crate::names;

/// What a token begins with.
const PREFIX: &str = "swr_";
/// What a reader is shown in the place of a token that is not for him.
const VEILED: &str = "swr_…";
/// Who is said to have caused what came with a token.
const SUBJECT: &str = "reply_token";

/// The token that a request is made with, where it is made with one and with no key.
pub(crate) fn of(metadata: &MetadataMap) -> Option<Result<ReplyToken, Refusal>> {
    let credential = auth::credential(metadata)?;
    credential.starts_with(PREFIX).then(|| credential.parse().map_err(|_| auth::invalid()))
}

impl Door {
    /// The call of whoever holds this token.
    ///
    /// # Errors
    /// CREDENTIAL_INVALID for one that was not made for its session; the state that it was made for is not looked at.
    pub(crate) async fn call_by_token(
        &self,
        metadata: &MetadataMap,
        token: &ReplyToken,
    ) -> Result<Call<'_>, Refusal> {
        let tenant = {
            let view = self.cluster.catalogue().read_stale();
            match view.row(&Key::tenant(&token.tenant)).map_err(unreadable)?.as_deref() {
                Some(Row::Tenant(tenant)) => tenant.clone(),
                Some(_) | None => return Err(auth::invalid()),
            }
        };
        let view = self.cluster.shard_of(token.session.bucket()).read().await.map_err(refusal)?;
        let row = view.row(&Key::session(tenant.id, token.session)).map_err(unreadable)?;
        let Some(Row::Session(session)) = row.as_deref() else { return Err(auth::invalid()) };
        if !session.reply_key.as_ref().is_some_and(|key| key.made(token)) {
            return Err(auth::invalid());
        }
        let caller = Caller {
            tenant: tenant.id,
            tenant_name: tenant.name,
            settings: tenant.settings,
            actor: Actor { subject: SUBJECT.into(), role: Role::Agent },
            key_id: String::new(),
        };
        Ok(self.call_of(caller, metadata))
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

/// What the holder of a token is told of the session: where it stands, and nothing of what it holds.
pub(crate) fn told(session: v1::Session) -> v1::Session {
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

/// Whether this caller may see reply tokens: who may record events anyway, and who does the work of sending them out.
pub(crate) fn may_see(caller: &Caller) -> bool {
    roles::CALL.contains(&caller.actor.role)
}

/// A text with its reply tokens, or without where the caller may not see them.
pub(crate) fn veiled<'t>(caller: &Caller, text: &'t str) -> Cow<'t, str> {
    if may_see(caller) || !text.contains(PREFIX) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(PREFIX) {
        let (before, token) = rest.split_at(at);
        let end =
            token.find(|c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c))).unwrap_or(token.len());
        out.push_str(before);
        out.push_str(VEILED);
        rest = &token[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The same for a value.
pub(crate) fn veiled_value(caller: &Caller, value: &mut prost_types::Value) {
    use prost_types::value::Kind;
    match &mut value.kind {
        Some(Kind::StringValue(text)) => {
            if let Cow::Owned(veiled) = veiled(caller, text) {
                *text = veiled;
            }
        }
        Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(|one| veiled_value(caller, one)),
        Some(Kind::StructValue(inner)) => veiled_struct(caller, inner),
        Some(Kind::NullValue(_) | Kind::NumberValue(_) | Kind::BoolValue(_)) | None => {}
    }
}

/// The same for an object.
pub(crate) fn veiled_struct(caller: &Caller, object: &mut prost_types::Struct) {
    if !may_see(caller) {
        object.fields.values_mut().for_each(|value| veiled_value(caller, value));
    }
}

/// The token of where a session stands, for a caller who may record events.
pub(crate) fn shown(caller: &Caller, token: Option<ReplyToken>) -> String {
    token
        .filter(|_| roles::DRIVE.contains(&caller.actor.role))
        .map(|token| token.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_engine::Settings;
    use switchward_machine::TenantId;

    fn caller(role: Role) -> Caller {
        Caller {
            tenant: TenantId(1),
            tenant_name: "acme".into(),
            settings: Settings::default(),
            actor: Actor { subject: "s".into(), role },
            key_id: String::new(),
        }
    }

    #[test]
    fn who_may_not_send_events_sees_no_token() {
        let text = "To swr_acme.ses_0.1.2.0a, and (swr_acme.ses_0.1.3.0b) Ä swr_";
        assert_eq!(veiled(&caller(Role::Author), text), "To swr_…, and (swr_…) Ä swr_…");
        assert_eq!(veiled(&caller(Role::Approver), text), "To swr_…, and (swr_…) Ä swr_…");
        for role in [Role::Agent, Role::Operator, Role::Admin, Role::Worker] {
            assert_eq!(veiled(&caller(role), text), text);
        }
    }
}
