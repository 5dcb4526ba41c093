//! The machines of native processes.

use serde_json::json;
use switchward_expr::Logic;
use switchward_formats::{Compiled, Format, compile_file};
use switchward_machine::{
    Accept, Act, ActIx, ActKind, Attempts, EndReason, Ending, Exit, Guard, Initial, Machine, NextRule,
    NoExit, NodeIx, Op, Outcome, Port, ResultUse, Target, Templates, Trigger, Work, WorkKind, Writes,
};
use switchward_schema::Schema;

use super::support::{clean, compile_text};

/// A process with these nodes before its end.
fn process(nodes: &str) -> String {
    format!(
        "format_version: 1\nprocess: p\ninitial: a\n\
         context: {{schema: {{properties: {{amount: {{type: number}}, note: {{}}}}}}, initial: {{note: x}}}}\n\
         nodes:\n{nodes}  end: {{type: final}}\n"
    )
}

/// The machine of these nodes.
#[track_caller]
fn machine(nodes: &str) -> Machine {
    clean(&process(nodes)).machine
}

/// The only work of the first node.
#[track_caller]
fn work(nodes: &str) -> Work {
    let machine = machine(nodes);
    match machine.nodes[0].acts.as_slice() {
        [Act { kind: ActKind::Work(work), then }] if then.is_empty() => work.clone(),
        other => panic!("{other:?}"),
    }
}

/// A text as JSON.
fn read(text: Option<&String>) -> serde_json::Value {
    serde_json::from_str(text.expect("there is one")).expect("it is JSON")
}

fn schema() -> Schema {
    let value = json!({"properties": {"amount": {"type": "number"}, "note": {}}});
    Schema::new(&value).expect("a schema")
}

#[test]
fn a_process_says_what_its_machine_is() {
    let text = process("  a: {type: tool, config: {context_update: {}}, transitions: [{to: end}]}\n");
    let text = text.replace("initial: a\n", "initial: a\nmodel: m-1\ndescription: It ends.\n");
    let definition = clean(&text.replace("process: p", "process: Sales, EU (50 %)"));
    let machine = &definition.machine;
    assert_eq!(definition.name, "Sales, EU (50 %)");
    assert_eq!((machine.meta.name.as_str(), machine.meta.format.as_str()), ("Sales, EU (50 %)", "native"));
    assert_eq!(machine.meta.description.as_deref(), Some("It ends."));
    assert_eq!((machine.start, machine.model.as_deref()), (NodeIx(0), Some("m-1")));
    assert_eq!(machine.data_schema, Some(schema()));
    assert_eq!(machine.initial, [Initial { key: "note".into(), value: "\"x\"".into() }]);
    assert_eq!(machine.templates, Templates::Strict);
    assert!(machine.opening.input_is_data && machine.inputs.is_empty());
    assert_eq!(Machine::decode(&machine.encode()).as_ref(), Ok(machine));
}

#[test]
fn a_final_node_ends_and_any_other_fails_without_an_exit() {
    let machine = machine("  a: {type: tool, tool: t, max_retries: 2, transitions: [{to: end}]}\n");
    let [first, last] = machine.nodes.as_slice() else { panic!("two nodes") };
    assert_eq!(first.on_no_exit, NoExit::Fail(EndReason::NoTransition));
    assert_eq!(first.attempts, Attempts { max: 3, backoff_ms: 0 });
    assert_eq!(first.writes, Writes::Only(Vec::new()));
    assert_eq!(last.on_no_exit, NoExit::End(Ending::plain(Outcome::Completed)));
    assert_eq!((last.exits.len(), last.attempts.max), (0, 1));
}

#[test]
fn transitions_keep_their_order_their_guards_and_their_labels() {
    let machine = machine(
        "  a:\n    type: tool\n    tool: t\n    transitions:\n\
         \x20     - {to: end, guard: {\">\": [{var: amount}, 1]}, label: large}\n\
         \x20     - {to: a, guard: false}\n\
         \x20     - {to: end}\n",
    );
    let auto = |guard, label: &str, to| {
        let plain = Exit::plain(Trigger::Auto { event: false }, Target::Node(NodeIx(to)));
        Exit { guard, label: label.into(), ..plain }
    };
    let logic = |value| Guard::Logic(Logic::guard(&value).expect("a guard"));
    let large = logic(json!({">": [{"var": "amount"}, 1]}));
    let exits =
        [auto(large, "large", 1), auto(logic(json!(false)), "auto", 0), auto(Guard::Always, "auto", 1)];
    assert_eq!(machine.nodes[0].exits, exits);
}

#[test]
fn a_condition_tries_its_default_last() {
    let machine = machine(
        "  a: {type: condition, branches: [{to: end, default: true}, {to: b, when: true}]}\n\
         \x20 b: {type: condition, branches: [{to: end, default: true}]}\n",
    );
    let node = &machine.nodes[0];
    let targets: Vec<&Target> = node.exits.iter().map(|exit| &exit.to).collect();
    assert_eq!(targets, [&Target::Node(NodeIx(1)), &Target::Node(NodeIx(2))]);
    assert_eq!(node.acts, [Act { kind: ActKind::Do(Vec::new()), then: Vec::new() }]);
}

