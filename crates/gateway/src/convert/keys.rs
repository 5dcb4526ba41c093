//! API keys as messages.

use switchward_api::v1;
use switchward_state::catalogue::KeySummary;

use super::timestamp;
use crate::auth::Caller;
use crate::names;

/// An API key, without its secret.
pub(crate) fn api_key(caller: &Caller, key: &KeySummary) -> v1::ApiKey {
    let role = super::role(key.role);
    v1::ApiKey {
        name: names::of_api_key(caller, &key.id),
        display_name: key.display_name.clone(),
        role: role.into(),
        create_time: Some(timestamp(key.created)),
        expire_time: key.expires.map(timestamp),
        revoke_time: key.revoked.map(timestamp),
        subject: key.subject.clone(),
    }
}
