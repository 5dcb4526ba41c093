//! DefinitionService: checks, deploys and compares definitions, activates and retires their versions, archives and deletes
//! them.

mod callees;
mod compiled_view;
mod diff;
mod disposal;
mod stored;

use std::sync::Arc;
use switchward_api::v1::{self, definition_service_server::DefinitionService};
use switchward_formats::{Compiled, Finding, Format, Severity, SourceFile, compile};
use switchward_machine::Digest;
use switchward_query::{GetDefinition, GetMachine, GetSourceVersion, GetVersion, ListDefinitions};
use switchward_state::catalogue;
use switchward_state::catalogue::{
    ActivateVersion, ArchiveDefinition, CatalogueCommand, Definition, Deploy, RetireVersion, Version,
    VersionSummary,
};
use switchward_state::limits::SOURCE_BYTES_MAX;
use switchward_state::{Body, Reply, Scope, SharedMachine, SharedRow};
use tonic::{Request, Response, Status};

use self::callees::{of_active_callees, of_callees, shown_findings};
use self::compiled_view::compiled_view;
use self::disposal::{Deletion, Mode};
use crate::api::{Api, Call, request_id};
use crate::auth::{Caller, roles};
use crate::convert::{known, timestamp};
use crate::error::{Reason, Refusal};
use crate::mask::Mask;
use crate::names::Which;
use crate::pages::{Page, order};
use crate::refusals::{named, odd};
use crate::{convert, names};

type Answered<T> = Result<Response<T>, Status>;

/// Files of one bundle.
const FILES_MAX: usize = 256;
/// Numbers that one page of versions looks at.
const VERSIONS_LOOKED_AT_MAX: usize = 2_000;
/// A file's path inside its bundle, bytes.
const PATH_BYTES_MAX: usize = 255;

