//! API keys.

use switchward_state::catalogue::{ApiKey, CatalogueEvent, CreateKey, KeySummary, RevokeKey, Role};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply, ViewError};

use crate::turn::{Stop, Turn};

pub(crate) fn create(turn: &mut Turn<'_, '_>, create: &CreateKey) -> Result<Reply, Stop> {
    if turn.rows.api_key_at(&Key::api_key(&create.id))?.is_some() {
        return Err(Rejection::new(Reason::AlreadyExists, "there is a key of this id already").into());
    }
    let tenant = turn.rows.tenant_at(&Key::tenant(&create.tenant_name))?;
    if tenant.is_none_or(|tenant| tenant.id != turn.tenant()) {
        return Err(Rejection::new(Reason::NotFound, "there is no such tenant").into());
    }
    if create.expires.is_some_and(|expires| expires <= turn.now()) {
        let message = "the key would have expired already";
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "expire_time").into());
    }
    let key = ApiKey {
        id: create.id.clone(),
        hash: create.hash,
        tenant: turn.tenant(),
        role: create.role,
        subject: create.subject.clone(),
        display_name: create.display_name.clone(),
        created: turn.now(),
        expires: create.expires,
        revoked: None,
        tenant_name: create.tenant_name.clone(),
    };
    turn.emit(CatalogueEvent::KeyCreated(key))?;
    reply(turn, &create.id)
}

/// Revokes a key of the tenant. Said twice, it changes nothing. The tenant's last admin key that works is not revoked: nobody
/// could make a key again.
pub(crate) fn revoke(turn: &mut Turn<'_, '_>, revoke: &RevokeKey) -> Result<Reply, Stop> {
    let found = turn.rows.api_key_at(&Key::api_key(&revoke.id))?;
    let Some(key) = found.filter(|key| key.tenant == turn.tenant()) else {
        return Err(Rejection::new(Reason::NotFound, "there is no such key").into());
    };
    let revoked = key.revoked.is_some();
    let admin = key.role == Role::Admin && key.works(turn.now());
    drop(key);
    if admin && !turn.rows.has_other_admin(turn.tenant(), &revoke.id, turn.now())? {
        let message = "this is the tenant's last admin key; create another one first";
        return Err(Rejection::new(Reason::StateMismatch, message).fact("key", &revoke.id).into());
    }
    if !revoked {
        turn.emit(CatalogueEvent::KeyRevoked(revoke.id.clone()))?;
    }
    reply(turn, &revoke.id)
}

/// The reply with the key of this id as it is now.
fn reply(turn: &Turn<'_, '_>, id: &str) -> Result<Reply, Stop> {
    let key = turn.rows.api_key_at(&Key::api_key(id))?;
    let key = key.ok_or_else(|| ViewError(format!("there is no row of the key {id}")))?;
    Ok(Reply::Key(Box::new(KeySummary::of(&key))))
}
