//! Definitions and their versions, and the machines that shards know.

use switchward_state::catalogue::{
    ActivateVersion, CatalogueEvent, Definition, Deploy, Finding, InstallMachine, RetireVersion, Version,
    VersionFact, VersionSummary,
};
use switchward_state::delivery::{EventSubject, PublishedType};
use switchward_state::limits::VERSIONS_MAX;
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply, ViewError};

use crate::catalogue::archive_definition::check_not_archived;
use crate::delivery::tenant_outbox::publish;
use crate::run::callees::check_callees;
use crate::turn::{Stop, Turn, check_etag};

/// Publishes a definition. A known name gets its next version; the same files are the version that they were.
pub(crate) fn deploy(turn: &mut Turn<'_, '_>, deploy: &Deploy) -> Result<Reply, Stop> {
    let tenant = turn.tenant();
    let row = turn.rows.definition_at(&Key::definition(tenant, &deploy.name))?;
    let latest = row.as_ref().map_or(0, |row| row.latest);
    let known = row.filter(|row| row.deleted.is_none());
    let active = known.as_ref().and_then(|known| known.active);
    known.as_ref().map_or(Ok(()), |known| check_not_archived(known))?;
    let before =
        turn.rows.source_at(&Key::source(tenant, &deploy.name, deploy.source))?.map(|number| *number);
    if let Some(number) = before.filter(|_| deploy.activate)
        && known.as_ref().is_some_and(|known| known.retired(number).is_some())
    {
        let message = format!(
            "these are the bytes of version {number}, which is retired; activate it by its number to use it again"
        );
        return Err(Rejection::new(Reason::VersionRetired, message).fact("version", number).into());
    }
    if let Some(known) = known.as_ref().filter(|known| known.format != deploy.format) {
        let message = format!("{} is a {} definition and stays one", deploy.name, known.format);
        return Err(Rejection::new(Reason::StateMismatch, message).into());
    }
    check_etag("definition", &deploy.etag, known.as_ref().map(|known| known.etag()))?;
    drop(known);
    if deploy.activate {
        check_callees(turn.rows, tenant, &deploy.name, &deploy.machine)??;
    }
    let findings = findings(turn, deploy)?;
    let number = match before {
        Some(number) => number,
        None if latest >= VERSIONS_MAX => {
            return Err(
                Rejection::new(Reason::QuotaExceeded, format!("there are {VERSIONS_MAX} versions")).into()
            );
        }
        None => {
            let number = latest + 1;
            turn.emit(CatalogueEvent::VersionDeployed {
                name: deploy.name.clone(),
                format: deploy.format.clone(),
                version: version(turn, deploy, number),
                machine: deploy.machine.clone(),
            })?;
            publish(turn, PublishedType::DefinitionDeployed, subject(&deploy.name, number))?;
            number
        }
    };
    if deploy.activate && active != Some(number) {
        turn.emit(VersionFact::Activated { name: deploy.name.clone(), number })?;
        publish(turn, PublishedType::DefinitionActivated, subject(&deploy.name, number))?;
    }
    let (name, created) = (deploy.name.clone(), before.is_none());
    Ok(Reply::Version { summary: summary(turn, &name, number)?, name, number, created, findings })
}

/// What the author of a new version is informed of: of the definitions that it calls, about those that the catalogue lacks or
/// has archived.
fn findings(turn: &Turn<'_, '_>, deploy: &Deploy) -> Result<Vec<Finding>, ViewError> {
    let mut findings = Vec::with_capacity(deploy.findings.len());
    for finding in &deploy.findings {
        let holds = match (&finding.lacking, &finding.archived) {
            (Some(name), _) => turn.rows.definition(turn.tenant(), name)?.is_none(),
            (None, Some(name)) => {
                turn.rows.definition(turn.tenant(), name)?.is_some_and(|known| known.archived.is_some())
            }
            (None, None) => true,
        };
        if holds {
            findings.push(finding.clone());
        }
    }
    Ok(findings)
}

