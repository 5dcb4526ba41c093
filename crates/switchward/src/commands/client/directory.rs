//! Showing and setting who is who.

use serde::Deserialize;
use switchward_api::v1;

use super::talk::Talk;
use crate::args::{DirectoryCommand, PutDirectory, files};
use crate::exit::Exit;
use crate::output::{Table, clean};

/// The file of a directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    entries: Vec<Entry>,
    #[serde(default)]
    audience: Vec<String>,
    #[serde(default)]
    event_bindings: Vec<Binding>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    definition: String,
    event_key: String,
    sources: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    members: Vec<String>,
}

pub(super) async fn run(talk: &Talk, what: DirectoryCommand) -> Result<(), Exit> {
    match what {
        DirectoryCommand::Put(put) => self::put(talk, put).await,
        DirectoryCommand::Get => get(talk).await,
    }
}

async fn put(talk: &Talk, put: PutDirectory) -> Result<(), Exit> {
    let text = files::read(std::path::Path::new(&put.file))?;
    let file: File = serde_json::from_slice(&text)
        .map_err(|error| Exit::usage(format!("{} is no directory: {error}", put.file)))?;
    let entry = |entry: Entry| v1::DirectoryEntry { name: entry.name, members: entry.members };
    let entries = file.entries.into_iter().map(entry).collect();
    let binding = |one: Binding| v1::EventBinding {
        definition: one.definition,
        event_key: one.event_key,
        sources: one.sources,
    };
    let event_bindings = file.event_bindings.into_iter().map(binding).collect();
    let audience = file.audience;
    let directory = v1::Directory { entries, audience, event_bindings, ..v1::Directory::default() };
    let request = v1::PutDirectoryRequest {
        directory: Some(directory),
        request_id: talk.request_id(),
        ..v1::PutDirectoryRequest::default()
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.directory.put_directory(request).await });
    let reply = reply.await?;
    let directory = reply.directory.clone().unwrap_or_default();
    talk.printer.message("PutDirectoryResponse", &reply, || shown(&directory))?;
    reply.warnings.iter().for_each(|line| talk.printer.warn(line));
    Ok(())
}

async fn get(talk: &Talk) -> Result<(), Exit> {
    let request = v1::GetDirectoryRequest::default();
    let reply =
        talk.client.call(request, |mut it, request| async move { it.directory.get_directory(request).await });
    let reply = reply.await?;
    let directory = reply.directory.clone().unwrap_or_default();
    talk.printer.message("GetDirectoryResponse", &reply, || shown(&directory))?;
    reply.warnings.iter().for_each(|line| talk.printer.warn(line));
    Ok(())
}

fn shown(directory: &v1::Directory) -> String {
    let mut table = Table::new(&["NAME", "STANDS FOR"]);
    for entry in &directory.entries {
        table.row([clean(&entry.name), clean(&entry.members.join(", "))]);
    }
    if !directory.audience.is_empty() {
        table.row(["(whoever else)".to_owned(), clean(&directory.audience.join(", "))]);
    }
    let named = table.text("nobody is named");
    if directory.event_bindings.is_empty() {
        return named;
    }
    let mut bound = Table::new(&["DEFINITION", "EVENT", "COMES FROM"]);
    for one in &directory.event_bindings {
        let sources =
            if one.sources.is_empty() { "operators alone".to_owned() } else { one.sources.join(", ") };
        bound.row([clean(&one.definition), clean(&one.event_key), clean(&sources)]);
    }
    format!("{named}\n\n{}", bound.text(""))
}
