//! Activating, retiring, archiving and deleting definitions.

use switchward_api::v1;

use super::show;
use super::talk::Talk;
use crate::args::{Activate, Archive, Delete, Retire, Unarchive};
use crate::exit::Exit;
use crate::output::{card, clean};

pub(super) async fn activate(talk: &Talk, activate: Activate) -> Result<(), Exit> {
    let request = v1::ActivateVersionRequest {
        name: format!("{}/versions/{}", activate.definition, activate.version),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.activate_version(request).await });
    let reply = reply.await?;
    let definition = reply.definition.clone().unwrap_or_default();
    let text = || show::findings(&reply.findings) + &show::definition(&definition);
    talk.printer.message("ActivateVersionResponse", &reply, text)
}

pub(super) async fn retire(talk: &Talk, retire: Retire) -> Result<(), Exit> {
    let request = v1::RetireVersionRequest {
        name: format!("{}/versions/{}", retire.definition, retire.version),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.retire_version(request).await });
    let reply = reply.await?;
    let version = reply.version.clone().unwrap_or_default();
    talk.printer.message("RetireVersionResponse", &reply, || show::version(&version))
}

pub(super) async fn archive(talk: &Talk, archive: Archive) -> Result<(), Exit> {
    let request = v1::ArchiveDefinitionRequest {
        name: archive.definition.clone(),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.archive_definition(request).await });
    let reply = reply.await?;
    let definition = reply.definition.clone().unwrap_or_default();
    talk.printer.message("ArchiveDefinitionResponse", &reply, || show::definition(&definition))?;
    talk.printer.advice(&format!("switchward delete {} --dry-run", archive.definition));
    Ok(())
}

pub(super) async fn unarchive(talk: &Talk, unarchive: Unarchive) -> Result<(), Exit> {
    let request = v1::UnarchiveDefinitionRequest {
        name: unarchive.definition.clone(),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.unarchive_definition(request).await });
    let reply = reply.await?;
    let definition = reply.definition.clone().unwrap_or_default();
    talk.printer.message("UnarchiveDefinitionResponse", &reply, || show::definition(&definition))
}

pub(super) async fn delete(talk: &Talk, delete: Delete) -> Result<(), Exit> {
    let named = match &delete.version {
        Some(version) => format!("{}/versions/{version}", delete.definition),
        None => delete.definition.clone(),
    };
    if !delete.yes && !delete.dry_run {
        talk.sure(&format!("deleting {named}"))?;
    }
    let label = if delete.dry_run { "deletable" } else { "deleted" };
    let text = || card(&[(label, clean(&named))]);
    let (name, validate_only, request_id) = (named.clone(), delete.dry_run, talk.request_id());
    let expected_etag = String::new();
    if delete.version.is_some() {
        let request = v1::DeleteVersionRequest { name, expected_etag, validate_only, request_id };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.definitions.delete_version(request).await });
        talk.printer.message("DeleteVersionResponse", &reply.await?, text)
    } else {
        let request = v1::DeleteDefinitionRequest { name, expected_etag, validate_only, request_id };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.definitions.delete_definition(request).await });
        talk.printer.message("DeleteDefinitionResponse", &reply.await?, text)
    }
}