#[tonic::async_trait]
impl DefinitionService for Api {
    async fn check_definition(
        &self,
        request: Request<v1::CheckDefinitionRequest>,
    ) -> Answered<v1::CheckDefinitionResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mut compiled = compiled(&message.files, known("format", message.format)?)?;
        let of_callees = of_callees(&call, &message.files, compiled.definition.as_ref()).await?;
        compiled.findings.extend(of_callees);
        let definition = compiled.definition.as_ref();
        let (version, retired) = match definition {
            Some(definition) => deployed(&call, &definition.name, definition.source).await?,
            None => (0, false),
        };
        Ok(Response::new(v1::CheckDefinitionResponse {
            ok: definition.is_some(),
            findings: shown_findings(&compiled.findings),
            format: compiled.format.map_or(v1::Format::Unspecified, format).into(),
            digest: definition.map(|definition| definition.source.to_string()).unwrap_or_default(),
            definition_id: definition.map(|definition| definition.name.clone()).unwrap_or_default(),
            version,
            retired,
        }))
    }

    async fn deploy_definition(
        &self,
        request: Request<v1::DeployDefinitionRequest>,
    ) -> Answered<v1::DeployDefinitionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        Ok(Response::new(deploy(&call, message).await?))
    }

    async fn get_definition(
        &self,
        request: Request<v1::GetDefinitionRequest>,
    ) -> Answered<v1::GetDefinitionResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Definition", message.read_mask)?;
        let name = names::definition(&call.caller, "name", &message.name)?;
        let row = definition(&call, name, &message.name).await?;
        let shown = mask.keep(of_definition(&call.caller, &row));
        Ok(Response::new(v1::GetDefinitionResponse { definition: Some(shown) }))
    }

    async fn list_definitions(
        &self,
        request: Request<v1::ListDefinitionsRequest>,
    ) -> Answered<v1::ListDefinitionsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("Definition", message.read_mask)?;
        order(&message.order_by, "name")?;
        let shown = if message.show_archived { "archived" } else { "" };
        let list = ["definitions", call.caller.tenant_name.as_str(), shown];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let query = ListDefinitions {
            tenant: call.caller.tenant,
            bounds: page.bounds(),
            archived: message.show_archived,
        };
        let found = call.ask(&query).await?;
        let (definitions, next_page_token) = page.shown(&found, |row| of_definition(&call.caller, row));
        let definitions = mask.keep_each(definitions);
        Ok(Response::new(v1::ListDefinitionsResponse { definitions, next_page_token }))
    }

    async fn get_version(&self, request: Request<v1::GetVersionRequest>) -> Answered<v1::GetVersionResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let view = known("view", message.view)?;
        let mask = Mask::read("Version", message.read_mask)?;
        let (name, which) = names::version(&call.caller, "name", &message.name)?;
        let (row, number) = numbered(&call, name, which, &message.name).await?;
        let found = version(&call, name, number, &message.name).await?;
        let mut shown = of_version(&call.caller, &VersionSummary::of(&row, &found));
        match view {
            v1::VersionView::Unspecified => {}
            v1::VersionView::Source => shown.files = files(&found),
            v1::VersionView::Compiled => {
                shown.compiled = machine(&call, &found).await?.map(|machine| compiled_view(&machine))
            }
        }
        Ok(Response::new(v1::GetVersionResponse { version: Some(mask.keep(shown)) }))
    }

    async fn list_versions(
        &self,
        request: Request<v1::ListVersionsRequest>,
    ) -> Answered<v1::ListVersionsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Version", message.read_mask)?;
        order(&message.order_by, "number desc")?;
        let name = names::definition(&call.caller, "parent", &message.parent)?;
        let row = definition(&call, name, &message.parent).await?;
        let list = ["versions", call.caller.tenant_name.as_str(), name];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let next = match page.after.as_deref().map(<[u8; 4]>::try_from) {
            None => row.latest,
            Some(Ok(last)) => u32::from_be_bytes(last).saturating_sub(1).min(row.latest),
            Some(Err(_)) => {
                return Err(Refusal::field("page_token", "is not a page token of this list").into());
            }
        };
        // Numbers have gaps only where versions were deleted.
        let (mut versions, mut last) = (Vec::new(), 1);
        for number in (1..=next).rev().take(VERSIONS_LOOKED_AT_MAX) {
            let query = GetVersion { tenant: call.caller.tenant, name: name.to_owned(), number };
            let found = call.ask(&query).await?;
            versions.extend(found.map(|found| of_version(&call.caller, &VersionSummary::of(&row, &found))));
            last = number;
            if versions.len() == page.size {
                break;
            }
        }
        let more = last > 1;
        let next_page_token = if more { page.token(&last.to_be_bytes()) } else { String::new() };
        let versions = mask.keep_each(versions);
        Ok(Response::new(v1::ListVersionsResponse { versions, next_page_token }))
    }

    async fn activate_version(
        &self,
        request: Request<v1::ActivateVersionRequest>,
    ) -> Answered<v1::ActivateVersionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "ActivateVersion", &message)?;
        let (name, which) = names::version(&call.caller, "name", &message.name)?;
        let body = async {
            let (_, version) = numbered(&call, name, which, &message.name).await?;
            let (name, etag) = (name.to_owned(), message.expected_etag.clone());
            Ok(Body::Catalogue(CatalogueCommand::ActivateVersion(ActivateVersion { name, version, etag })))
        };
        let reply = call.execute_prepared(Scope::Catalogue, request, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "version", &message.name))?;
        let Reply::Definition(row) = reply else { return Err(odd(&reply).into()) };
        let findings = of_active_callees(&call, &row).await.map_err(Refusal::after_part)?;
        let definition = Some(of_definition(&call.caller, &row));
        Ok(Response::new(v1::ActivateVersionResponse { definition, findings }))
    }

    async fn retire_version(
        &self,
        request: Request<v1::RetireVersionRequest>,
    ) -> Answered<v1::RetireVersionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "RetireVersion", &message)?;
        let (name, which) = names::version(&call.caller, "name", &message.name)?;
        let body = async {
            let (_, version) = numbered(&call, name, which, &message.name).await?;
            let (name, etag) = (name.to_owned(), message.expected_etag.clone());
            Ok(Body::Catalogue(CatalogueCommand::RetireVersion(RetireVersion { name, version, etag })))
        };
        let reply = call.execute_prepared(Scope::Catalogue, request, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "version", &message.name))?;
        let Reply::Version { summary, .. } = reply else { return Err(odd(&reply).into()) };
        let version = Some(of_version(&call.caller, &summary));
        Ok(Response::new(v1::RetireVersionResponse { version }))
    }

    async fn archive_definition(
        &self,
        request: Request<v1::ArchiveDefinitionRequest>,
    ) -> Answered<v1::ArchiveDefinitionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "ArchiveDefinition", &message)?;
        let name = names::definition(&call.caller, "name", &message.name)?.to_owned();
        let command = ArchiveDefinition { name, archived: true, etag: message.expected_etag };
        let definition = Some(disposal::archive(&call, &message.name, command, request).await?);
        Ok(Response::new(v1::ArchiveDefinitionResponse { definition }))
    }

    async fn unarchive_definition(
        &self,
        request: Request<v1::UnarchiveDefinitionRequest>,
    ) -> Answered<v1::UnarchiveDefinitionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "UnarchiveDefinition", &message)?;
        let name = names::definition(&call.caller, "name", &message.name)?.to_owned();
        let command = ArchiveDefinition { name, archived: false, etag: message.expected_etag };
        let definition = Some(disposal::archive(&call, &message.name, command, request).await?);
        Ok(Response::new(v1::UnarchiveDefinitionResponse { definition }))
    }

    async fn delete_definition(
        &self,
        request: Request<v1::DeleteDefinitionRequest>,
    ) -> Answered<v1::DeleteDefinitionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "DeleteDefinition", &message)?;
        let name = names::definition(&call.caller, "name", &message.name)?;
        let mode = if message.validate_only { Mode::Validate } else { Mode::Delete };
        let etag = message.expected_etag.as_str();
        let deletion = Deletion { kind: "definition", asked: &message.name, name, which: None, etag, mode };
        disposal::delete(&call, &deletion, request).await?;
        Ok(Response::new(v1::DeleteDefinitionResponse {}))
    }

    async fn delete_version(
        &self,
        request: Request<v1::DeleteVersionRequest>,
    ) -> Answered<v1::DeleteVersionResponse> {
        let (call, message) = self.open(request, roles::PUBLISH)?;
        let request = request_id(&message.request_id, "DeleteVersion", &message)?;
        let (name, which) = names::version(&call.caller, "name", &message.name)?;
        let mode = if message.validate_only { Mode::Validate } else { Mode::Delete };
        let (etag, which) = (message.expected_etag.as_str(), Some(which));
        let deletion = Deletion { kind: "version", asked: &message.name, name, which, etag, mode };
        disposal::delete(&call, &deletion, request).await?;
        Ok(Response::new(v1::DeleteVersionResponse {}))
    }

    async fn diff_versions(
        &self,
        request: Request<v1::DiffVersionsRequest>,
    ) -> Answered<v1::DiffVersionsResponse> {
        let (call, message) = self.open(request, roles::COMPARE)?;
        Ok(Response::new(diff::diff(&call, message).await?))
    }
}

