//! Archives definitions, and deletes those that nothing needs any more.

use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;
use switchward_api::v1;
use switchward_engine::check_out_of_use;
use switchward_machine::Status;
use switchward_query::{
    Bounds, DefinitionUse, FindUses, GetTenantRecord, ListAssistants, ListPinned, Reader, Source, UseKind,
};
use switchward_state::catalogue::{ArchiveDefinition, CatalogueCommand, DeleteDefinition};
use switchward_state::{Body, Reply, RequestId, Scope};

use super::{definition, numbered, of_definition, version};
use crate::api::Call;
use crate::error::{Reason, Refusal};
use crate::limits::{USES_NAMED_MAX, USES_PAGE_SIZE};
use crate::names::{self, Which};
use crate::pages::{Listed, Page};
use crate::refusals::{named, odd, unreadable};
use crate::scans::Share;

/// Users that the message of a refusal names; its details name more.
const USES_IN_MESSAGE: usize = 3;
/// How soon it is worth looking again for sessions in a shard that has no leader.
const ELECTING_RETRY: Duration = Duration::from_millis(200);

/// Puts a definition out of use or back into use, and returns it.
pub(super) async fn archive(
    call: &Call<'_>,
    asked: &str,
    command: ArchiveDefinition,
    request: Option<RequestId>,
) -> Result<v1::Definition, Refusal> {
    let body = Body::Catalogue(CatalogueCommand::ArchiveDefinition(command));
    let reply = call.execute_in_own_scope(request, body).await;
    let reply = reply.map_err(|refusal| named(refusal, "definition", asked))?;
    let Reply::Definition(row) = reply else { return Err(odd(&reply)) };
    Ok(of_definition(&call.caller, &row))
}

/// Whether something is deleted, or only checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Delete,
    Validate,
}

/// What a request wants to delete.
pub(super) struct Deletion<'m> {
    /// `definition` or `version`.
    pub(super) kind: &'static str,
    /// Its name in the request.
    pub(super) asked: &'m str,
    /// The name of the definition.
    pub(super) name: &'m str,
    /// The version; `None`: the definition with all of them.
    pub(super) which: Option<Which>,
    /// The definition's etag that the caller saw; empty if any will do.
    pub(super) etag: &'m str,
    pub(super) mode: Mode,
}

/// Deletes a definition or a version, or checks that it can be deleted.
pub(super) async fn delete(
    call: &Call<'_>,
    deletion: &Deletion<'_>,
    request: Option<RequestId>,
) -> Result<(), Refusal> {
    if deletion.mode == Mode::Validate {
        return prepared(call, deletion).await.map(drop);
    }
    let reply = call.execute_prepared(Scope::Catalogue, request, prepared(call, deletion)).await;
    let reply = reply.map_err(|refusal| named(refusal, deletion.kind, deletion.asked))?;
    if reply == Reply::Done { Ok(()) } else { Err(odd(&reply)) }
}

/// The command, if nothing needs what it deletes. It holds for the definition as it was looked at: whatever happens to that
/// meanwhile makes it void. A start that was under way before the definition was archived may still end in a session, which
/// has all that it needs in its shard.
async fn prepared(call: &Call<'_>, deletion: &Deletion<'_>) -> Result<Body, Refusal> {
    let Deletion { name, asked, which, .. } = deletion;
    let (row, number) = match which {
        None => (definition(call, name, asked).await?, None),
        Some(which) => {
            let (row, number) = numbered(call, name, *which, asked).await?;
            version(call, name, number, asked).await?;
            (row, Some(number))
        }
    };
    let etag = row.etag();
    if !deletion.etag.is_empty() && deletion.etag != etag {
        let message = "the definition has changed since you looked; look again before you delete it";
        return Err(Refusal::new(Reason::EtagMismatch, message).meta("etag", etag));
    }
    check_out_of_use(&row, number)?;
    let uses = uses(call, name, number).await?;
    if !uses.is_empty() {
        return Err(in_use(deletion, uses));
    }
    let command = DeleteDefinition { name: (*name).to_owned(), version: number, etag };
    Ok(Body::Catalogue(CatalogueCommand::DeleteDefinition(command)))
}

