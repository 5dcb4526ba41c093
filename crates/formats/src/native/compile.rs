//! From a process to a machine.

use switchward_machine::{
    Decision, GateIx, GateKind, GateSpec, Layer, Machine, Meta, NodeIx, Opening, Otherwise, Pattern, Policy,
    Resolve, Rule, StatusWords, Templates,
};

use super::model::{Kind, Process, Trigger};
use super::{ROW, process, vertex};
use crate::codes::NOT_RUN;
use crate::document::{Node, Source, Span};
use crate::{Finding, Report, naming};

/// The status of a run that has begun.
const RUNNING: &str = "running";
const PAUSED: &str = "paused";

/// Compiles a process. Returns `None` if there is an error.
pub(super) fn compile(root: &Node, bytes: &[u8], report: &mut Report) -> Option<(String, Machine)> {
    let source = Source::new(bytes);
    let process = process::read(root, &source, 0, report)?;
    if report.errors() == 0 {
        report_unrun(&process, report);
    }
    if report.errors() > 0 {
        return None;
    }
    let name = process.name?.to_owned();
    let mut machine = assemble(process)?;
    machine.opening = Opening { input_is_data: true, warnings: report.warnings(), ..Opening::default() };
    naming::check_size(&machine, "the process", root, report);
    Some((name, machine))
}

/// Reports what the format has and this build does not run.
fn report_unrun(process: &Process<'_>, report: &mut Report) {
    let mut add = |what: &str, span: Span| {
        let message = format!("{what} is recognised, but this build does not run it");
        report.add(Finding::new(NOT_RUN, span, message));
    };
    for step in &process.nodes {
        match step.kind {
            Kind::NotRun(what) => add(what, step.type_span),
            Kind::Tool { .. }
            | Kind::Interaction { .. }
            | Kind::Agent(_)
            | Kind::Script { .. }
            | Kind::Condition
            | Kind::Final
            | Kind::Unread => {
                for route in step.routes.iter().filter(|route| route.trigger == Trigger::User) {
                    add("a transition with the trigger `user`", route.span);
                }
            }
        }
    }
}

/// Returns `None` if a part of the process could not be read.
fn assemble(process: Process<'_>) -> Option<Machine> {
    let asks = vec![(Decision::Approve, Resolve::Grant), (Decision::Refuse, Resolve::Deny)];
    let words = StatusWords { waiting: RUNNING.into(), at_gate: RUNNING.into(), suspended: PAUSED.into() };
    let description = process.description.filter(|text| !text.is_empty()).map(str::to_owned);
    Some(Machine {
        start: process.initial?,
        nodes: process.nodes.iter().map(|step| vertex::vertex(step, &process)).collect(),
        gates: vec![GateSpec::open_to_all(GateKind::ToolAsk, asks)],
        policy: Policy { layers: layers(&process), ask_gate: Some(GateIx(0)) },
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening::default(),
        words,
        meta: Meta { name: process.name?.to_owned(), format: ROW.name.into(), description },
        fields: Vec::new(),
        inputs: Vec::new(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        model: process.model.map(str::to_owned),
        templates: Templates::Strict,
        data_schema: process.context.schema,
        initial: process.context.initial,
    })
}

/// At each node its own tools are allowed, and for everything else the tenant's default holds.
fn layers(process: &Process<'_>) -> Vec<Layer> {
    let rule = |tool: &Pattern| Rule { pattern: tool.clone(), limits: Vec::new(), gate: None, args: None };
    let layer = |(at, kind): (u32, &Kind<'_>)| {
        let tools = match kind {
            Kind::Agent(agent) => agent.tools.as_slice(),
            Kind::Tool { .. }
            | Kind::Interaction { .. }
            | Kind::Script { .. }
            | Kind::Condition
            | Kind::Final
            | Kind::NotRun(_)
            | Kind::Unread => &[],
        };
        Layer {
            name: "tools".into(),
            covers: Pattern::new("*").expect("a built-in pattern is valid"),
            except: Vec::new(),
            deny: Vec::new(),
            ask: Vec::new(),
            allow: tools.iter().map(rule).collect(),
            otherwise: Otherwise::TenantDefault,
            at: Some(NodeIx(at)),
        }
    };
    (0..).zip(process.nodes.iter().map(|step| &step.kind)).map(layer).collect()
}