/// The tenant's version of these bytes, and whether it is retired; 0 if there is none.
async fn deployed(call: &Call<'_>, name: &str, source: Digest) -> Result<(u32, bool), Refusal> {
    let query = GetSourceVersion { tenant: call.caller.tenant, name: name.to_owned(), files: source };
    let Some(number) = call.ask(&query).await? else { return Ok((0, false)) };
    let row = definition(call, name, name).await?;
    Ok((number, row.retired(number).is_some()))
}

/// Compiles a bundle, within the limits of one.
fn compiled(files: &[v1::DefinitionFile], format: v1::Format) -> Result<Compiled, Refusal> {
    if files.is_empty() {
        return Err(Refusal::field("files", "must hold at least one file"));
    }
    if files.len() > FILES_MAX {
        return Err(Refusal::field("files", format!("must hold at most {FILES_MAX} files")));
    }
    if files.iter().map(|file| file.content.len()).sum::<usize>() > SOURCE_BYTES_MAX {
        return Err(Refusal::field("files", format!("must hold at most {SOURCE_BYTES_MAX} bytes")));
    }
    for (at, file) in files.iter().enumerate() {
        let bad = |part: &str| part.is_empty() || part == "." || part == "..";
        if file.path.len() > PATH_BYTES_MAX
            || file.path.chars().any(char::is_control)
            || file.path.split('/').any(bad)
        {
            return Err(Refusal::field(
                format!("files[{at}].path"),
                format!("must be a relative path inside the bundle of 1 to {PATH_BYTES_MAX} bytes"),
            ));
        }
        if files[..at].iter().any(|before| before.path == file.path) {
            return Err(Refusal::field(format!("files[{at}].path"), "is in the bundle twice"));
        }
    }
    let sources: Vec<SourceFile<'_>> =
        files.iter().map(|file| SourceFile { path: &file.path, bytes: &file.content }).collect();
    Ok(compile(&sources, format_of(format)?))
}

