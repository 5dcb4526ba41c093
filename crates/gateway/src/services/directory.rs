//! DirectoryService.

use switchward_api::v1;
use switchward_api::v1::directory_service_server::DirectoryService;
use switchward_engine::{
    Body, Directory, DirectoryEntry, EventBinding, Key, MailKey, PutDirectory, Row, Scope,
};
use tonic::{Request, Response, Status};

use crate::auth::roles;
use crate::door::{Call, Door, request_id};
use crate::error::Refusal;
use crate::mask::Mask;
use crate::names;

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl DirectoryService for Door {
    async fn put_directory(
        &self,
        request: Request<v1::PutDirectoryRequest>,
    ) -> Answered<v1::PutDirectoryResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "PutDirectory", &message)?;
        let Some(wish) = message.directory else {
            return Err(Refusal::field("directory", "is required").into());
        };
        names::parent(&call.caller, "parent", &message.parent)?;
        let entry = |entry: v1::DirectoryEntry| DirectoryEntry { name: entry.name, members: entry.members };
        let entries = wish.entries.into_iter().map(entry).collect();
        let binding = |one: v1::EventBinding| EventBinding {
            definition: one.definition,
            event_key: one.event_key,
            sources: one.sources,
        };
        let event_bindings = wish.event_bindings.into_iter().map(binding).collect();
        let directory = Directory { entries, audience: wish.audience, event_bindings };
        let key = MailKey(rand::random());
        let body = Body::PutDirectory(PutDirectory { directory, key, etag: wish.etag });
        call.execute(Scope::Catalogue, request, None, body).await?;
        let directory = directory_of(&call).await?;
        let warnings = directory.odd();
        Ok(Response::new(v1::PutDirectoryResponse { directory: Some(shown(directory)), warnings }))
    }

    async fn get_directory(
        &self,
        request: Request<v1::GetDirectoryRequest>,
    ) -> Answered<v1::GetDirectoryResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("Directory", message.read_mask)?;
        let directory = directory_of(&call).await?;
        let warnings = directory.odd();
        let directory = mask.keep(shown(directory));
        Ok(Response::new(v1::GetDirectoryResponse { directory: Some(directory), warnings }))
    }
}

async fn directory_of(call: &Call<'_>) -> Result<Directory, Refusal> {
    let found = call.catalogued(Key::tenancy_record(call.caller.tenant), |row| {
        if let Row::Tenancy(row) = row { Some(row.directory.clone()) } else { None }
    });
    Ok(found.await?.unwrap_or_default())
}

fn shown(directory: Directory) -> v1::Directory {
    let etag = directory.etag();
    let entry = |entry: DirectoryEntry| v1::DirectoryEntry { name: entry.name, members: entry.members };
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
