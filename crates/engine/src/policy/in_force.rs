//! What holds for a call of a session: the machine's own policy, the policy documents that were attached to the definitions
//! of the runs that call when the session began, and the tenant's as they are now.

use std::sync::Arc;
use switchward_machine::{Budget, BudgetUnit, Layer, Machine, Num, RunId, SessionId, TenantId};
use switchward_state::limits::TENANT_LEDGER;
use switchward_state::policy::COST_OF_DOCUMENTS;
use switchward_state::run::Run;
use switchward_state::session::Session;
use switchward_state::{Key, ReadRows, ViewError};

use crate::policy::assess::{cap, machine_of};

/// The parameter of a session's cap on money, by name.
pub(crate) const COST: &str = "cost_usd";

/// Everything that holds for a call.
pub(crate) struct InForce {
    /// Of the run that calls.
    pub(crate) machine: Arc<Machine>,
    /// The run that calls.
    pub(crate) run: Run,
    /// Its number.
    pub(crate) caller: RunId,
    /// Those of the definitions, the outermost run's first, then the tenant's.
    pub(crate) documents: Vec<Document>,
    /// What denies workers the control of their process, if the definition bounds what they write.
    pub(crate) control: Option<Layer>,
    /// What the session may use.
    pub(crate) caps: Vec<Cap>,
}

/// A policy document that holds.
pub(crate) struct Document {
    /// What its layer is called: `definition:NAME@VERSION` or `tenant:NAME@VERSION`.
    pub(crate) layer: String,
    /// Whose ledger its limits count in.
    pub(crate) ledger: String,
    /// Whether it is the tenant's, whose caps only its admin sets.
    pub(crate) of_tenant: bool,
    /// Its layers and caps.
    pub(crate) machine: Arc<Machine>,
}

/// A cap on what the session uses.
pub(crate) struct Cap {
    /// The document that sets it; `None` if it is the definition's own.
    pub(crate) layer: Option<String>,
    /// What it caps.
    pub(crate) budget: Budget,
    /// The cap, in the unit.
    pub(crate) value: u64,
}

/// What holds for a call of this run.
pub(crate) fn in_force(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    run: RunId,
) -> Result<InForce, ViewError> {
    let at = rows.run(tenant, id, run)?;
    let machine = machine_of(rows, tenant, &at)?;
    let documents = documents(rows, tenant, id, session, &at)?;
    let caps = caps(rows, tenant, id, session, &documents)?;
    let control = machine.data_schema.is_some().then(Layer::of_control_tools);
    Ok(InForce { machine, run: Run::clone(&at), caller: run, documents, control, caps })
}

/// The documents that hold for a call of this run.
pub(crate) fn documents(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    run: &Run,
) -> Result<Vec<Document>, ViewError> {
    let mut found = Vec::new();
    if !session.policies.is_empty() {
        let mut names = vec![run.definition.clone()];
        let mut above = run.parent;
        while let Some(parent) = above {
            let caller = rows.run(tenant, id, parent.run)?;
            names.push(caller.definition.clone());
            above = caller.parent;
        }
        names.reverse();
        names.dedup();
        for name in names {
            for pinned in session.policies.iter().filter(|pinned| pinned.of == name) {
                let machine = document(rows, tenant, pinned.machine)?;
                let layer = format!("definition:{}@{}", pinned.name, pinned.version);
                found.push(Document { layer, ledger: name.clone(), of_tenant: false, machine });
            }
        }
    }
    if let Some(tenancy) = rows.tenancy_at(&Key::tenancy(tenant))? {
        for policy in &tenancy.policies {
            let machine = document(rows, tenant, policy.machine)?;
            let layer = format!("tenant:{}@{}", policy.name, policy.version);
            found.push(Document { layer, ledger: TENANT_LEDGER.to_owned(), of_tenant: true, machine });
        }
    }
    found.retain(|document| is_for(&document.machine, &session.role));
    Ok(found)
}

/// Whether a document speaks to sessions of this role; one that names none speaks to all.
pub(crate) fn is_for(document: &Machine, role: &str) -> bool {
    document.opening.role.as_ref().is_none_or(|wanted| wanted == role)
}

fn document(
    rows: &dyn ReadRows,
    tenant: TenantId,
    digest: switchward_machine::Digest,
) -> Result<Arc<Machine>, ViewError> {
    let found = rows.machine(tenant, digest)?;
    found.ok_or_else(|| ViewError(format!("the policy document {digest} is not installed")))
}

/// The least cap of a session on each of these units, of its root run's machine and of these documents; `None` for a unit
/// without a cap.
pub(crate) fn least_caps<const N: usize>(
    root: &Run,
    machine: &Machine,
    documents: &[Document],
    units: [BudgetUnit; N],
) -> [Option<u64>; N] {
    let mut least = [None; N];
    each_cap(root, machine, documents, &mut |_, budget, value| {
        for (unit, least) in units.iter().zip(&mut least) {
            if budget.unit == *unit {
                *least = Some(least.map_or(value, |least: u64| least.min(value)));
            }
        }
    });
    least
}

/// The caps of a session: those of its root run's machine, and those of these documents.
fn caps(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    documents: &[Document],
) -> Result<Vec<Cap>, ViewError> {
    let root = rows.run(tenant, id, session.root)?;
    let machine = machine_of(rows, tenant, &root)?;
    let mut all = Vec::new();
    each_cap(&root, &machine, documents, &mut |layer, budget, value| {
        all.push(Cap { layer: layer.cloned(), budget: budget.clone(), value });
    });
    Ok(all)
}

/// Visits each cap of a session with the layer of the document that sets it, by its root run and that one's machine.
fn each_cap(
    root: &Run,
    machine: &Machine,
    documents: &[Document],
    visit: &mut dyn FnMut(Option<&String>, &Budget, u64),
) {
    for budget in &machine.budgets {
        visit(None, budget, cap(budget, machine, root));
    }
    let raised = raised(machine, root);
    for document in documents {
        for budget in &document.machine.budgets {
            let stated = if let Num::Literal(value) = budget.cap { value } else { 0 };
            let lifted = if document.of_tenant || budget.unit != BudgetUnit::UsdMicros { 0 } else { raised };
            visit(Some(&document.layer), budget, stated.max(lifted));
        }
    }
}

/// What an operator has raised the session's cap on money to; 0 if nobody has.
fn raised(machine: &Machine, root: &Run) -> u64 {
    let param = machine.param_named(COST).unwrap_or(COST_OF_DOCUMENTS);
    root.params.iter().find(|(known, _)| *known == param).map_or(0, |(_, value)| *value)
}
