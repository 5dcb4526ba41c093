//! The policy documents that are attached to what a session runs: found in the catalogue before it starts.

use switchward_machine::TenantId;
use switchward_state::policy::PinnedPolicy;
use switchward_state::{Key, ReadRows, Reason, Rejection, View, ViewError};

/// The documents of these definitions, each in the version that is active now. It is what a start takes along.
///
/// A document that has no active version is a STATE_MISMATCH: a session must not run without what was attached.
///
/// # Errors
/// A row cannot be read.
pub fn pin_policies(
    catalogue: &dyn View,
    tenant: TenantId,
    definitions: impl IntoIterator<Item = String>,
) -> Result<Result<Vec<PinnedPolicy>, Rejection>, ViewError> {
    let rows: &dyn ReadRows = catalogue;
    let mut names: Vec<String> = definitions.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for of in names {
        let Some(definition) = rows.definition(tenant, &of)? else { continue };
        for name in &definition.policies {
            let policy = rows.definition(tenant, name)?;
            let version = policy.and_then(|policy| policy.active);
            let row = match version {
                Some(number) => rows.version_at(&Key::version(tenant, name, number))?,
                None => None,
            };
            let Some(row) = row else {
                let message =
                    format!("the policy {name}, attached to {of}, has no active version; activate one");
                return Ok(Err(Rejection::new(Reason::StateMismatch, message).fact("policy", name)));
            };
            let (name, version, machine) = (name.clone(), row.number, row.machine);
            found.push(PinnedPolicy { of: of.clone(), name, version, machine });
        }
    }
    Ok(Ok(found))
}
