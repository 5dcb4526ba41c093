//! `switchward directory`.

use serde::Deserialize;
use switchward_api::v1;

use super::show;
use super::talk::Talk;
use crate::args::{DirectoryCommand, PutDirectory, duration, files, quorum};
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
    #[serde(default)]
    members: Vec<String>,
    #[serde(default)]
    audience: Vec<String>,
    quorum: Option<Count>,
    reminders: Option<Often>,
    #[serde(default)]
    escalation: Vec<String>,
}

/// `"any"`, `"all"` or a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u32),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Often {
    every: String,
    max: u32,
}

impl Entry {
    fn read(self) -> Result<v1::DirectoryEntry, String> {
        let of = |problem| format!("{}: {problem}", self.name);
        let word = self.quorum.map(|count| match count {
            Count::Number(number) => number.to_string(),
            Count::Word(word) => word,
        });
        let quorum = word.map(|word| quorum(&word)).transpose().map_err(of)?;
        let reminders = self.reminders.map(Often::read).transpose().map_err(of)?;
        let (audience, escalation) = (self.audience, self.escalation);
        let settings = v1::GateSettings { audience, quorum, reminders, escalation };
        let settings = (settings != v1::GateSettings::default()).then_some(settings);
        Ok(v1::DirectoryEntry { name: self.name, members: self.members, settings })
    }
}

impl Often {
    fn read(self) -> Result<v1::Reminders, String> {
        let every = duration(&self.every)?;
        Ok(v1::Reminders { every: every.try_into().ok(), max: self.max })
    }
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
        .map_err(|error| Exit::usage(format!("{} is not a directory file: {error}", put.file)))?;
    let entries = file.entries.into_iter().map(Entry::read).collect::<Result<_, _>>();
    let entries =
        entries.map_err(|problem| Exit::usage(format!("{} is not a directory file: {problem}", put.file)))?;
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

/// An entry's settings for gates.
fn gates(settings: &v1::GateSettings) -> String {
    let listed = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{what} {}", clean(&names.join(", "))))
    };
    let said = [
        listed("audience:", &settings.audience),
        settings.quorum.as_ref().map(|quorum| format!("quorum: {}", show::approving(quorum))),
        settings.reminders.as_ref().map(|reminders| format!("reminders: {}", show::often(reminders))),
        listed("escalation:", &settings.escalation),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn shown(directory: &v1::Directory) -> String {
    let mut table = Table::new(&["NAME", "MEMBERS", "SETTINGS"]);
    for entry in &directory.entries {
        let gates = entry.settings.as_ref().map(gates).unwrap_or_default();
        table.row([clean(&entry.name), clean(&entry.members.join(", ")), gates]);
    }
    if !directory.audience.is_empty() {
        table.row(["(default audience)".to_owned(), clean(&directory.audience.join(", ")), String::new()]);
    }
    let named = table.text("no entries");
    if directory.event_bindings.is_empty() {
        return named;
    }
    let mut bound = Table::new(&["DEFINITION", "EVENT_KEY", "SOURCES"]);
    for one in &directory.event_bindings {
        let sources =
            if one.sources.is_empty() { "(only operators)".to_owned() } else { one.sources.join(", ") };
        bound.row([clean(&one.definition), clean(&one.event_key), clean(&sources)]);
    }
    format!("{named}\n\n{}", bound.text(""))
}
