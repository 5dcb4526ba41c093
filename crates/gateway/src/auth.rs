//! Who calls: a credential, and what it allows. The tenant comes from here and from nowhere else.

use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use switchward_machine::{Digest, TenantId, Time};
use switchward_query::{GetApiKey, GetTenant, Reader};
use switchward_shard::Cluster;
use switchward_state::catalogue::{ApiKey, Role, Settings, Tenant};
use switchward_state::{Actor, SharedRow};

use crate::error::{Reason, Refusal};
use crate::refusals::{refusal, unreadable};
use crate::stale;

/// A caller, as its credential identifies it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The tenant that the credential opens.
    pub tenant: TenantId,
    /// The name of that tenant, as resource names have it.
    pub tenant_name: String,
    /// The tenant's switches as they are now.
    pub settings: Settings,
    /// Who, and in which role.
    pub actor: Actor,
    /// The credential's public id.
    pub key_id: String,
}

/// A new API key: the part that is stored, and the secret that is shown once.
#[derive(Debug)]
pub struct NewKey {
    /// Its public id.
    pub id: String,
    /// What the caller sends from now on.
    pub secret: String,
    /// The part of it that is stored.
    pub hash: Digest,
}

const PREFIX: &str = "swk_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

impl NewKey {
    /// A key that nobody can guess.
    #[must_use]
    pub fn draw() -> Self {
        let id = hex(&rand::random::<[u8; ID_BYTES]>());
        let secret = hex(&rand::random::<[u8; SECRET_BYTES]>());
        let hash = Digest(Sha256::digest(secret.as_bytes()).into());
        Self { secret: format!("{PREFIX}{id}_{secret}"), id, hash }
    }

