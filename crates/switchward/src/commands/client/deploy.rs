//! `switchward deploy`: stores the definitions of files and folders, those that others call first.

mod plan;
mod sources;

use switchward_api::v1;
use switchward_messages::cli;

use self::sources::{Source, gathered, ordered};
use super::show;
use super::talk::Talk;
use crate::args::Deploy;
use crate::exit::Exit;
use crate::output::{card, clean, shell};

/// Whether new sessions start with what is deployed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Activate,
    Store,
}

pub(super) async fn run(talk: &Talk, deploy: Deploy) -> Result<(), Exit> {
    let mode = if deploy.no_activate { Mode::Store } else { Mode::Activate };
    // All files are read before the first one is sent, so that a wrong path changes nothing.
    let sources = gathered(&deploy.files)?;
    if sources.len() > 1 && talk.request_id_is_given() {
        return Err(Exit::usage("--request-id allows only one file; deploy the files one by one"));
    }
    let sources = ordered(sources, mode)?;
    if deploy.dry_run {
        return plan::run(talk, &sources, mode).await;
    }
    for (at, source) in sources.iter().enumerate() {
        if let Err(exit) = one(talk, source, mode).await {
            let (done, left) = (names(&sources[..at]), names(&sources[at..]));
            if sources.len() > 1 {
                talk.printer.warn(&cli::client::deployed_partly(&done, &left));
            }
            return Err(exit);
        }
    }
    Ok(())
}

fn names(sources: &[Source]) -> Vec<String> {
    sources.iter().map(Source::shown).collect()
}

async fn one(talk: &Talk, source: &Source, mode: Mode) -> Result<(), Exit> {
    let request = v1::DeployDefinitionRequest {
        parent: String::new(),
        files: vec![source.bundle()],
        format: v1::Format::Unspecified.into(),
        activate: Some(mode == Mode::Activate),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.deploy_definition(request).await });
    let reply = reply.await?;
    let version = reply.version.clone().unwrap_or_default();
    talk.printer.message("DeployDefinitionResponse", &reply, || deployed(&reply, &version))?;
    let definition = shell(show::definition_of(&version.name));
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
    let mut text = show::findings(&reply.findings);
    let known = if reply.created { "new" } else { "unchanged" };
    let active = match (version.active, version.retire_time.is_some()) {
        (true, _) if version.format() == v1::Format::Policy => cli::client::POLICY_ACTIVE,
        (true, _) => cli::client::VERSION_ACTIVE,
        (false, true) => cli::client::VERSION_RETIRED,
        (false, false) => cli::client::VERSION_INACTIVE,
    };
    text.push_str(&card(&[
        ("definition", clean(show::definition_of(&version.name))),
        ("version", format!("{}, {known}", version.number)),
        ("status", active.to_owned()),
        ("digest", version.digest.clone()),
    ]));
    text
}
