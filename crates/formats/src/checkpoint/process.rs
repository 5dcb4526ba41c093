//! The whole process. See `docs/formats-checkpoint.md#the-process` and `docs/formats-checkpoint.md#the-file`.

use switchward_machine::limits::TEXT_BYTES_MAX;
use switchward_machine::{
    Breach, Budget, BudgetUnit, Decision, Ending, GateIx, GateKind, GateSpec, Machine, Meta, Num, Opening,
    Outcome, Param, ParamIx, Policy, Resolve, StatusWords, Templates,
};

use super::states::States;
use super::{NAMING, ROW, graph, mail, policy, states, tools};
use crate::document::Node;
use crate::shape::{self, Fields, Shape};
use crate::{Report, naming};

const PROCESS: Shape = Shape {
    what: "the process",
    keys: &[
        "name",
        "initial",
        "initial_prompt",
        "states",
        "session_budget_usd",
        "email_config",
        "allowed_tools",
        "policy",
    ],
    ignored: &["id", "createdAt", "updatedAt"],
    hints: &[],
};

/// The index of the gate of every `ask` in each machine.
pub(super) const TOOL_ASK: GateIx = GateIx(0);
/// The index of the gate of every `notify_human`; present only if one is used.
pub(super) const NOTIFY: GateIx = GateIx(1);
/// The parameter that holds the session's budget, so that it can be raised on a live session.
const COST_PARAM: &str = "cost_usd";

/// Compiles a process. Returns `None` if its states or its name are too broken for a machine; the report's errors say
/// whether the rest is right.
pub(super) fn compile(root: &Node, _: &[u8], report: &mut Report) -> Option<(String, Machine)> {
    // What the reader refused is not in the tree, and may have led to a state.
    let whole = report.errors() == 0;
    let fields = Fields::open(root, &PROCESS, report)?;
    let name = fields.required("name", report).and_then(|node| naming::named(node, "`name`", NAMING, report));
    let states = states::read(&fields, report);
    let text = fields
        .optional("initial_prompt")
        .and_then(|node| shape::text(node, "`initial_prompt`", TEXT_BYTES_MAX, report));
    let budget = fields
        .optional("session_budget_usd")
        .and_then(|node| shape::money(node, "`session_budget_usd`", report));
    let policy = policy::read(fields.optional("policy"), report);
    let tools = tools::read(fields.optional("allowed_tools"), report);
    let mail = mail::read(fields.optional("email_config"), report);
    policy::notice(fields.optional("policy"), &policy.layer, report);

    let states = states?;
    let sound_states = (whole && states.sound).then_some(states.entries);
    let mut machine = assemble(states);
    if let Some(entries) = sound_states {
        graph::warn(&machine, entries, report);
    }
    machine.policy.layers = vec![policy.layer, tools];
    if let Some(cap) = budget {
        machine.params.push(Param { name: COST_PARAM.into(), value: cap.0 });
        machine.budgets.push(session_budget());
    }
    if let Some(mail) = mail {
        machine.policy.layers.push(mail.layer);
        machine.budgets.extend(mail.budget);
    }
    let name = name?;
    machine.opening = Opening {
        role: policy.role,
        text: text.map(str::to_owned),
        warnings: report.warnings(),
        ..Opening::default()
    };
    machine.meta = Meta { name: name.to_owned(), format: ROW.name.into(), description: None };
    naming::check_size(&machine, "the process", root, report);
    Some((name.to_owned(), machine))
}

/// Tool calls are denied once the cost reaches the cap; `process_step` is never denied, so that a
/// session can always be closed.
fn session_budget() -> Budget {
    Budget {
        unit: BudgetUnit::UsdMicros,
        cap: Num::Param(ParamIx(0)),
        breach: Breach::DenyCalls,
        covers: tools::pattern("*"),
        except: vec![tools::process_step()],
    }
}

/// The parts that do not depend on the policy.
fn assemble(states: States<'_>) -> Machine {
    let asks = vec![(Decision::Approve, Resolve::Grant), (Decision::Refuse, Resolve::Deny)];
    let mut gates = vec![GateSpec::open_to_all(GateKind::ToolAsk, asks)];
    if states.notifies {
        let blocked = Resolve::End(Ending::plain(Outcome::Blocked));
        let reviews = vec![(Decision::Approve, Resolve::TakeHeld), (Decision::Refuse, blocked)];
        gates.push(GateSpec::open_to_all(GateKind::Notify, reviews));
    }
    Machine {
        start: states.start,
        nodes: states.nodes,
        gates,
        policy: Policy { layers: Vec::new(), ask_gate: Some(TOOL_ASK) },
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening::default(),
        words: StatusWords { waiting: "active".into(), at_gate: "paused".into(), suspended: "paused".into() },
        meta: Meta::default(),
        fields: Vec::new(),
        inputs: Vec::new(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: Templates::Lenient,
    }
}