#[test]
fn a_tool_is_called_and_then_its_literals_are_set() {
    let call = work(
        "  a: {type: tool, tool: t, input: {n: \"{{amount}}\"}, writes: [note], transitions: [{to: end}]}\n",
    );
    assert_eq!((call.kind, call.turn_ends), (WorkKind::Tool, false));
    assert_eq!(read(call.input.as_ref()), json!({"input": {"n": "{{amount}}"}}));
    assert_eq!(read(call.literal.as_ref()), json!({"tool": "t"}));
    let Some(Accept::Contract(contract)) = call.accept else { panic!("a contract") };
    assert_eq!((contract.schema, contract.next, contract.into), (None, NextRule::Free, ResultUse::Deduce));

    let both = machine(
        "  a: {type: tool, tool: t, config: {context_update: {note: \"{{amount}}\"}}, writes: [note], \
         transitions: [{to: end}]}\n",
    );
    let set = Op::Set(Initial { key: "note".into(), value: "\"{{amount}}\"".into() });
    let [first, second] = both.nodes[0].acts.as_slice() else { panic!("two acts") };
    assert_eq!(first.then, [(Port::Done, ActIx(1))]);
    assert_eq!((&second.kind, second.then.len()), (&ActKind::Do(vec![set]), 0));
}

#[test]
fn what_a_model_returns_is_bound_by_what_its_node_writes() {
    let ask = "  a: {type: interaction, interaction: i, writes: [amount], transitions: [{to: end}]}\n";
    let ask = work(ask);
    assert_eq!((ask.kind, ask.input.as_ref()), (WorkKind::Interaction, None));
    assert_eq!(read(ask.literal.as_ref()), json!({"interaction": "i"}));
    let Some(Accept::Contract(contract)) = ask.accept else { panic!("a contract") };
    assert_eq!(contract.schema, Some(schema().derive(&["amount".into()], &[])));
    assert_eq!(contract.into, ResultUse::Update);
}

#[test]
fn an_agent_chooses_among_its_exits() {
    let agent = |transitions: &str| {
        let node = "type: agent, prompt: \"On {{note}}.\", tools: [x], writes: [amount]";
        let work = work(&format!("  a: {{{node}, transitions: [{transitions}]}}\n"));
        assert_eq!(read(work.input.as_ref()), json!({"prompt": "On {{note}}."}));
        assert_eq!(read(work.literal.as_ref()), json!({"tools": ["x"]}));
        let Some(Accept::Contract(contract)) = work.accept else { panic!("a contract") };
        (contract.next, contract.schema)
    };
    let exits = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Some(schema().derive(&["amount".into()], &names))
    };
    let (end, again) = ("{to: end, trigger: agent}", "{to: a, trigger: agent}");
    assert_eq!(agent("{to: end}"), (NextRule::Free, exits(&[])));
    assert_eq!(agent(&format!("{end}, {{to: end}}")), (NextRule::Lone, exits(&["end"])));
    assert_eq!(agent(&format!("{end}, {again}, {end}")), (NextRule::Needed, exits(&["end", "a"])));
}

#[test]
fn tools_of_an_agent_are_allowed_at_its_node_alone() {
    let machine =
        machine("  a: {type: agent, prompt: P, model: m-2, tools: [\"x:*\"], transitions: [{to: end}]}\n");
    let [own, other] = machine.policy.layers.as_slice() else { panic!("a layer for each node") };
    assert_eq!((own.at, own.allow.len(), own.deny.len()), (Some(NodeIx(0)), 1, 0));
    assert_eq!(own.allow[0].pattern.as_str(), "x:*");
    assert!(other.is_unwritten() && other.at == Some(NodeIx(1)));
    assert_eq!(machine.nodes[0].model.as_deref(), Some("m-2"));
}

const JSON: &str = r#"{
  "format_version": 1, "process": "p", "initial": "a",
  "context": {"schema": {"properties": {"amount": {"type": "number", "minimum": 0.5}}}, "initial": {"amount": 1}},
  "nodes": {
    "a": {"type": "condition", "branches": [
      {"to": "b", "when": {"and": [{">": [{"var": "amount"}, 10]}, true]}, "label": "yes"},
      {"to": "end", "default": true}
    ]},
    "b": {"type": "agent", "prompt": "a\nb {{amount}}", "writes": ["amount"], "transitions": [{"to": "end"}]},
    "end": {"type": "final", "metadata": {"no": null}}
  }
}"#;

const YAML: &str = "\
format_version: 1
process: p
initial: a
context:
  schema:
    properties:
      amount: {type: number, minimum: 0.5}
  initial: {amount: 1}
nodes:
  a:
    type: condition
    branches:
      - {to: b, when: {and: [{'>': [{var: amount}, 10]}, true]}, label: yes}
      - {to: end, default: true}
  b:
    type: agent
    prompt: |-
      a
      b {{amount}}
    writes: [amount]
    transitions: [{to: end}]
  end: {type: final, metadata: {no: null}}
";

#[test]
fn json_and_yaml_give_one_machine() {
    let compiled = |file: &str, text: &str| -> Machine {
        let Compiled { format, findings, definition } = compile_text(file, text);
        assert_eq!((format, findings), (Some(Format::Native), Vec::new()));
        definition.expect("there is no finding").machine
    };
    assert_eq!(compiled("p.json", JSON).encode(), compiled("p.yaml", YAML).encode());
}

#[test]
fn hostile_processes_end_in_findings() {
    for text in
        ["format_version: 1\nnodes: 1\n", "format_version: 1\nnodes: {a: 1, b: [], c: null}\n", "{}", "[]"]
    {
        let compiled = compile_file("p.yaml", text.as_bytes(), Some(Format::Native));
        assert!(compiled.definition.is_none() && !compiled.findings.is_empty(), "{text}");
    }
    let deep = |levels: usize| format!("{}1{}", "{\"!\": [".repeat(levels), "]}".repeat(levels));
    let node = format!("  a: {{type: tool, tool: t, transitions: [{{to: end, guard: {}}}]}}\n", deep(25));
    let compiled = compile_text("p.yaml", &process(&node));
    assert!(compiled.findings.is_empty() && compiled.definition.is_some(), "{:?}", compiled.findings);
}
