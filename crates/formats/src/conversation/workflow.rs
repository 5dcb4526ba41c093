//! The whole workflow. See `docs/formats-conversation.md#the-file`.

use switchward_expr::Patterns;
use switchward_machine::limits::{NODES_MAX, TEXT_BYTES_MAX};
use switchward_machine::{
    Decision, Field, GateIx, GateKind, GateSpec, Input, Layer, Machine, Meta, NodeIx, Opening, Pattern,
    Policy, Resolve, StatusWords, Templates, analyse, reserved_keys,
};

use super::keys::Keys;
use super::reader::{Names, Reader};
use super::state::{Kind, State};
use super::transitions::Edge;
use super::{NAMING, ROW, graph, held, nodes, reserved, schema, states, tools, transitions};
use crate::codes::{INITIAL_DANGLING, NO_STATES, TOO_MANY_ENTRIES};
use crate::document::{Node, Source, Span};
use crate::limits::TOOL_RULES_MAX;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, naming, quoted};

const WORKFLOW: Shape = Shape {
    what: "the workflow",
    keys: &["name", "description", "initial", "global_tools", "state_schema", "states", "transitions"],
    ignored: &[],
    hints: &[("transitions", "write `[]` if no state leads to another")],
};

/// The status of a run that neither is queued nor has ended.
const ACTIVE: &str = "active";

/// Compiles a workflow. Returns `None` if its states or its name are too broken for a machine; the report's errors say
/// whether the rest is right.
pub(super) fn compile(root: &Node, bytes: &[u8], report: &mut Report) -> Option<(String, Machine)> {
    let fields = Fields::open(root, &WORKFLOW, report)?;
    let name = fields.required("name", report).and_then(|node| naming::named(node, "`name`", NAMING, report));
    let description = fields.optional("description");
    let description = description.and_then(|node| shape::text(node, "`description`", TEXT_BYTES_MAX, report));
    let states = fields.required("states", report);
    let transitions = fields.required("transitions", report);
    let items = states.and_then(|node| shape::list(node, "`states`", NODES_MAX, report))?;
    if items.is_empty() {
        let span = states.map_or(root.span, |node| node.span);
        report.add(Finding::new(NO_STATES, span, "a workflow needs at least one state"));
        return None;
    }
    let (names, keys) = (Names::new(items), Keys::default());
    let source = Source::new(bytes);
    let patterns = Patterns::default();
    let mut cx = Reader { report, source, names, keys, fields: Vec::new(), copies: 0, patterns };
    let start = start(fields.optional("initial"), &mut cx);
    let global = fields.optional("global_tools").map(|node| tools::read(node, "`global_tools`", &mut cx));
    cx.fields = schema::read(fields.optional("state_schema"), &mut cx);
    let states = states::read(items, name, &mut cx);
    let edges = transitions.map(|node| transitions::read(node, &states, &mut cx));
    let edges = edges.unwrap_or_else(|| states.iter().map(|_| Vec::new()).collect());

    cx.keys.report_unknown(cx.report);
    let layers = layers(root, global.as_deref(), &states, &mut cx);
    if cx.report.errors() == 0 {
        warn(&states, &edges, &layers, &mut cx);
        cx.keys.warn_below(&kept_by(&states), cx.report);
    }
    let spans: Vec<Span> = states.iter().map(|state| state.span).collect();
    let mut machine = assemble(start?, states, edges, std::mem::take(&mut cx.fields));
    if cx.report.errors() == 0 {
        let unreachable = analyse(&machine).unreachable;
        graph::warn_paths(&machine, &unreachable, &spans, cx.report);
        cx.keys.warn(&unreachable, cx.report);
    }
    let report = cx.report;
    machine.policy.layers = layers;
    let name = name?;
    machine.opening = Opening { input_is_data: true, warnings: report.warnings(), ..Opening::default() };
    let description = description.filter(|text| !text.is_empty()).map(str::to_owned);
    machine.meta = Meta { name: name.to_owned(), format: ROW.name.into(), description };
    naming::check_size(&machine, "the workflow", root, report);
    Some((name.to_owned(), machine))
}

