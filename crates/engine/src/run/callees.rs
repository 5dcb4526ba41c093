//! What the runs of a session call: found in the catalogue, directly or through one another, before a session starts.

use std::sync::Arc;
use switchward_machine::{Callee, CalleeKind, Digest, Machine, TenantId};
use switchward_state::limits::{CALL_DEPTH_MAX, CALLEES_MAX};
use switchward_state::run::Pinned;
use switchward_state::{Key, ReadRows, Reason, Rejection, View, ViewError};

/// All that these machines of the catalogue call, directly or through one another, each in the version that it will have.
/// A start of a session with these machines pins it.
///
/// A workflow that the catalogue lacks, or that has no active version or takes no data, is a NO_SUCH_WORKFLOW. Another
/// definition is a NOT_FOUND if the catalogue lacks it, and a STATE_MISMATCH otherwise. A cycle of callees is a
/// DEFINITION_INVALID; more than [`CALLEES_MAX`] of them, or calls deeper than [`CALL_DEPTH_MAX`], are a
/// QUOTA_EXCEEDED.
///
/// # Errors
/// A row cannot be read.
pub fn pin_callees(
    catalogue: &dyn View,
    tenant: TenantId,
    machines: impl IntoIterator<Item = Digest>,
) -> Result<Result<Vec<Pinned>, Rejection>, ViewError> {
    let rows: &dyn ReadRows = catalogue;
    let mut search = Search::new(rows, tenant, None);
    for digest in machines {
        let Some(machine) = rows.machine(tenant, digest)? else { continue };
        if let Err(bad) = search.look(&machine, digest)? {
            return Ok(Err(bad));
        }
    }
    Ok(match search.missing {
        Some(missing) => Err(missing),
        None => Ok(search.found),
    })
}

/// Says why a version cannot be the active one of its name: it calls a definition that the catalogue lacks, or it closes
/// a cycle of definitions that call one another.
pub(crate) fn check_callees(
    rows: &dyn ReadRows,
    tenant: TenantId,
    name: &str,
    machine: &Arc<Machine>,
) -> Result<Result<(), Rejection>, ViewError> {
    if machine.callees.is_empty() {
        return Ok(Ok(()));
    }
    for callee in machine.callees.iter().filter(|callee| callee.name != name) {
        if rows.definition(tenant, &callee.name)?.is_none() {
            return Ok(Err(not_deployed(name, callee)));
        }
    }
    let mut search = Search::new(rows, tenant, Some((name, machine)));
    match search.look(machine, machine.digest())? {
        Err(bad) if bad.reason == Reason::DefinitionInvalid => Ok(Err(bad)),
        // What has no active version may get one, and what is too deep may still change: a start looks again.
        Err(_) | Ok(_) => Ok(Ok(())),
    }
}

/// A walk through what machines call.
struct Search<'r> {
    rows: &'r dyn ReadRows,
    tenant: TenantId,
    /// The version that its name will have, whatever is active.
    instead: Option<(&'r str, &'r Arc<Machine>)>,
    found: Vec<Pinned>,
    /// How deep the calls of each callee that was found go, in the same order.
    depths: Vec<usize>,
    /// Where the walk is, from the outside in: names and machines.
    path: Vec<(String, Digest)>,
    /// The first that the catalogue lacks.
    missing: Option<Rejection>,
}

type Depth = Result<usize, Rejection>;