    /// Returns a key whose whole secret was drawn elsewhere, such as one from a file; `None` if it does not have the form
    /// that [`NewKey::draw`] gives.
    #[must_use]
    pub fn given(secret: &str) -> Option<Self> {
        let (id, rest) = split(secret)?;
        let hash = Digest(Sha256::digest(rest.as_bytes()).into());
        Some(Self { id: id.to_owned(), secret: secret.to_owned(), hash })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The id and the secret part of a credential.
fn split(credential: &str) -> Option<(&str, &str)> {
    let (id, secret) = credential.strip_prefix(PREFIX)?.split_once('_')?;
    let hex = |text: &str, bytes: usize| {
        text.len() == bytes * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    (hex(id, ID_BYTES) && hex(secret, SECRET_BYTES)).then_some((id, secret))
}

/// Returns true if a credential has the form of an API key. Only the cluster's keys say whether it is one.
pub(crate) fn is_key(credential: &str) -> bool {
    split(credential).is_some()
}

/// One answer for no credential, an unknown, an expired and a revoked one.
pub(crate) fn invalid() -> Refusal {
    Refusal::new(Reason::CredentialInvalid, "send a valid API key as `authorization: Bearer swk_...`")
}

/// The same for what should be a reply token.
pub(crate) fn invalid_token() -> Refusal {
    Refusal::new(Reason::CredentialInvalid, "send a valid reply token, swr_...")
}

/// What a request is made with, of whatever kind.
pub(crate) fn credential(headers: &HeaderMap) -> Option<&str> {
    bearer(headers.get(header::AUTHORIZATION)?)
}

/// The credential in an `authorization` header.
pub(crate) fn bearer(header: &HeaderValue) -> Option<&str> {
    let header = header.to_str().ok()?;
    header.strip_prefix("Bearer ").or_else(|| header.strip_prefix("bearer ")).map(str::trim)
}

/// An API key that is valid, and the tenant that it opens.
pub(crate) struct ValidKey {
    pub(crate) key: SharedRow<ApiKey>,
    pub(crate) tenant: SharedRow<Tenant>,
}

impl ValidKey {
    /// Who calls with it, and for which tenant.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            tenant: self.key.tenant,
            tenant_name: self.key.tenant_name.clone(),
            settings: self.tenant.settings,
            actor: Actor { subject: self.key.subject.clone(), role: self.key.role },
            key_id: self.key.id.clone(),
        }
    }
}

/// What is stored of the secret part of a credential.
fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Returns true if a credential is this key, whether or not the key is valid.
pub(crate) fn opens(credential: Option<&str>, key: &ApiKey) -> bool {
    let same = |secret: &str| bool::from(key.hash.0.ct_eq(&hash_of(secret)));
    credential.and_then(split).is_some_and(|(id, secret)| id == key.id && same(secret))
}

/// The key that a credential is, by the rows of this server: one that another server has created a moment ago may not be
/// known yet.
///
/// # Errors
/// CREDENTIAL_INVALID; SHARD_ELECTING if this server's keys may be out of date.
fn valid_key(cluster: &Cluster, credential: Option<&str>) -> Result<ValidKey, Refusal> {
    let (id, secret) = credential.and_then(split).ok_or_else(invalid)?;
    let hash = hash_of(secret);
    let rows = stale::catalogue(cluster)?;
    let key = key_of(&rows, id)?.ok_or_else(invalid)?;
    let same = bool::from(key.hash.0.ct_eq(&hash));
    if !same || !works(cluster, &key) {
        return Err(invalid());
    }
    let tenant = tenant_of(&rows, &key)?;
    Ok(ValidKey { key, tenant })
}

/// The same; what is not valid by this server's rows is checked once more with everything that was acknowledged before.
///
/// # Errors
/// CREDENTIAL_INVALID; SHARD_ELECTING if this server's keys may be out of date.
pub(crate) async fn confirmed_key(cluster: &Cluster, credential: Option<&str>) -> Result<ValidKey, Refusal> {
    match valid_key(cluster, credential) {
        Err(refused) if refused.reason() == Reason::CredentialInvalid && credential.is_some_and(is_key) => {
            cluster.catalogue().read().await.map_err(refusal)?;
            valid_key(cluster, credential)
        }
        found => found,
    }
}

/// The caller with this credential, by the rows of this server: a key that another server has created a moment ago may not be
/// known yet.
///
/// # Errors
/// CREDENTIAL_INVALID; SHARD_ELECTING if this server's keys may be out of date.
pub(crate) fn caller(cluster: &Cluster, credential: Option<&str>) -> Result<Caller, Refusal> {
    valid_key(cluster, credential).map(|found| found.caller())
}

/// The same; what is not valid by this server's rows is checked once more with everything that was acknowledged before.
///
/// # Errors
/// As [`caller`].
pub(crate) async fn confirmed_caller(cluster: &Cluster, credential: Option<&str>) -> Result<Caller, Refusal> {
    confirmed_key(cluster, credential).await.map(|found| found.caller())
}

/// Returns true if a key works now. The time is read only for one that expires.
pub(crate) fn works(cluster: &Cluster, key: &ApiKey) -> bool {
    key.works(key.expires.map_or(Time(0), |_| cluster.now_or_median()))
}

/// The key of this id, if there is one.
fn key_of(rows: &Reader, id: &str) -> Result<Option<SharedRow<ApiKey>>, Refusal> {
    rows.answer(&GetApiKey { id: id.to_owned() }).map_err(unreadable)
}

/// The tenant that a key opens, unless it is deleted.
///
/// # Errors
/// CREDENTIAL_INVALID if it is deleted.
fn tenant_of(rows: &Reader, key: &ApiKey) -> Result<SharedRow<Tenant>, Refusal> {
    let tenant = rows.answer(&GetTenant { name: key.tenant_name.clone() }).map_err(unreadable)?;
    // One of the same name may have been made after the key's was deleted.
    tenant.filter(|tenant| tenant.id == key.tenant && tenant.deleted.is_none()).ok_or_else(invalid)
}

/// Refuses a caller whose key is no longer valid, or whose tenant is deleted.
///
/// # Errors
/// CREDENTIAL_INVALID; SHARD_ELECTING if this server's keys may be out of date.
pub(crate) fn check_key(cluster: &Cluster, caller: &Caller) -> Result<(), Refusal> {
    let rows = stale::catalogue(cluster)?;
    let key = key_of(&rows, &caller.key_id)?;
    let key = key.filter(|key| works(cluster, key)).ok_or_else(invalid)?;
    tenant_of(&rows, &key).map(drop)
}

impl Caller {
    /// Refuses a call that the credential's role may not make at all.
    ///
    /// # Errors
    /// ROLE_NOT_ALLOWED.
    pub fn allow(self, roles: &[Role]) -> Result<Self, Refusal> {
        if roles.contains(&self.actor.role) {
            return Ok(self);
        }
        let words: Vec<&str> = roles.iter().map(|role| role.word()).collect();
        let role = self.actor.role.word();
        let message =
            format!("a key with the role {role} may not make this call; allowed roles: {}", words.join(", "));
        Err(Refusal::new(Reason::RoleNotAllowed, message).meta("role", role).meta("allowed", words.join(",")))
    }
}

/// Who may make which calls; proto/README.md has the same table.
pub(crate) mod roles {
    use switchward_state::catalogue::Role;

    /// All roles that read. An integration only reports events.
    pub(crate) const ANY: &[Role] =
        &[Role::Agent, Role::Author, Role::Approver, Role::Operator, Role::Admin, Role::Worker];
    /// Who drives sessions.
    pub(crate) const DRIVE: &[Role] = &[Role::Agent, Role::Operator, Role::Admin];
    /// Who relays a user's messages. What an agent relays confirms nothing.
    pub(crate) const SAY: &[Role] = &[Role::Agent, Role::Operator, Role::Admin, Role::Integration];
    /// Who reports events from outside.
    pub(crate) const EVENTS: &[Role] = &[Role::Operator, Role::Admin, Role::Integration];
    /// Who requests and reports tool calls.
    pub(crate) const CALL: &[Role] = &[Role::Agent, Role::Operator, Role::Admin, Role::Worker];
    /// Who does work.
    pub(crate) const WORK: &[Role] = &[Role::Worker, Role::Admin];
    /// Who publishes definitions.
    pub(crate) const PUBLISH: &[Role] = &[Role::Author, Role::Admin];
    /// Who compares versions of definitions.
    pub(crate) const COMPARE: &[Role] = &[Role::Author, Role::Approver, Role::Operator, Role::Admin];
    /// Who may close gates by approving or rejecting.
    pub(crate) const DECIDE: &[Role] = &[Role::Approver, Role::Operator, Role::Admin];
    /// Who looks after sessions.
    pub(crate) const OPERATE: &[Role] = &[Role::Operator, Role::Admin];
    /// Who looks after a tenant.
    pub(crate) const ADMIN: &[Role] = &[Role::Admin];
}
