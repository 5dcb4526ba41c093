//! Deletes a definition, or a version of it, that nothing needs any more. Numbers of versions are not used a second time.

use std::collections::BTreeSet;
use switchward_machine::Digest;
use switchward_state::catalogue::{Definition, DeleteDefinition, DeletedVersion, VersionFact};
use switchward_state::limits::{DELETABLE_BYTES_MAX, DELETABLE_VERSIONS_MAX};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_etag};

/// A version that exists, without its files.
struct Existing {
    version: DeletedVersion,
    machine: Digest,
}

/// Deletes what the command names. Sessions keep the machines that they are pinned to in their own shards.
pub(crate) fn run(turn: &mut Turn<'_, '_>, delete: &DeleteDefinition) -> Result<Reply, Stop> {
    let name = &delete.name;
    let known = turn.rows.definition(turn.tenant(), name)?;
    let known = known.ok_or_else(|| missing("definition"))?;
    check_etag("definition", &delete.etag, Some(known.etag()))?;
    if let Some(number) = delete.version
        && turn.rows.version_at(&Key::version(turn.tenant(), name, number))?.is_none()
    {
        return Err(missing("version").into());
    }
    check_out_of_use(&known, delete.version)?;
    let latest = known.latest;
    drop(known);
    check_tenant_policies(turn, delete)?;
    let (gone, left): (Vec<_>, Vec<_>) = existing(turn, name, latest)?
        .into_iter()
        .partition(|known| delete.version.is_none_or(|number| known.version.number == number));
    let needed: BTreeSet<Digest> = left.iter().map(|known| known.machine).collect();
    let machines: BTreeSet<Digest> = gone.iter().map(|known| known.machine).collect();
    turn.emit(VersionFact::Deleted {
        name: name.clone(),
        versions: gone.into_iter().map(|known| known.version).collect(),
        machines: machines.difference(&needed).copied().collect(),
    })?;
    if delete.version.is_none() {
        let by = turn.command.actor.subject.clone();
        turn.emit(VersionFact::DefinitionDeleted { name: name.clone(), by })?;
    }
    Ok(Reply::Done)
}

fn missing(what: &str) -> Rejection {
    Rejection::new(Reason::NotFound, format!("there is no such {what}"))
}

/// Refuses to delete what sessions may still start with: a definition that is not archived, or a version that is active or
/// not retired.
///
/// # Errors
/// STATE_MISMATCH, or NOT_FOUND for a number that the definition has not reached.
pub fn check_out_of_use(known: &Definition, version: Option<u32>) -> Result<(), Rejection> {
    let name = &known.name;
    let message = match version {
        None if known.archived.is_none() => {
            format!("the definition {name} is not archived; archive it first")
        }
        Some(number) if !(1..=known.latest).contains(&number) => return Err(missing("version")),
        Some(number) if known.active == Some(number) => {
            format!("version {number} of {name} is the active one; activate another one first")
        }
        Some(number) if known.archived.is_none() && known.retired(number).is_none() => {
            format!("version {number} of {name} is not retired; retire it first")
        }
        None | Some(_) => return Ok(()),
    };
    Err(Rejection::new(Reason::StateMismatch, message).fact("definition", name))
}

/// Refuses to delete a policy that is set for the tenant: every shard must have its machine.
fn check_tenant_policies(turn: &Turn<'_, '_>, delete: &DeleteDefinition) -> Result<(), Stop> {
    let record = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let holds = record.is_some_and(|record| {
        let mut policies = record.policies.iter();
        policies.any(|policy| {
            policy.name == delete.name && delete.version.is_none_or(|number| policy.version == number)
        })
    });
    if holds {
        let message = format!("{} is set as a policy of the tenant; remove it there first", delete.name);
        let rejection = Rejection::new(Reason::DefinitionInUse, message).fact("definition", &delete.name);
        return Err(rejection.into());
    }
    Ok(())
}

/// All versions that exist, the oldest first.
fn existing(turn: &Turn<'_, '_>, name: &str, latest: u32) -> Result<Vec<Existing>, Stop> {
    if latest > DELETABLE_VERSIONS_MAX {
        let message = format!(
            "{name} has had more than {DELETABLE_VERSIONS_MAX} versions, so that none can be deleted; archive it instead"
        );
        return Err(Rejection::new(Reason::QuotaExceeded, message).into());
    }
    let (mut found, mut bytes) = (Vec::new(), 0_usize);
    for number in 1..=latest {
        let Some(row) = turn.rows.version_at(&Key::version(turn.tenant(), name, number))? else { continue };
        bytes = bytes.saturating_add(row.files.iter().map(|file| file.bytes.len()).sum());
        if bytes > DELETABLE_BYTES_MAX {
            let message = format!(
                "the versions of {name} have more than {DELETABLE_BYTES_MAX} bytes, so that none can be deleted; archive \
                 it instead"
            );
            return Err(Rejection::new(Reason::QuotaExceeded, message).into());
        }
        let version = DeletedVersion { number, source: row.source };
        found.push(Existing { version, machine: row.machine });
    }
    Ok(found)
}