/// The start: the first listed state if none is named.
fn start<'a>(node: Option<&'a Node>, cx: &mut Reader<'a, '_>) -> Option<NodeIx> {
    let Some(node) = node else { return Some(NodeIx(0)) };
    let name = shape::text(node, "`initial`", usize::MAX, cx.report)?;
    let found = cx.names.find(name);
    if found.is_none() {
        let message = format!("`initial` names the state {}, which does not exist", quoted(name));
        let names = cx.names.all();
        shape::dangling(INITIAL_DANGLING, node, message, names, cx.report);
    }
    found
}

/// If the workflow or a state lists any, the state is closed except for those.
fn layers(
    root: &Node,
    global: Option<&[Pattern]>,
    states: &[State<'_>],
    cx: &mut Reader<'_, '_>,
) -> Vec<Layer> {
    let own = states.iter().filter_map(|state| state.tools.as_ref()).map(Vec::len).sum::<usize>();
    let rules = global.map_or(0, <[_]>::len).saturating_mul(states.len()).saturating_add(own);
    if rules > TOOL_RULES_MAX {
        let message =
            format!("the tools make {rules} rules over all states, and at most {TOOL_RULES_MAX} are allowed");
        let span = root.get("global_tools").map_or(root.span, |node| node.span);
        cx.report.add(Finding::new(TOO_MANY_ENTRIES, span, message));
        return Vec::new();
    }
    let layer = |(at, state): (u32, &State<'_>)| tools::layer(NodeIx(at), global, state.tools.as_deref());
    (0..).zip(states).map(layer).collect()
}

/// Warnings that need several parts of the workflow.
fn warn(states: &[State<'_>], edges: &[Vec<Edge<'_>>], layers: &[Layer], cx: &mut Reader<'_, '_>) {
    for (state, edges) in states.iter().zip(edges) {
        graph::warn_ports(state, edges, cx.report);
        graph::warn_resent(state, &cx.fields, cx.report);
    }
    held::warn(states, edges, cx.report);
    for (layer, edges) in layers.iter().zip(edges) {
        graph::warn_tools(layer, edges, cx.report);
    }
}

/// The states below whose names the engine writes results, with the reserved key of each.
fn kept_by<'a>(states: &[State<'a>]) -> Vec<(&'static str, &'a str)> {
    let kept = |state: &State<'a>| {
        let own = match state.kind {
            Kind::Approval(_) => Some(reserved_keys::APPROVAL),
            Kind::Task(_) => Some(reserved_keys::TASKS),
            Kind::Event(..) | Kind::Reply(..) => Some(reserved_keys::WAIT),
            Kind::Conversation
            | Kind::Action
            | Kind::Operations(_)
            | Kind::Output(_)
            | Kind::Timer(_)
            | Kind::Work(_)
            | Kind::Delegate(_)
            | Kind::Subworkflow(_)
            | Kind::NotRun => None,
        };
        let held = state.gate.as_ref().map(|_| reserved_keys::APPROVAL);
        [own, held].into_iter().flatten().map(|key| (key, state.name)).collect::<Vec<_>>()
    };
    states.iter().flat_map(kept).collect()
}

fn assemble(start: NodeIx, states: Vec<State<'_>>, edges: Vec<Vec<Edge<'_>>>, fields: Vec<Field>) -> Machine {
    let names: Vec<String> = states.iter().map(|state| state.name.to_owned()).collect();
    let asks = vec![(Decision::Approve, Resolve::Grant), (Decision::Refuse, Resolve::Deny)];
    let mut gates = vec![GateSpec::open_to_all(GateKind::ToolAsk, asks)];
    let mut callees = Vec::new();
    let nodes = states.into_iter().zip(edges);
    let vertex = |(state, edges)| nodes::vertex(state, edges, &names, &mut gates, &mut callees);
    Machine {
        start,
        nodes: nodes.map(vertex).collect(),
        gates,
        policy: Policy { layers: Vec::new(), ask_gate: Some(GateIx(0)) },
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening::default(),
        words: StatusWords { waiting: ACTIVE.into(), at_gate: ACTIVE.into(), suspended: ACTIVE.into() },
        meta: Meta::default(),
        fields,
        inputs: Input::ALL.to_vec(),
        reserved_keys: reserved::KEYS.map(str::to_owned).to_vec(),
        callees,
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: Templates::Lenient,
    }
}
