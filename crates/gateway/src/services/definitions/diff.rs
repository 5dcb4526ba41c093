//! Compares versions.

use std::sync::Arc;
use switchward_api::v1;
use switchward_machine::Machine;
use switchward_machine::diff::{Change, Difference, Part, diff as differences};
use switchward_state::catalogue::VersionSummary;

use super::{compiled, invalid, machine, numbered, of_version, version};
use crate::api::Call;
use crate::convert::known;
use crate::error::Refusal;
use crate::limits::DIFFERENCES_MAX;
use crate::names;

/// One of two sides: the version, if it is deployed, and what it compiled to.
struct Side {
    version: Option<v1::Version>,
    machine: Arc<Machine>,
}

/// Compares what a request names.
pub(super) async fn diff(
    call: &Call<'_>,
    message: v1::DiffVersionsRequest,
) -> Result<v1::DiffVersionsResponse, Refusal> {
    let before = deployed(call, "name", &message.name).await?;
    let after = match (message.other.as_str(), message.files.is_empty()) {
        ("", true) => return Err(Refusal::field("other", "is required, unless there are files")),
        ("", false) => of_bundle(&message)?,
        (other, true) => deployed(call, "other", other).await?,
        (_, false) => return Err(Refusal::field("files", "must be empty if `other` is given")),
    };
    let found = differences(&before.machine, &after.machine);
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(v1::DiffVersionsResponse {
        before: before.version,
        after: after.version,
        weaker: count(found.iter().filter(|one| one.weaker).count()),
        omitted: count(found.len().saturating_sub(DIFFERENCES_MAX)),
        differences: found.into_iter().take(DIFFERENCES_MAX).map(shown).collect(),
    })
}

async fn deployed(call: &Call<'_>, field: &str, asked: &str) -> Result<Side, Refusal> {
    let (name, which) = names::version(&call.caller, field, asked)?;
    let (row, number) = numbered(call, name, which, asked).await?;
    let found = version(call, name, number, asked).await?;
    let compiled = machine(call, &found).await?.ok_or_else(|| Refusal::not_found("version", asked))?;
    let shown = of_version(&call.caller, &VersionSummary::of(&row, &found));
    Ok(Side { version: Some(shown), machine: compiled.0 })
}

fn of_bundle(message: &v1::DiffVersionsRequest) -> Result<Side, Refusal> {
    let compiled = compiled(&message.files, known("format", message.format)?)?;
    let Some(ready) = compiled.definition else { return Err(invalid(&compiled.findings)) };
    Ok(Side { version: None, machine: Arc::new(ready.machine) })
}

fn shown(difference: Difference) -> v1::Difference {
    let part = match difference.part {
        Part::State => v1::DifferencePart::State,
        Part::Route => v1::DifferencePart::Route,
        Part::Writes => v1::DifferencePart::Writes,
        Part::People => v1::DifferencePart::People,
        Part::Policy => v1::DifferencePart::Policy,
        Part::Other => v1::DifferencePart::Other,
    };
    let change = match difference.change {
        Change::Added => v1::DifferenceChange::Added,
        Change::Removed => v1::DifferenceChange::Removed,
        Change::Changed => v1::DifferenceChange::Changed,
    };
    v1::Difference {
        part: part.into(),
        change: change.into(),
        state: difference.state.unwrap_or_default(),
        subject: difference.subject,
        before: difference.before.unwrap_or_default(),
        after: difference.after.unwrap_or_default(),
        weaker: difference.weaker,
    }
}
