//! Deploying, activating and retiring definitions.

use std::path::Path;
use switchward_api::v1;
use switchward_messages::cli;

use super::show;
use super::talk::Talk;
use crate::args::{Activate, Deploy, Retire, files};
use crate::exit::Exit;
use crate::output::{CARE, card, clean, put};

/// The reasons if a definition calls one that does not exist.
const ABSENT: [&str; 2] = ["NO_SUCH_WORKFLOW", "NOT_FOUND"];

pub(super) async fn deploy(talk: &Talk, deploy: Deploy) -> Result<(), Exit> {
    if deploy.files.len() > 1 && talk.request_id_is_given() {
        return Err(Exit::usage("--request-id allows only one file; deploy the files one by one"));
    }
    // All files are read before the first one is sent, so that a wrong path changes nothing.
    let read = |path| files::read(path).map(|bytes| (path, bytes));
    let sources = deploy.files.iter().map(|path| read(path.as_path())).collect::<Result<Vec<_>, _>>()?;
    // A definition that calls another one of the files waits for it, so that their order does not matter.
    let mut left = sources;
    while !left.is_empty() {
        let count = left.len();
        let mut waiting = Vec::new();
        let mut refusal = None;
        for (path, bytes) in left {
            match one(talk, path, bytes.clone(), !deploy.no_activate).await {
                Err(exit) if exit.reason().is_some_and(|it| ABSENT.contains(&it)) && count > 1 => {
                    waiting.push((path, bytes));
                    refusal.get_or_insert(exit);
                }
                other => other?,
            }
        }
        if let Some(exit) = refusal.filter(|_| waiting.len() == count) {
            return Err(exit);
        }
        left = waiting;
    }
    Ok(())
}

async fn one(talk: &Talk, path: &Path, bytes: Vec<u8>, activate: bool) -> Result<(), Exit> {
    let name = path.file_name().map_or_else(|| "definition".into(), |name| name.to_string_lossy());
    let request = v1::DeployDefinitionRequest {
        parent: String::new(),
        files: vec![v1::DefinitionFile { path: clean(&name).replace('\n', "_"), content: bytes.into() }],
        format: v1::Format::Unspecified.into(),
        activate: Some(activate),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.deploy_definition(request).await });
    let reply = reply.await?;
    let version = reply.version.clone().unwrap_or_default();
    talk.printer.message("DeployDefinitionResponse", &reply, || deployed(&reply, &version))?;
    let definition = show::definition_of(&version.name);
    if version.format() == v1::Format::Policy {
        talk.printer.advice(&format!("switchward policy attach {definition} --to DEFINITION"));
    } else if version.active {
        talk.printer.advice(&format!("switchward start {definition}"));
    } else {
        talk.printer.advice(&format!("switchward activate {definition} {}", version.number));
    }
    Ok(())
}

fn deployed(reply: &v1::DeployDefinitionResponse, version: &v1::Version) -> String {
    let mut text = String::new();
    for finding in &reply.findings {
        let position = format!("{}:{}:{}", clean(&finding.file), finding.line, finding.column);
        let (code, message) = (clean(&finding.code), clean(&finding.message));
        let severity = show::word(finding.severity().as_str_name(), "SEVERITY_");
        put(&mut text, format_args!("{CARE}{severity}[{code}]{CARE:#}: {message}\n --> {position}\n"));
    }
    let known = if reply.created { "new" } else { "unchanged" };
    let active = match (version.active, version.retire_time.is_some()) {
        (true, _) if version.format() == v1::Format::Policy => cli::client::POLICY_ACTIVE,
        (true, _) => cli::client::VERSION_ACTIVE,
        (false, true) => cli::client::VERSION_RETIRED,
        (false, false) => cli::client::VERSION_INACTIVE,
    };
    text.push_str(&card(&[
        ("definition", show::definition_of(&version.name).to_owned()),
        ("version", format!("{}, {known}", version.number)),
        ("status", active.to_owned()),
        ("digest", version.digest.clone()),
    ]));
    text
}

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
    talk.printer.message("ActivateVersionResponse", &reply, || show::definition(&definition))
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