impl<'r> Search<'r> {
    fn new(rows: &'r dyn ReadRows, tenant: TenantId, instead: Option<(&'r str, &'r Arc<Machine>)>) -> Self {
        let (found, depths, path) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows, tenant, instead, found, depths, path, missing: None }
    }

    /// How deep a machine's calls go: 0 if it calls nothing.
    fn look(&mut self, machine: &Arc<Machine>, digest: Digest) -> Result<Depth, ViewError> {
        self.path.push((machine.meta.name.clone(), digest));
        let mut deepest = 0;
        for callee in &machine.callees {
            match self.callee(&machine.meta.name, callee)? {
                Err(bad) => return Ok(Err(bad)),
                Ok(depth) => deepest = deepest.max(depth + 1),
            }
        }
        self.path.pop();
        if self.path.len() + deepest > CALL_DEPTH_MAX {
            return Ok(Err(too_deep(&machine.meta.name)));
        }
        Ok(Ok(deepest))
    }

    /// How deep the calls of a callee go.
    fn callee(&mut self, by: &str, callee: &Callee) -> Result<Depth, ViewError> {
        if let Some(at) = self.found.iter().position(|pinned| pinned.callee == *callee) {
            return Ok(Ok(self.depths[at]));
        }
        let (version, digest, machine) = match self.in_catalogue(by, callee)? {
            Ok(found) => found,
            Err(missing) => {
                self.missing.get_or_insert(missing);
                return Ok(Ok(0));
            }
        };
        if let Some(at) = self.path.iter().position(|(_, known)| *known == digest) {
            let mut names: Vec<&str> = self.path.iter().skip(at).map(|(name, _)| name.as_str()).collect();
            names.push(&callee.name);
            let message = format!("these call one another without an end: {}", names.join(" -> "));
            return Ok(Err(Rejection::new(Reason::DefinitionInvalid, message)));
        }
        if self.path.len() > CALL_DEPTH_MAX {
            return Ok(Err(too_deep(by)));
        }
        let depth = match self.look(&machine, digest)? {
            Err(bad) => return Ok(Err(bad)),
            Ok(depth) => depth,
        };
        if self.found.len() >= CALLEES_MAX {
            let message = format!("more than {CALLEES_MAX} definitions are called in all");
            return Ok(Err(Rejection::new(Reason::QuotaExceeded, message)));
        }
        self.found.push(Pinned { callee: callee.clone(), version, machine: digest });
        self.depths.push(depth);
        Ok(Ok(depth))
    }

    /// The version of a callee that the catalogue has.
    fn in_catalogue(&self, by: &str, callee: &Callee) -> Result<Result<CalledMachine, Rejection>, ViewError> {
        if let Some((name, machine)) = self.instead
            && name == callee.name
            && callee.version.is_none()
        {
            return Ok(Ok((0, machine.digest(), Arc::clone(machine))));
        }
        let name = &callee.name;
        let missing = |why: &str| Ok(Err(absent(callee, format!("{by} calls {name}, {why}"))));
        let unfit = |why: &str| Ok(Err(uncallable(callee, format!("{by} calls {name}, {why}"))));
        let Some(definition) = self.rows.definition(self.tenant, name)? else {
            let message = "which is not in the catalogue; deploy it first";
            return missing(message);
        };
        if definition.archived.is_some() {
            let message = "which is archived; unarchive it";
            return unfit(message);
        }
        let Some(number) = callee.version.or(definition.active) else {
            let message = "which has no active version; activate one";
            return unfit(message);
        };
        let Some(version) = self.rows.version_at(&Key::version(self.tenant, name, number))? else {
            let message = "which has no such version";
            return missing(message);
        };
        let Some(machine) = self.rows.machine(self.tenant, version.machine)? else {
            return Err(ViewError(format!("the catalogue has no machine {}", version.machine)));
        };
        if !machine.opening.input_is_data {
            let message = "which takes no data and so cannot be called";
            return unfit(message);
        }
        Ok(Ok((number, version.machine, machine)))
    }
}

/// The refusal of a version that calls what the catalogue lacks.
fn not_deployed(by: &str, callee: &Callee) -> Rejection {
    let name = &callee.name;
    let message = format!(
        "{by} calls {name}, which is not in the catalogue; deploy {name} first, or deploy {by} without activating it \
         and activate it when {name} is there"
    );
    absent(callee, message)
}

/// The refusal of a call of what does not exist.
pub(crate) fn absent(callee: &Callee, message: String) -> Rejection {
    match callee.kind {
        CalleeKind::Workflow => no_workflow(callee, message),
        CalleeKind::Definition => Rejection::new(Reason::NotFound, message).fact("definition", &callee.name),
    }
}

/// The refusal of a call of what exists and cannot be called.
fn uncallable(callee: &Callee, message: String) -> Rejection {
    match callee.kind {
        CalleeKind::Workflow => no_workflow(callee, message),
        CalleeKind::Definition => {
            Rejection::new(Reason::StateMismatch, message).fact("definition", &callee.name)
        }
    }
}

fn no_workflow(callee: &Callee, message: String) -> Rejection {
    Rejection::new(Reason::NoSuchWorkflow, message).fact("workflow", &callee.name)
}

type CalledMachine = (u32, Digest, Arc<Machine>);

fn too_deep(name: &str) -> Rejection {
    let message = format!("the calls of {name} go more than {CALL_DEPTH_MAX} runs below the first");
    Rejection::new(Reason::QuotaExceeded, message)
}