/// Something that needs a definition: its name, and what it needs it for.
type Use = (String, &'static str);

/// The refusal that names what still needs the definition.
fn in_use(deletion: &Deletion<'_>, uses: Vec<Use>) -> Refusal {
    let message = {
        let named = uses.iter().take(USES_IN_MESSAGE).map(|(name, why)| format!("{name} ({why})"));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if uses.len() > USES_IN_MESSAGE { " and others" } else { "" };
        format!("the {} {} is still needed by {named}{more}", deletion.kind, deletion.asked)
    };
    let refusal = Refusal::new(Reason::DefinitionInUse, message).resource(deletion.kind, deletion.asked);
    uses.into_iter().fold(refusal, |refusal, (name, why)| refusal.failure(name, why))
}

/// What needs a definition, or a version of it; at most [`USES_NAMED_MAX`].
async fn uses(call: &Call<'_>, name: &str, version: Option<u32>) -> Result<Vec<Use>, Refusal> {
    let mut uses = of_tenant(call, name, version).await?;
    uses.extend(of_definitions(call, name, version).await?);
    if version.is_none() {
        uses.extend(of_assistants(call, name).await?);
    }
    for status in Status::ALL.into_iter().filter(|status| !status.ended()) {
        if uses.len() < USES_NAMED_MAX {
            uses.extend(of_sessions(call, name, version, status).await?);
        }
    }
    uses.truncate(USES_NAMED_MAX);
    Ok(uses)
}

/// The tenant, if it has set this policy.
async fn of_tenant(call: &Call<'_>, name: &str, version: Option<u32>) -> Result<Vec<Use>, Refusal> {
    let record = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    let set = record.is_some_and(|record| {
        let mut policies = record.policies.iter();
        policies.any(|policy| policy.name == name && version.is_none_or(|number| policy.version == number))
    });
    let tenant = format!("tenants/{}", call.caller.tenant_name);
    Ok(if set { vec![(tenant, "tenant policy")] } else { Vec::new() })
}

/// The definitions that call it, or to which it is attached.
async fn of_definitions(call: &Call<'_>, name: &str, version: Option<u32>) -> Result<Vec<Use>, Refusal> {
    let rows = call.api.reader(Source::Catalogue).await?;
    let bounds = Bounds { after: None, size: USES_PAGE_SIZE };
    let query = FindUses { tenant: call.caller.tenant, name: name.to_owned(), version, bounds };
    let found = call.look_for(definitions_from(rows, query)).await?;
    let shown = |one: DefinitionUse| {
        let why = match one.kind {
            UseKind::Calls => "calls it",
            UseKind::Policy => "attached policy",
        };
        (names::of_definition(&call.caller, &one.name), why)
    };
    Ok(found.into_iter().map(shown).collect())
}

/// Looks at all definitions of the tenant, one page a call.
fn definitions_from(
    rows: Reader,
    mut query: FindUses,
) -> impl FnMut(&Call<'_>, &mut Share) -> Result<ControlFlow<Vec<DefinitionUse>>, Refusal> {
    let mut found = Vec::new();
    move |_, _| {
        let page = rows.answer(&query).map_err(unreadable)?;
        found.extend(page.uses);
        query.bounds.after = page.next;
        let ends = query.bounds.after.is_none() || found.len() >= USES_NAMED_MAX;
        Ok(if ends { ControlFlow::Break(mem::take(&mut found)) } else { ControlFlow::Continue(()) })
    }
}

/// The assistants that have it among their workflows.
async fn of_assistants(call: &Call<'_>, name: &str) -> Result<Vec<Use>, Refusal> {
    let (mut uses, mut after) = (Vec::new(), None);
    loop {
        let bounds = Bounds { after, size: USES_PAGE_SIZE };
        let page = call.ask(&ListAssistants { tenant: call.caller.tenant, bounds }).await?;
        for row in page.rows.iter().filter(|row| row.workflows.iter().any(|workflow| workflow == name)) {
            uses.push((names::of_assistant(&call.caller, &row.name), "assistant"));
        }
        after = page.next;
        if after.is_none() || uses.len() >= USES_NAMED_MAX {
            return Ok(uses);
        }
    }
}

/// The sessions in one status that are pinned to it, in all shards.
async fn of_sessions(
    call: &Call<'_>,
    name: &str,
    version: Option<u32>,
    status: Status,
) -> Result<Vec<Use>, Refusal> {
    let number = version.unwrap_or_default().to_string();
    let list = ["pinned", call.caller.tenant_name.as_str(), name, number.as_str(), status.word()];
    let size = u32::try_from(USES_NAMED_MAX).unwrap_or(u32::MAX);
    let (mut uses, mut token) = (Vec::new(), String::new());
    loop {
        let page = Page::read(size, &token, &list)?;
        let definition = name.to_owned();
        let pinned = ListPinned { tenant: call.caller.tenant, status, definition, version };
        let shown = |call: &Call<'_>, id| names::of_session(&call.caller, id);
        let Listed { entries, next_page_token, unreachable } = page.of_shards(call, pinned, shown).await?;
        if !unreachable.is_empty() {
            let message = "the sessions of a shard that is choosing a leader cannot be looked at";
            return Err(Refusal::new(Reason::ShardElecting, message).retry_after(ELECTING_RETRY));
        }
        uses.extend(entries.into_iter().map(|session| (session, "running session")));
        if next_page_token.is_empty() || uses.len() >= USES_NAMED_MAX {
            return Ok(uses);
        }
        token = next_page_token;
    }
}
