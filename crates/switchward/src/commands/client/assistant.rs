//! `switchward assistant`.

use switchward_api::v1;

use super::list::{LIMIT_DEFAULT, follow, more};
use super::show;
use super::talk::Talk;
use crate::args::{AssistantCommand, DeleteAssistant, GetAssistant, Page, PutAssistant, files};
use crate::exit::Exit;
use crate::output::Table;

pub(super) async fn run(talk: &Talk, what: AssistantCommand) -> Result<(), Exit> {
    match what {
        AssistantCommand::Put(put) => self::put(talk, put).await,
        AssistantCommand::Get(get) => self::get(talk, get).await,
        AssistantCommand::List(page) => list(talk, page).await,
        AssistantCommand::Delete(delete) => self::delete(talk, delete).await,
    }
}

async fn put(talk: &Talk, put: PutAssistant) -> Result<(), Exit> {
    let text = files::value(put.instructions.as_deref().unwrap_or_default())?;
    let instructions =
        String::from_utf8(text).map_err(|_| Exit::usage("--instructions is not UTF-8 text"))?;
    let assistant = v1::Assistant {
        name: put.assistant.clone(),
        workflows: put.workflows,
        instructions,
        ..v1::Assistant::default()
    };
    let request = v1::PutAssistantRequest { assistant: Some(assistant), request_id: talk.request_id() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.assistants.put_assistant(request).await });
    let reply = reply.await?;
    let assistant = reply.assistant.clone().unwrap_or_default();
    talk.printer.message("PutAssistantResponse", &reply, || show::assistant(&assistant))?;
    let name = show::id(&assistant.name);
    talk.printer.advice(&format!("switchward start --assistant {name} --message 'TEXT'"));
    Ok(())
}

async fn get(talk: &Talk, get: GetAssistant) -> Result<(), Exit> {
    let request = v1::GetAssistantRequest { name: get.assistant, ..Default::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.assistants.get_assistant(request).await });
    let reply = reply.await?;
    let assistant = reply.assistant.clone().unwrap_or_default();
    talk.printer.message("GetAssistantResponse", &reply, || show::assistant(&assistant))
}

async fn list(talk: &Talk, page: Page) -> Result<(), Exit> {
    let fetch = async |page_size, page_token| {
        let request =
            v1::ListAssistantsRequest { parent: String::new(), page_size, page_token, ..Default::default() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.assistants.list_assistants(request).await });
        reply.await.map(|reply| (reply.assistants, reply.next_page_token))
    };
    let (assistants, next_page_token) = follow(&page, LIMIT_DEFAULT, fetch).await?;
    let reply = v1::ListAssistantsResponse { assistants, next_page_token };
    let text = || {
        let mut table = Table::new(&["ASSISTANT", "WORKFLOWS", "UPDATE_TIME"]);
        for assistant in &reply.assistants {
            table.row([
                show::id(&assistant.name).to_owned(),
                assistant.workflows.join(", "),
                show::time(assistant.update_time.as_ref()),
            ]);
        }
        table.text("no assistants")
    };
    talk.printer.list("ListAssistantsResponse", &reply, "Assistant", &reply.assistants, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn delete(talk: &Talk, delete: DeleteAssistant) -> Result<(), Exit> {
    if !delete.yes {
        talk.sure(&format!("deleting {}", delete.assistant))?;
    }
    let request = v1::DeleteAssistantRequest {
        name: delete.assistant.clone(),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.assistants.delete_assistant(request).await });
    let reply = reply.await?;
    let text = || crate::output::card(&[("deleted", crate::output::clean(&delete.assistant))]);
    talk.printer.message("DeleteAssistantResponse", &reply, text)
}
