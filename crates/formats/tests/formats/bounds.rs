//! Named maxima: one below compiles, one above is reported and bounded.

use switchward_formats::{Compiled, Format, compile, compile_file, detect, limits};

use super::support::{DEPLOY_GATE, compile_text, file, process_with, summaries};

#[track_caller]
fn refused(compiled: &Compiled, finding: &str) {
    assert_eq!(summaries(&compiled.findings), [finding]);
    assert_eq!(compiled.definition, None);
}

fn padded(bytes: usize) -> String {
    let text = process_with("");
    let padding = "#".repeat(bytes - text.len());
    text + &padding
}

#[test]
fn a_source_has_a_largest_size() {
    assert!(compile_text("p.yaml", &padded(limits::SOURCE_BYTES_MAX)).definition.is_some());
    refused(&compile_text("p.yaml", &padded(limits::SOURCE_BYTES_MAX + 1)), "SW1001 1:1");
}

#[test]
fn a_document_has_a_most_of_values() {
    // The map, what it holds beside `id`, and the list itself are values too.
    let ids = |count: usize| format!("id: [{}1]", "1,".repeat(count - 1));
    let others = 10;
    let at_most = limits::NODES_MAX - others;
    let json = |count: usize| format!("{{\"id\": [{}1]}}", "1,".repeat(count - 1));
    assert!(compile_text("p.yaml", &process_with(&ids(at_most))).definition.is_some());
    let above = compile_text("p.yaml", &process_with(&ids(at_most + 1)));
    assert_eq!((above.findings.len(), above.findings[0].code), (1, "SW1007"));
    let codes = |text: &str| -> Vec<&str> {
        compile_text("p.json", text).findings.iter().map(|finding| finding.code).collect()
    };
    assert_eq!(codes(&json(limits::NODES_MAX - 2)), ["SW1101"]);
    assert_eq!(codes(&json(limits::NODES_MAX - 1)), ["SW1007"]);
}

#[test]
fn depth_is_bounded_at_sixty_four() {
    let nested = |depth: usize| format!("id: {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(compile_text("p.yaml", &process_with(&nested(63))).definition.is_some());
    assert_eq!(compile_text("p.yaml", &process_with(&nested(64))).findings[0].code, "SW1006");
    let json = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(compile_text("p.json", &json(64)).findings[0].code, "SW1101");
    assert_eq!(compile_text("p.json", &json(65)).findings[0].code, "SW1006");
}

#[test]
fn findings_are_bounded_and_the_rest_is_counted() {
    let keys: String = (0..5000).map(|at| format!("unknown{at}: 1\n")).collect();
    let findings = compile_text("p.yaml", &process_with(&keys)).findings;
    assert_eq!(findings.len(), limits::FINDINGS_MAX + 1);
    assert_eq!(findings[limits::FINDINGS_MAX].code, "SW1099");
    assert!(findings[limits::FINDINGS_MAX].message.starts_with("4800 more"));
}

#[test]
fn lists_and_maps_have_a_most_of_entries() {
    use switchward_machine::limits::{ADDRESSES_MAX, EXITS_MAX, NODES_MAX, RULES_MAX};
    let listed = |item: &str, count: usize| vec![item; count].join(", ");
    let rules =
        |count| process_with(&format!("policy: {{role: a, deny: [{}]}}", listed("{capability: x}", count)));
    bounded(rules, RULES_MAX, "SW1117 8:25");
    let tools = |count| process_with(&format!("allowed_tools: [{}]", listed("task", count)));
    bounded(tools, RULES_MAX, "SW1117 8:16");
    let addresses =
        |count| process_with(&format!("email_config: {{allowed_to: [{}]}}", listed("a@b", count)));
    bounded(addresses, ADDRESSES_MAX, "SW1117 8:28");
    let answers = |count: usize| -> String {
        let all: String = (0..count).map(|at| format!("a{at}: {{next: null}}, ")).collect();
        format!("name: p\ninitial: a\nstates: {{a: {{question: Q, answers: {{{all}}}}}}}\n")
    };
    bounded(answers, EXITS_MAX, "SW1117 3:36");
    let states = |count: usize| -> String {
        let all: String = (0..count).map(|at| format!("  s{at}: {{question: Q}}\n")).collect();
        format!("name: p\ninitial: s0\nstates:\n{all}")
    };
    bounded(states, NODES_MAX, "SW1117 4:3");
}

#[track_caller]
fn bounded(source: impl Fn(usize) -> String, most: usize, finding: &str) {
    assert!(compile_text("p.yaml", &source(most)).definition.is_some());
    refused(&compile_text("p.yaml", &source(most + 1)), finding);
}

#[test]
fn texts_have_a_largest_size() {
    use switchward_machine::limits::TEXT_BYTES_MAX;
    let prompt = |bytes: usize| process_with(&format!("initial_prompt: {}", "x".repeat(bytes)));
    assert!(compile_text("p.yaml", &prompt(TEXT_BYTES_MAX)).definition.is_some());
    refused(&compile_text("p.yaml", &prompt(TEXT_BYTES_MAX + 1)), "SW1113 8:17");
}

#[test]
fn a_machine_has_a_largest_size() {
    let name = "s".repeat(250);
    let answers: String = (0..900).map(|at| format!("a{at}: *w, ")).collect();
    let answers = answers.replace("*w", "{next: null, action: warn}");
    let states: String =
        (0..20).map(|at| format!("  {name}{at}: {{question: Q, answers: {{{answers}}}}}\n")).collect();
    let yaml = format!("name: p\ninitial: {name}0\nstates:\n{states}");
    assert!(yaml.len() < limits::SOURCE_BYTES_MAX);
    let findings = compile_text("p.yaml", &yaml).findings;
    assert!(findings.iter().any(|finding| finding.code == "SW1212"), "{:?}", findings.last());
}

#[test]
fn one_file_is_one_definition() {
    let gate = file("a.json", DEPLOY_GATE);
    refused(&compile(&[gate, gate], None), "SW1104 1:1");
    refused(&compile(&[], Some(Format::Checkpoint)), "SW1104 1:1");
    assert!(detect(&[gate, gate]).is_err());
}

#[test]
fn the_format_is_given_by_the_files_or_by_the_caller() {
    assert_eq!(detect(&[file("x", DEPLOY_GATE)]), Ok(Format::Checkpoint));
    for path in ["PROCESS.md", "pdt.yaml", "processes/review/PROCESS.md"] {
        assert_eq!(detect(&[file("x.txt", ""), file(path, "")]), Ok(Format::ProcessMd));
        let compiled = compile(&[file(path, "")], None);
        assert_eq!(compiled.format, Some(Format::ProcessMd));
        refused(&compiled, "SW1103 1:1");
    }
    for format in [Format::ProcessMd, Format::Kno] {
        let compiled = compile_file("x.json", DEPLOY_GATE.as_bytes(), Some(format));
        assert_eq!(compiled.format, Some(format));
        refused(&compiled, "SW1103 1:1");
        assert!(compiled.findings[0].message.contains(format.name()));
    }
    for format in Format::ALL {
        assert_eq!(Format::named(format.name()), Some(format));
    }
}
