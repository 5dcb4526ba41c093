//! What an author is informed of about the definitions that a definition calls.

use std::collections::BTreeSet;
use switchward_api::v1;
use switchward_formats::{Finding, archived_in_catalogue, not_in_catalogue};
use switchward_query::{GetDefinition, GetVersion};
use switchward_state::catalogue::Definition;

use super::stored::{self, HoldsIf};
use super::{compiled, files, format_named};
use crate::api::Call;
use crate::error::Refusal;

/// Warnings about definitions that a definition calls, and that the catalogue lacks or has archived.
pub(super) async fn of_callees(
    call: &Call<'_>,
    files: &[v1::DefinitionFile],
    definition: Option<&switchward_formats::Definition>,
) -> Result<Vec<Finding>, Refusal> {
    let Some(definition) = definition else { return Ok(Vec::new()) };
    let (mut lacking, mut archived) = (BTreeSet::new(), BTreeSet::new());
    let names: BTreeSet<&str> = definition.calls.iter().map(|callee| callee.name.as_str()).collect();
    for name in names {
        let query = GetDefinition { tenant: call.caller.tenant, name: name.to_owned() };
        match call.ask(&query).await? {
            None => {
                lacking.insert(name);
            }
            Some(known) if known.archived.is_some() => {
                archived.insert(name);
            }
            Some(_) => {}
        }
    }
    let file = files.first().map_or("", |file| file.path.as_str());
    let mut findings = not_in_catalogue(file, &definition.calls, |name| lacking.contains(name));
    findings.extend(archived_in_catalogue(file, &definition.calls, |name| archived.contains(name)));
    Ok(findings)
}

/// The warnings about what the active version of a definition calls.
pub(super) async fn of_active_callees(
    call: &Call<'_>,
    row: &Definition,
) -> Result<Vec<v1::Finding>, Refusal> {
    let Some(number) = row.active else { return Ok(Vec::new()) };
    let query = GetVersion { tenant: call.caller.tenant, name: row.name.clone(), number };
    let Some(found) = call.ask(&query).await? else { return Ok(Vec::new()) };
    let files = files(&found);
    let compiled = compiled(&files, format_named(&row.format))?;
    let found = of_callees(call, &files, compiled.definition.as_ref()).await?;
    Ok(shown_findings(&found))
}

/// Findings as the API shows them.
pub(super) fn shown_findings(findings: &[Finding]) -> Vec<v1::Finding> {
    findings.iter().map(|one| stored::shown(stored::finding(one, HoldsIf::Always))).collect()
}