async fn deploy(
    call: &Call<'_>,
    message: v1::DeployDefinitionRequest,
) -> Result<v1::DeployDefinitionResponse, Refusal> {
    names::parent(&call.caller, "parent", &message.parent)?;
    let request = request_id(&message.request_id, "DeployDefinition", &message)?;
    let body = async { deployed_from(message) };
    let reply = call.execute_prepared(Scope::Catalogue, request, body).await?;
    let Reply::Version { created, summary, findings, .. } = reply else { return Err(odd(&reply)) };
    let findings = findings.into_iter().map(stored::shown).collect();
    Ok(v1::DeployDefinitionResponse { version: Some(of_version(&call.caller, &summary)), created, findings })
}

/// Compiles what is to be deployed. A repeated request is compiled, too, but answered with the first findings.
fn deployed_from(message: v1::DeployDefinitionRequest) -> Result<Body, Refusal> {
    let compiled = compiled(&message.files, known("format", message.format)?)?;
    let Some(ready) = compiled.definition else { return Err(invalid(&compiled.findings)) };
    let format = compiled.format.map_or("", |format| format.name());
    let file = message.files.first().map_or("", |file| file.path.as_str());
    Ok(Body::Catalogue(CatalogueCommand::Deploy(Deploy {
        findings: stored::findings(&compiled.findings, file, &ready.calls),
        name: ready.name,
        format: format.to_owned(),
        files: message.files.iter().map(stored_file).collect(),
        source: ready.source,
        machine: Arc::new(ready.machine),
        activate: message.activate.unwrap_or(true),
        etag: message.expected_etag,
    })))
}

fn stored_file(file: &v1::DefinitionFile) -> catalogue::SourceFile {
    catalogue::SourceFile { path: file.path.clone(), bytes: file.content.to_vec() }
}

/// The refusal of a definition with errors: each one is a violation, with its position.
fn invalid(findings: &[Finding]) -> Refusal {
    let errors: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let message = match errors.len() {
        1 => "the definition has an error".to_owned(),
        count => format!("the definition has {count} errors"),
    };
    errors.iter().fold(Refusal::new(Reason::DefinitionInvalid, message), |refusal, finding| {
        let position = format!("{}:{}:{}", finding.file, finding.line, finding.column);
        refusal.violation(position, format!("{}: {}", finding.code, finding.message))
    })
}

/// Resolves a version's name to its definition and number. NOT_FOUND always names the version, whether or not the
/// definition exists.
async fn numbered(
    call: &Call<'_>,
    name: &str,
    which: Which,
    asked: &str,
) -> Result<(SharedRow<Definition>, u32), Refusal> {
    let row = definition(call, name, asked).await.map_err(|refusal| named(refusal, "version", asked))?;
    let number = match which {
        Which::Number(number) => number,
        Which::Latest => row.latest,
        Which::Active => row.active.ok_or_else(|| Refusal::not_found("version", asked))?,
    };
    Ok((row, number))
}

pub(super) async fn definition(
    call: &Call<'_>,
    name: &str,
    asked: &str,
) -> Result<SharedRow<Definition>, Refusal> {
    let found = call.ask(&GetDefinition { tenant: call.caller.tenant, name: name.to_owned() }).await?;
    found.ok_or_else(|| Refusal::not_found("definition", asked))
}

