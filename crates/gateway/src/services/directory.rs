//! DirectoryService: stores whom the names of a tenant's directory stand for.

use switchward_api::v1::{self, directory_service_server::DirectoryService};
use switchward_messages::directory_warning;
use switchward_query::GetTenantRecord;
use switchward_state::approval::GateSettings;
use switchward_state::catalogue::{CatalogueCommand, Directory, DirectoryEntry, EventBinding, PutDirectory};
use switchward_state::{Body, Reply};
use tonic::{Request, Response, Status};

use super::start::{quorum, reminders};
use crate::api::{Api, Call, request_id};
use crate::auth::roles;
use crate::error::Refusal;
use crate::mask::Mask;
use crate::refusals::odd;
use crate::{convert, names, sealing};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl DirectoryService for Api {
    async fn put_directory(
        &self,
        request: Request<v1::PutDirectoryRequest>,
    ) -> Answered<v1::PutDirectoryResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "PutDirectory", &message)?;
        let Some(requested) = message.directory else {
            return Err(Refusal::field("directory", "is required").into());
        };
        names::parent(&call.caller, "parent", &message.parent)?;
        let entries = requested.entries.into_iter().enumerate().map(|(at, requested)| entry(at, requested));
        let entries = entries.collect::<Result<_, Refusal>>()?;
        let binding = |one: v1::EventBinding| EventBinding {
            definition: one.definition,
            event_key: one.event_key,
            sources: one.sources,
        };
        let event_bindings = requested.event_bindings.into_iter().map(binding).collect();
        let audience = requested.audience;
        let directory = Directory { entries, audience, event_bindings, ..Directory::default() };
        let key = sealing::mail_key(&call.api.cluster.ring(), call.caller.tenant);
        let body = Body::Catalogue(CatalogueCommand::PutDirectory(PutDirectory {
            directory,
            key,
            etag: requested.etag,
        }));
        let reply = call.execute_in_own_scope(request, body).await?;
        let Reply::Directory(stored) = reply else { return Err(odd(&reply).into()) };
        let warnings = stored.warnings().iter().map(directory_warning).collect();
        Ok(Response::new(v1::PutDirectoryResponse { directory: Some(shown(*stored)), warnings }))
    }

    async fn get_directory(
        &self,
        request: Request<v1::GetDirectoryRequest>,
    ) -> Answered<v1::GetDirectoryResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("Directory", message.read_mask)?;
        let directory = directory_of(&call).await?;
        let warnings = directory.warnings().iter().map(directory_warning).collect();
        let directory = mask.keep(shown(directory));
        Ok(Response::new(v1::GetDirectoryResponse { directory: Some(directory), warnings }))
    }
}

async fn directory_of(call: &Call<'_>) -> Result<Directory, Refusal> {
    let found = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    Ok(found.map(|record| record.directory.clone()).unwrap_or_default())
}

/// Converts an entry; the engine checks its content.
fn entry(at: usize, requested: v1::DirectoryEntry) -> Result<DirectoryEntry, Refusal> {
    let asked = requested.settings.unwrap_or_default();
    let field = |name: &str| format!("directory.entries[{at}].settings.{name}");
    let settings = GateSettings {
        audience: asked.audience,
        quorum: asked.quorum.map(|asked| quorum(&field("quorum"), asked)).transpose()?,
        reminders: asked.reminders.map(|asked| reminders(&field("reminders"), asked)).transpose()?,
        escalation: asked.escalation,
    };
    Ok(DirectoryEntry { name: requested.name, members: requested.members, settings })
}

fn shown(directory: Directory) -> v1::Directory {
    let etag = directory.etag();
    let entry = |entry: DirectoryEntry| v1::DirectoryEntry {
        name: entry.name,
        members: entry.members,
        settings: (!entry.settings.is_empty()).then(|| v1::GateSettings {
            audience: entry.settings.audience,
            quorum: entry.settings.quorum.map(convert::sessions::quorum),
            reminders: entry.settings.reminders.map(convert::sessions::reminders),
            escalation: entry.settings.escalation,
        }),
    };
    let binding = |one: EventBinding| v1::EventBinding {
        definition: one.definition,
        event_key: one.event_key,
        sources: one.sources,
    };
    v1::Directory {
        event_bindings: directory.event_bindings.into_iter().map(binding).collect(),
        entries: directory.entries.into_iter().map(entry).collect(),
        audience: directory.audience,
        etag,
    }
}
