//! The same definition in JSON and in YAML gives byte-equal machines and the same warnings.

use switchward_formats::document::{Node, Syntax, Value, read};
use switchward_formats::{Compiled, Report, has_errors};
use switchward_machine::Machine;
use switchward_testkit::Rng;

use super::support::{DEPLOY_GATE, Draft, compile_text, draw_process, odd};

const DRAWS: u64 = 2_000;

#[test]
fn drawn_processes_compile_alike_from_both() {
    let mut with_warnings = 0;
    for seed in 0..DRAWS {
        let draft = draw_process(&mut Rng::new(seed));
        let (json, yaml) = compile_both(&draft);
        assert!(!has_errors(&json.findings), "seed {seed}: {:?}\n{}", json.findings, draft.json());
        let messages = |compiled: &Compiled| -> Vec<String> {
            compiled.findings.iter().map(|it| format!("{} {}", it.code, it.message)).collect()
        };
        assert_eq!(messages(&json), messages(&yaml), "seed {seed}");
        let machine = |compiled: Compiled| compiled.definition.expect("there is no error").machine;
        let warnings: Vec<String> = odd(&json.findings).iter().map(|it| it.message.clone()).collect();
        with_warnings += usize::from(!warnings.is_empty());
        let machine_of_json = machine(json);
        assert_eq!(machine_of_json.opening.warnings, warnings, "seed {seed}");
        assert_eq!(machine_of_json.encode(), machine(yaml).encode(), "seed {seed}");
        assert_eq!(Machine::decode(&machine_of_json.encode()), Ok(machine_of_json), "seed {seed}");
    }
    assert!(with_warnings > 100, "too few random definitions have warnings: {with_warnings}");
}

fn compile_both(draft: &Draft) -> (Compiled, Compiled) {
    (compile_text("p.json", &draft.json()), compile_text("p.yaml", &draft.yaml()))
}

/// JSON is YAML too, except for what either refuses: the same text must give the same tree with the same positions.
#[test]
fn a_json_text_read_as_yaml_is_the_same_tree() {
    let texts = (0..DRAWS).map(|seed| draw_process(&mut Rng::new(seed)).json());
    for text in texts.chain([DEPLOY_GATE.to_owned()]) {
        let mut report = Report::new("x");
        let json = read(text.as_bytes(), Syntax::Json, &mut report).expect("it is JSON");
        let yaml = read(text.as_bytes(), Syntax::Yaml, &mut report).expect("it is YAML");
        assert_eq!(report.finish(), [], "{text}");
        assert_eq!(positions(&json), positions(&yaml), "{text}");
    }
}

/// Every value with the position at which it begins.
fn positions(node: &Node) -> Vec<String> {
    let here = |what: &str| format!("{}:{} {what}", node.span.line, node.span.column);
    match &node.value {
        Value::Null | Value::Unread => vec![here(node.value.kind())],
        Value::Bool(value) => vec![here(&value.to_string())],
        Value::Number(text) => vec![here(text)],
        Value::String(text) => vec![here(&format!("{text:?}"))],
        Value::List(items) => std::iter::once(here("list")).chain(items.iter().flat_map(positions)).collect(),
        Value::Map(entries) => {
            let entry = |(key, node): &(switchward_formats::document::Key, Node)| {
                let key = format!("{}:{} key {:?}", key.span.line, key.span.column, key.text);
                std::iter::once(key).chain(positions(node)).collect::<Vec<_>>()
            };
            std::iter::once(here("map")).chain(entries.iter().flat_map(entry)).collect()
        }
    }
}