/// A version as it is now.
fn summary(turn: &Turn<'_, '_>, name: &str, number: u32) -> Result<Box<VersionSummary>, ViewError> {
    let definition = turn.rows.definition(turn.tenant(), name)?;
    let version = turn.rows.version_at(&Key::version(turn.tenant(), name, number))?;
    let (Some(definition), Some(version)) = (definition, version) else {
        return Err(ViewError(format!("there is no row of {name}@{number}")));
    };
    Ok(Box::new(VersionSummary::of(&definition, &version)))
}

/// The reply with the definition of this name as it is now.
pub(crate) fn reply(turn: &Turn<'_, '_>, name: &str) -> Result<Reply, Stop> {
    let row = turn.rows.definition(turn.tenant(), name)?;
    let row = row.ok_or_else(|| ViewError(format!("there is no row of the definition {name}")))?;
    Ok(Reply::Definition(Box::new(Definition::clone(&row))))
}

fn version(turn: &Turn<'_, '_>, deploy: &Deploy, number: u32) -> Version {
    Version {
        number,
        source: deploy.source,
        machine: deploy.machine.digest(),
        files: deploy.files.clone(),
        created: turn.now(),
        by: turn.command.actor.subject.clone(),
    }
}

/// New sessions use another version from now on; live ones keep theirs. One that was retired is used again.
pub(crate) fn activate(turn: &mut Turn<'_, '_>, activate: &ActivateVersion) -> Result<Reply, Stop> {
    let (name, number) = (&activate.name, activate.version);
    let version = turn.rows.version_at(&Key::version(turn.tenant(), name, number))?;
    let missing = || Rejection::new(Reason::NotFound, "there is no such version");
    let digest = version.map(|version| version.machine).ok_or_else(missing)?;
    if let Some(machine) = turn.rows.machine(turn.tenant(), digest)? {
        check_callees(turn.rows, turn.tenant(), name, &machine)??;
    }
    let known = turn.rows.definition(turn.tenant(), name)?;
    check_etag("definition", &activate.etag, known.as_ref().map(|known| known.etag()))?;
    known.as_ref().map_or(Ok(()), |known| check_not_archived(known))?;
    let active = known.and_then(|known| known.active);
    if active != Some(number) {
        turn.emit(VersionFact::Activated { name: name.clone(), number })?;
        publish(turn, PublishedType::DefinitionActivated, subject(name, number))?;
    }
    reply(turn, name)
}

/// No session starts with a version any more; live ones go on. The one that new sessions use stays.
pub(crate) fn retire(turn: &mut Turn<'_, '_>, retire: &RetireVersion) -> Result<Reply, Stop> {
    let (name, number) = (&retire.name, retire.version);
    let missing = || Rejection::new(Reason::NotFound, "there is no such version");
    let known = turn.rows.definition(turn.tenant(), name)?.ok_or_else(missing)?;
    if turn.rows.version_at(&Key::version(turn.tenant(), name, number))?.is_none() {
        return Err(missing().into());
    }
    check_etag("definition", &retire.etag, Some(known.etag()))?;
    if known.active == Some(number) {
        let message = format!("version {number} is the active one; activate another one first");
        return Err(Rejection::new(Reason::StateMismatch, message).fact("version", number).into());
    }
    if known.retired(number).is_none() {
        let by = turn.command.actor.subject.clone();
        drop(known);
        turn.emit(VersionFact::Retired { name: name.clone(), number, by })?;
        publish(turn, PublishedType::DefinitionRetired, subject(name, number))?;
    }
    let (name, findings) = (name.clone(), Vec::new());
    Ok(Reply::Version { summary: summary(turn, &name, number)?, name, number, created: false, findings })
}

/// What events about a version are about.
fn subject(definition: &str, number: u32) -> EventSubject {
    EventSubject::Version { definition: definition.to_owned(), number }
}

/// Makes a machine known to a shard. Said twice, it changes nothing.
pub(crate) fn install(turn: &mut Turn<'_, '_>, install: &InstallMachine) -> Result<Reply, Stop> {
    if turn.rows.machine(turn.tenant(), install.machine.digest())?.is_none() {
        turn.emit(CatalogueEvent::MachineInstalled { machine: install.machine.clone() })?;
    }
    Ok(Reply::Done)
}
