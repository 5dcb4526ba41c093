//! AssistantService: stores the instructions of assistants and the workflows that each may start.

use switchward_api::v1::{self, assistant_service_server::AssistantService};
use switchward_formats::{Format, UseAs};
use switchward_query::{GetAssistant, GetDefinition, ListAssistants, Source};
use switchward_state::catalogue::{
    Assistant, AssistantSummary, CatalogueCommand, DeleteAssistant, PutAssistant,
};
use switchward_state::limits::WORKFLOWS_MAX;
use switchward_state::{Body, Reply, Scope, SharedRow};
use tonic::{Request, Response, Status};

use crate::api::{Api, Call, request_id};
use crate::auth::{Caller, roles};
use crate::convert::timestamp;
use crate::error::Refusal;
use crate::mask::Mask;
use crate::names;
use crate::pages::{Page, order};
use crate::refusals::{named, odd, unreadable};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl AssistantService for Api {
    async fn put_assistant(
        &self,
        request: Request<v1::PutAssistantRequest>,
    ) -> Answered<v1::PutAssistantResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "PutAssistant", &message)?;
        let Some(requested) = message.assistant else {
            return Err(Refusal::field("assistant", "is required").into());
        };
        let name = names::assistant(&call.caller, "assistant.name", &requested.name)?.to_owned();
        let workflows = workflows(&call.caller, &requested.workflows)?;
        let (instructions, etag) = (requested.instructions, requested.etag);
        let put = PutAssistant { name, workflows, instructions, etag };
        let body = async {
            check_workflows(&call, &put.workflows).await?;
            Ok(Body::Catalogue(CatalogueCommand::PutAssistant(put.clone())))
        };
        let reply = call.execute_prepared(Scope::Catalogue, request, body).await?;
        let Reply::Assistant(summary) = reply else { return Err(odd(&reply).into()) };
        let PutAssistant { name, workflows, instructions, .. } = put;
        let said = AssistantFields { name: &name, workflows, instructions };
        Ok(Response::new(v1::PutAssistantResponse { assistant: Some(shown(&call.caller, said, summary)) }))
    }

    async fn get_assistant(
        &self,
        request: Request<v1::GetAssistantRequest>,
    ) -> Answered<v1::GetAssistantResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Assistant", message.read_mask)?;
        let name = names::assistant(&call.caller, "name", &message.name)?;
        let row = assistant(&call, name, &message.name).await?;
        let shown = mask.keep(of_assistant(&call.caller, &row));
        Ok(Response::new(v1::GetAssistantResponse { assistant: Some(shown) }))
    }

    async fn list_assistants(
        &self,
        request: Request<v1::ListAssistantsRequest>,
    ) -> Answered<v1::ListAssistantsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("Assistant", message.read_mask)?;
        order(&message.order_by, "name")?;
        let list = ["assistants", call.caller.tenant_name.as_str()];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let found = call.ask(&ListAssistants { tenant: call.caller.tenant, bounds: page.bounds() }).await?;
        let (assistants, next_page_token) = page.shown(&found, |row| of_assistant(&call.caller, row));
        let assistants = mask.keep_each(assistants);
        Ok(Response::new(v1::ListAssistantsResponse { assistants, next_page_token }))
    }

    async fn delete_assistant(
        &self,
        request: Request<v1::DeleteAssistantRequest>,
    ) -> Answered<v1::DeleteAssistantResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "DeleteAssistant", &message)?;
        let name = names::assistant(&call.caller, "name", &message.name)?.to_owned();
        let body = Body::Catalogue(CatalogueCommand::DeleteAssistant(DeleteAssistant {
            name,
            etag: message.expected_etag,
        }));
        let reply = call.execute_in_own_scope(request, body).await;
        reply.map_err(|refusal| named(refusal, "assistant", &message.name))?;
        Ok(Response::new(v1::DeleteAssistantResponse {}))
    }
}

/// The field of a workflow.
fn field(at: usize) -> String {
    format!("assistant.workflows[{at}]")
}

/// Checks the requested workflows and returns their names.
fn workflows(caller: &Caller, requested: &[String]) -> Result<Vec<String>, Refusal> {
    if requested.len() > WORKFLOWS_MAX {
        let message = format!("must hold at most {WORKFLOWS_MAX} definitions");
        return Err(Refusal::field("assistant.workflows", message));
    }
    let mut workflows: Vec<String> = Vec::new();
    for (at, name) in requested.iter().enumerate() {
        let name = names::definition(caller, &field(at), name)?;
        if workflows.iter().any(|before| before == name) {
            return Err(Refusal::field(field(at), format!("{name:?} is in the list twice")));
        }
        workflows.push(name.to_owned());
    }
    Ok(workflows)
}

/// Checks that those of these workflows that exist have a format whose definitions take a user's messages.
async fn check_workflows(call: &Call<'_>, workflows: &[String]) -> Result<(), Refusal> {
    let catalogue = call.api.reader(Source::Catalogue).await?;
    for (at, name) in workflows.iter().enumerate() {
        let query = GetDefinition { tenant: call.caller.tenant, name: name.clone() };
        let Some(row) = catalogue.answer(&query).map_err(unreadable)? else { continue };
        if Format::named(&row.format).and_then(Format::use_as) != Some(UseAs::Workflow) {
            let message = format!("{name:?} takes no messages of a user, so it cannot be a workflow here");
            return Err(Refusal::field(field(at), message));
        }
    }
    Ok(())
}

/// Returns the assistant with this name.
///
/// # Errors
/// NOT_FOUND, with the name from the request.
pub(super) async fn assistant(
    call: &Call<'_>,
    name: &str,
    asked: &str,
) -> Result<SharedRow<Assistant>, Refusal> {
    let found = call.ask(&GetAssistant { tenant: call.caller.tenant, name: name.to_owned() }).await?;
    found.ok_or_else(|| Refusal::not_found("assistant", asked))
}

fn of_assistant(caller: &Caller, row: &Assistant) -> v1::Assistant {
    let (workflows, instructions) = (row.workflows.clone(), row.instructions.clone());
    shown(caller, AssistantFields { name: &row.name, workflows, instructions }, AssistantSummary::of(row))
}

/// What an author says of an assistant.
struct AssistantFields<'a> {
    name: &'a str,
    workflows: Vec<String>,
    instructions: String,
}

fn shown(caller: &Caller, said: AssistantFields<'_>, summary: AssistantSummary) -> v1::Assistant {
    v1::Assistant {
        name: names::of_assistant(caller, said.name),
        workflows: said.workflows,
        instructions: said.instructions,
        create_time: Some(timestamp(summary.created)),
        update_time: Some(timestamp(summary.updated)),
        etag: summary.etag,
    }
}
