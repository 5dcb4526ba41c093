//! From a node of a process to one of the machine.

use serde_json::{Map, Value, json};
use switchward_expr::Logic;
use switchward_machine::{
    Accept, Act, ActIx, ActKind, Attempts, Contract, EndReason, Ending, Exit, Guard, Initial, NextRule,
    NoExit, Node as Vertex, Op, Outcome, Pattern, Port, ResultUse, Target, Trigger as On, Work, WorkKind,
    Writes,
};
use switchward_schema::Schema;

use super::model::{Agent, Condition, Kind, Process, Route, Script, Step, Trigger};

/// The key under which a worker finds what the node hands over.
const INPUT: &str = "input";

/// The node of a step.
pub(super) fn vertex(step: &Step<'_>, process: &Process<'_>) -> Vertex {
    let mut vertex = Vertex::new(step.name, acts(step, process));
    vertex.exits = step.routes.iter().map(|route| exit(route, process)).collect();
    vertex.on_no_exit = match step.kind {
        Kind::Final => NoExit::End(Ending::plain(Outcome::Completed)),
        Kind::Tool { .. }
        | Kind::Interaction { .. }
        | Kind::Agent(_)
        | Kind::Script { .. }
        | Kind::Condition
        | Kind::NotRun(_)
        | Kind::Unread => NoExit::Fail(EndReason::NoTransition),
    };
    vertex.attempts = Attempts { max: step.retries.saturating_add(1), backoff_ms: 0 };
    vertex.writes = Writes::Only(step.writes.iter().map(|name| (*name).to_owned()).collect());
    vertex.model = match &step.kind {
        Kind::Interaction { model, .. } | Kind::Agent(Agent { model, .. }) => model.map(str::to_owned),
        Kind::Tool { .. }
        | Kind::Script { .. }
        | Kind::Condition
        | Kind::Final
        | Kind::NotRun(_)
        | Kind::Unread => None,
    };
    vertex
}

fn exit(route: &Route<'_>, process: &Process<'_>) -> Exit {
    let target = usize::try_from(route.to.0).ok().and_then(|at| process.nodes.get(at));
    let (on, word) = match route.trigger {
        Trigger::Agent => {
            let name = target.map_or_else(String::new, |step| step.name.to_owned());
            (On::Agent(name), "agent")
        }
        Trigger::Auto | Trigger::User => (On::Auto { event: false }, "auto"),
    };
    let guard = match &route.guard {
        Condition::Always => Guard::Always,
        Condition::Never => never(),
        Condition::Logic(logic) => Guard::Logic(logic.clone()),
    };
    let label = route.label.unwrap_or(word).to_owned();
    Exit { guard, label, ..Exit::plain(on, Target::Node(route.to)) }
}

fn never() -> Guard {
    Guard::Logic(Logic::guard(&Value::Bool(false)).expect("false is a condition"))
}

fn acts(step: &Step<'_>, process: &Process<'_>) -> Vec<Act> {
    let one = |kind| vec![Act { kind, then: Vec::new() }];
    match &step.kind {
        Kind::Tool { call: None, update } => one(ActKind::Do(set(update))),
        Kind::Tool { call: Some(call), update } => {
            let fixed = json!({ "tool": call.name });
            let work = ActKind::Work(Work {
                accept: Some(contract(None, NextRule::Free, ResultUse::Deduce)),
                ..handed(WorkKind::Tool, &fixed, &call.input)
            });
            if update.is_empty() {
                return one(work);
            }
            let then = vec![(Port::Done, ActIx(1))];
            vec![Act { kind: work, then }, Act { kind: ActKind::Do(set(update)), then: Vec::new() }]
        }
        Kind::Interaction { name, input, .. } => {
            let fixed = json!({ "interaction": name });
            let accept = contract(derived(step, process, &[]), NextRule::Free, ResultUse::Update);
            one(ActKind::Work(Work { accept: Some(accept), ..handed(WorkKind::Interaction, &fixed, input) }))
        }
        Kind::Agent(agent) => one(ActKind::Work(agent_work(agent, step, process))),
        Kind::Script { name, input, timeout } => {
            let fixed = script(name, process.scripts.get(name), *timeout);
            // The schema cannot describe what it does not name.
            let known = |name: &&str| process.context.knows(name);
            let schema = step.writes.iter().all(known).then(|| derived(step, process, &[])).flatten();
            let accept = Some(contract(schema, NextRule::Free, ResultUse::Update));
            one(ActKind::Work(Work { accept, ..handed(WorkKind::Script, &fixed, input) }))
        }
        Kind::Condition | Kind::Final | Kind::NotRun(_) | Kind::Unread => one(ActKind::Do(Vec::new())),
    }
}

/// Literals, which are written as they are.
fn set(update: &[(&str, String)]) -> Vec<Op> {
    let op =
        |(key, value): &(&str, String)| Op::Set(Initial { key: (*key).to_owned(), value: value.clone() });
    update.iter().map(op).collect()
}

/// Work of a kind that is handed `fixed` as it is, and the input of its node with its templates filled in.
fn handed(kind: WorkKind, fixed: &Value, input: &Option<String>) -> Work {
    let input = input.as_ref().map(|input| format!(r#"{{"{INPUT}":{input}}}"#));
    Work { input, literal: Some(fixed.to_string()), ..Work::plain(kind) }
}

fn agent_work(agent: &Agent<'_>, step: &Step<'_>, process: &Process<'_>) -> Work {
    let names = agent_exits(step, process);
    let next = match names.len() {
        0 => NextRule::Free,
        1 => NextRule::Lone,
        _ => NextRule::Needed,
    };
    let prompt = Value::from(agent.prompt);
    let input = match &agent.input {
        None => format!(r#"{{"prompt":{prompt}}}"#),
        Some(input) => format!(r#"{{"{INPUT}":{input},"prompt":{prompt}}}"#),
    };
    let tools: Vec<&str> = agent.tools.iter().map(Pattern::as_str).collect();
    let literal = Some(json!({ "tools": tools }).to_string());
    let accept = Some(contract(derived(step, process, &names), next, ResultUse::Update));
    Work { input: Some(input), literal, accept, ..Work::plain(WorkKind::Agent) }
}

/// The nodes that the agent of a node may choose, each once, in the author's order.
fn agent_exits(step: &Step<'_>, process: &Process<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for route in step.routes.iter().filter(|route| route.trigger == Trigger::Agent) {
        let target = usize::try_from(route.to.0).ok().and_then(|at| process.nodes.get(at));
        names.extend(target.map(|step| step.name.to_owned()).filter(|name| !names.contains(name)));
    }
    names
}

/// What a result may be: the fields of `writes` that the schema has, and an exit to choose.
fn derived(step: &Step<'_>, process: &Process<'_>, exits: &[String]) -> Option<Schema> {
    let writes: Vec<String> = step.writes.iter().map(|name| (*name).to_owned()).collect();
    process.context.schema.as_ref().map(|schema| schema.derive(&writes, exits))
}

fn contract(schema: Option<Schema>, next: NextRule, into: ResultUse) -> Accept {
    Accept::Contract(Contract { schema, next, into })
}

fn script(name: &str, script: Option<&Script<'_>>, timeout: u64) -> Value {
    let Some(script) = script else { return json!({ "script": name }) };
    let files: Map<String, Value> =
        script.files.iter().map(|(path, content)| ((*path).to_owned(), Value::from(*content))).collect();
    json!({
        "script": name,
        "language": script.language,
        "entrypoint": script.entrypoint,
        "files": files,
        "packages": script.packages,
        "timeout_seconds": timeout,
    })
}
