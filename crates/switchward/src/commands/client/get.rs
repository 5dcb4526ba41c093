//! `switchward get`: one session, gate, definition or version, recognised by its name.

use switchward_api::v1;
use tonic::{Code, Status};

use super::drive::advise;
use super::talk::Talk;
use super::{conversation, show};
use crate::args::Get;
use crate::exit::Exit;
use crate::output::print_bytes;

/// The kind of resource of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Session,
    Gate,
    Definition,
    Version,
    /// A definition's name or a session's key.
    Either,
}

fn kind(name: &str) -> Kind {
    let of = |collection: &str, prefix: &str| {
        name.starts_with(prefix) || name.starts_with(collection) || name.contains(&format!("/{collection}"))
    };
    if name.contains("/versions/") {
        Kind::Version
    } else if of("sessions/", "ses_") {
        Kind::Session
    } else if of("gates/", "gat_") {
        Kind::Gate
    } else if name.contains("definitions/") {
        Kind::Definition
    } else {
        Kind::Either
    }
}

pub(super) async fn run(talk: &Talk, get: Get) -> Result<(), Exit> {
    let name = get.name.as_str();
    if get.source {
        return source(talk, name).await;
    }
    match kind(name) {
        Kind::Session => session(talk, name).await?,
        Kind::Gate => gate(talk, name).await?,
        Kind::Definition => definition(talk, name).await?,
        Kind::Version => {
            let reply = version(talk, name, v1::VersionView::Unspecified).await?;
            let version = reply.version.clone().unwrap_or_default();
            talk.printer.message("GetVersionResponse", &reply, || show::version(&version))?;
        }
        Kind::Either => match definition(talk, name).await {
            Err(Got::Refused(status)) if status.code() == Code::NotFound => match session(talk, name).await {
                Err(Got::Refused(status)) if status.code() == Code::NotFound => {
                    return Err(Exit::missing(format!(
                        "there is no definition and no session named {name:?}"
                    ))
                    .next("switchward list sessions, list gates and list definitions list what exists"));
                }
                found => found?,
            },
            found => found?,
        },
    }
    Ok(())
}

/// The error of a lookup.
enum Got {
    Refused(Status),
    Unprinted(Exit),
}

impl From<Status> for Got {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

impl From<Exit> for Got {
    fn from(exit: Exit) -> Self {
        Self::Unprinted(exit)
    }
}

impl From<Got> for Exit {
    fn from(got: Got) -> Self {
        match got {
            Got::Refused(status) => status.into(),
            Got::Unprinted(exit) => exit,
        }
    }
}

async fn session(talk: &Talk, name: &str) -> Result<(), Got> {
    let request = v1::GetSessionRequest { name: name.to_owned(), ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.get_session(request).await });
    let reply = reply.await?;
    let session = reply.session.clone().unwrap_or_default();
    let said = conversation::said(talk, &session).await?;
    talk.printer.message("GetSessionResponse", &reply, || show::session_with(&session, &said))?;
    advise(talk, &session);
    Ok(())
}

async fn gate(talk: &Talk, name: &str) -> Result<(), Got> {
    let request = v1::GetGateRequest { name: name.to_owned(), ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.gates.get_gate(request).await }).await?;
    let gate = reply.gate.clone().unwrap_or_default();
    talk.printer.message("GetGateResponse", &reply, || show::gate(&gate))?;
    if gate.status() == v1::GateStatus::Open {
        talk.printer.advice(&show::to_decide_gate(&gate));
    }
    Ok(())
}

async fn definition(talk: &Talk, name: &str) -> Result<(), Got> {
    let request = v1::GetDefinitionRequest { name: name.to_owned(), ..Default::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.get_definition(request).await });
    let reply = reply.await?;
    let definition = reply.definition.clone().unwrap_or_default();
    talk.printer.message("GetDefinitionResponse", &reply, || show::definition(&definition))?;
    Ok(())
}

async fn version(talk: &Talk, name: &str, view: v1::VersionView) -> Result<v1::GetVersionResponse, Status> {
    let request = v1::GetVersionRequest { name: name.to_owned(), view: view.into(), ..Default::default() };
    talk.client
        .call(request, |mut it, request| async move { it.definitions.get_version(request).await })
        .await
}

/// Prints the files of a version, or of a definition's active version, as they were deployed.
async fn source(talk: &Talk, name: &str) -> Result<(), Exit> {
    let name = match kind(name) {
        Kind::Version => name.to_owned(),
        Kind::Definition | Kind::Either => format!("{name}/versions/active"),
        Kind::Session | Kind::Gate => return Err(Exit::usage("--source requires a definition or a version")),
    };
    let reply = version(talk, &name, v1::VersionView::Source).await?;
    let files = reply.version.clone().unwrap_or_default().files;
    if talk.printer.is_json() {
        return talk.printer.message("GetVersionResponse", &reply, String::new);
    }
    match files.as_slice() {
        [file] => print_bytes(&file.content),
        files => {
            Err(Exit::usage(format!("the version has {} files; use -o json to print them all", files.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_kind_of_its_resource() {
        for (name, expected) in [
            ("ses_1", Kind::Session),
            ("tenants/-/sessions/release-42", Kind::Session),
            ("gat_1_2", Kind::Gate),
            ("gates/gat_1", Kind::Gate),
            ("tenants/-/definitions/deploy-gate", Kind::Definition),
            ("deploy-gate/versions/3", Kind::Version),
            ("deploy-gate", Kind::Either),
            ("sessions", Kind::Either),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
