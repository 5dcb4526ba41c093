//! Puts a definition out of use, with all of its versions, and takes it back into use.

use switchward_state::catalogue::{ArchiveDefinition, Definition, VersionFact};
use switchward_state::{ReadRows as _, Reason, Rejection, Reply};

use crate::catalogue::definitions;
use crate::turn::{Stop, Turn, check_etag};

/// No session starts with any of its versions, or sessions start with them again; live ones go on. Repeated, it changes
/// nothing.
pub(crate) fn run(turn: &mut Turn<'_, '_>, archive: &ArchiveDefinition) -> Result<Reply, Stop> {
    let name = &archive.name;
    let known = turn.rows.definition(turn.tenant(), name)?;
    let known = known.ok_or_else(|| Rejection::new(Reason::NotFound, "there is no such definition"))?;
    check_etag("definition", &archive.etag, Some(known.etag()))?;
    let is_archived = known.archived.is_some();
    drop(known);
    match (is_archived, archive.archived) {
        (false, true) => {
            let by = turn.command.actor.subject.clone();
            turn.emit(VersionFact::Archived { name: name.clone(), by })?;
        }
        (true, false) => turn.emit(VersionFact::Unarchived { name: name.clone() })?,
        (true, true) | (false, false) => {}
    }
    definitions::reply(turn, name)
}

/// Refuses what an archived definition is not for.
pub(crate) fn check_not_archived(definition: &Definition) -> Result<(), Rejection> {
    if definition.archived.is_none() {
        return Ok(());
    }
    let name = &definition.name;
    let message = format!("the definition {name} is archived; unarchive it first");
    Err(Rejection::new(Reason::DefinitionArchived, message).fact("definition", name))
}