async fn version(
    call: &Call<'_>,
    name: &str,
    number: u32,
    asked: &str,
) -> Result<SharedRow<Version>, Refusal> {
    let found = call.ask(&GetVersion { tenant: call.caller.tenant, name: name.to_owned(), number }).await?;
    found.ok_or_else(|| Refusal::not_found("version", asked))
}

async fn machine(call: &Call<'_>, version: &Version) -> Result<Option<SharedMachine>, Refusal> {
    call.ask(&GetMachine { tenant: call.caller.tenant, digest: version.machine }).await
}

/// What a format's value in the API begins with; the format's own name in upper case follows.
const FORMAT_PREFIX: &str = "FORMAT_";

/// The format that a request names; `None` if it is to be detected.
fn format_of(named: v1::Format) -> Result<Option<Format>, Refusal> {
    if named == v1::Format::Unspecified {
        return Ok(None);
    }
    let word = named.as_str_name().strip_prefix(FORMAT_PREFIX).unwrap_or_default().to_ascii_lowercase();
    let found = Format::named(&word);
    found.map(Some).ok_or_else(|| Refusal::field("format", format!("{word} is not supported by this server")))
}

/// A format in the API; unspecified if it is only recognised and no service compiles it.
fn format(format: Format) -> v1::Format {
    format_named(format.name())
}

fn format_named(name: &str) -> v1::Format {
    let value = [FORMAT_PREFIX, &name.to_ascii_uppercase()].concat();
    v1::Format::from_str_name(&value).unwrap_or(v1::Format::Unspecified)
}

pub(super) fn of_definition(caller: &Caller, row: &Definition) -> v1::Definition {
    let mut retired_versions: Vec<u32> = row.retired.iter().map(|retired| retired.number).collect();
    retired_versions.sort_unstable();
    v1::Definition {
        name: names::of_definition(caller, &row.name),
        format: format_named(&row.format).into(),
        active_version: row.active.unwrap_or_default(),
        latest_version: row.latest,
        create_time: Some(timestamp(row.created)),
        update_time: Some(timestamp(row.updated)),
        etag: row.etag(),
        policies: row.policies.iter().map(|policy| names::of_definition(caller, policy)).collect(),
        retired_versions,
        archive_time: row.archived.as_ref().map(|archived| timestamp(archived.at)),
        archived_by: row.archived.as_ref().map(|archived| archived.by.clone()).unwrap_or_default(),
    }
}

fn of_version(caller: &Caller, row: &VersionSummary) -> v1::Version {
    let retired = row.retired.as_ref();
    v1::Version {
        name: names::of_version(caller, &row.definition, row.number),
        number: row.number,
        digest: row.source.to_string(),
        machine_digest: row.machine.to_string(),
        format: format_named(&row.format).into(),
        active: row.active,
        create_time: Some(convert::timestamp(row.created)),
        files: Vec::new(),
        compiled: None,
        created_by: row.by.clone(),
        retire_time: retired.map(|retired| timestamp(retired.at)),
        retired_by: retired.map(|retired| retired.by.clone()).unwrap_or_default(),
    }
}

fn files(version: &Version) -> Vec<v1::DefinitionFile> {
    let file = |file: &catalogue::SourceFile| v1::DefinitionFile {
        path: file.path.clone(),
        content: file.bytes.clone().into(),
    };
    version.files.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_has_a_value_for_each_format_that_is_compiled_and_no_other() {
        for one in Format::ALL {
            let value = format(one);
            assert_eq!(value != v1::Format::Unspecified, one.is_supported(), "{}", one.name());
            let read = format_of(value).ok().flatten();
            assert_eq!(read, Some(one).filter(|one| one.is_supported()), "{}", one.name());
        }
        assert_eq!(format_named(""), v1::Format::Unspecified);
        assert_eq!(format_named("of tomorrow"), v1::Format::Unspecified);
        for number in 1..100 {
            if let Ok(value) = v1::Format::try_from(number) {
                assert!(format_of(value).is_ok(), "no format has the name of {}", value.as_str_name());
            }
        }
    }
}
