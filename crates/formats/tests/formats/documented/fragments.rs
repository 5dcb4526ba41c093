//! The fragments of the page of findings: the first line of each causes the findings that are named before it, and the
//! second is right. One line is not a whole definition: each code has a small definition into which its lines are put.

use switchward_formats::compile_file;

use super::{FINDINGS, is_code, page};

const FENCE: &str = "```yaml fragment";
/// What a definition has where the line of a fragment comes.
const WHOLE: &str = "WHOLE";
/// What it has where a line comes without its outer braces.
const INSIDE: &str = "INSIDE";
/// How the codes of scenarios begin; their crate looks at their fragments.
const OF_SCENARIOS: &str = "SW19";

/// The definition of each fragment, by the first code before it.
const HOSTS: [(&str, &str); 20] = [
    ("SW1114", "{policy: p, allow: [{capability: bash, INSIDE}]}"),
    (
        "SW1204",
        "{name: p, initial: a, states: {a: {question: q, answers: WHOLE}, \
         traffic-check: {question: q, answers: {ok: {next: null}}}}}",
    ),
    ("SW1208", "{policy: p, INSIDE}"),
    ("SW1209", "{policy: p, INSIDE}"),
    (
        "SW1220",
        "{name: p, states: [WHOLE, {name: b, type: conversation}], \
         transitions: [{from: decide, port: approved, to: b}]}",
    ),
    (
        "SW1225",
        "{name: p, states: [{name: decide, type: approval, approvers: [boss@acme.example], \
         request_template: {subject_template: \"Pay {{ gathered_data.amount }}\"}}, \
         {name: talk, type: conversation}, \
         {name: mail, type: output, target: email, recipients: [ann@acme.example], INSIDE}], \
         transitions: [{from: decide, port: approved, to: talk}, \
         {from: talk, to: mail, guards: [{type: always}]}]}",
    ),
    (
        "SW1303",
        "{name: p, states: [{name: collect, type: conversation}, {name: done, type: conversation}], \
         transitions: [WHOLE]}",
    ),
    (
        "SW1351",
        "{name: p, states: [{name: collect, type: conversation}, {name: done, type: conversation}], \
         transitions: [WHOLE]}",
    ),
    ("SW1306", "{name: p, states: [{name: a, type: logic, operations: [WHOLE]}], transitions: []}"),
    (
        "SW1312",
        "{name: p, states: [{name: a, type: wait, wait_for: email_reply, timeout_hours: 1, \
         classify: {enabled: true, INSIDE}}], transitions: []}",
    ),
    (
        "SW1353",
        "{name: p, states: [{name: decide, type: approval, approvers: [boss@acme.example]}, \
         {name: pay, type: conversation}, {name: stop, type: conversation}], transitions: WHOLE}",
    ),
    ("SW1370", "{name: p, states: [{name: a, INSIDE}], transitions: []}"),
    ("SW1371", "{name: p, states: [{name: a, INSIDE}], transitions: []}"),
    ("SW1402", NATIVE),
    ("SW1405", NATIVE),
    ("SW1413", NATIVE),
    ("SW1415", NATIVE),
    ("SW1417", NATIVE),
    ("SW1428", NATIVE),
    ("SW1452", NATIVE),
];
/// A native process with a field of the data, and a node before its end.
const NATIVE: &str = "{format_version: 1, process: p, initial: a, \
                      context: {schema: {properties: {amount: {type: number}}}, initial: {}}, \
                      nodes: {a: WHOLE, done: {type: final}}}";

/// Two lines, with the codes that are named before them.
struct Fragment {
    codes: Vec<String>,
    wrong: String,
    right: String,
}

/// The fragments of a page.
fn fragments(page: &str) -> Vec<Fragment> {
    let (mut found, mut before) = (Vec::new(), "");
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line != FENCE {
            before = if line.is_empty() { before } else { line };
            continue;
        }
        let codes: Vec<String> = before.split('`').filter(|part| is_code(part)).map(str::to_owned).collect();
        let mut entry = || lines.next().and_then(|line| line.strip_prefix("- ")).map(str::to_owned);
        let (Some(wrong), Some(right)) = (entry(), entry()) else { panic!("no two lines after {before}") };
        assert!(!codes.is_empty() && lines.next() == Some("```"), "{before}");
        found.push(Fragment { codes, wrong, right });
    }
    found
}

/// The definition with this line in it.
fn with(host: &str, line: &str) -> String {
    let inside = line.strip_prefix('{').and_then(|line| line.strip_suffix('}')).unwrap_or(line);
    host.replace(WHOLE, line).replace(INSIDE, inside)
}

#[test]
fn the_first_line_of_a_fragment_causes_its_findings_and_the_second_is_right() {
    let fragments = fragments(&page(FINDINGS));
    let own: Vec<&Fragment> = fragments.iter().filter(|it| !it.codes[0].starts_with(OF_SCENARIOS)).collect();
    assert_eq!(own.len(), HOSTS.len());
    for Fragment { codes, wrong, right } in own {
        let host = HOSTS.iter().find(|(code, _)| *code == codes[0]);
        let (_, host) = host.unwrap_or_else(|| panic!("there is no definition for {codes:?}"));
        for (line, causes) in [(wrong, true), (right, false)] {
            let compiled = compile_file("p.yaml", with(host, line).as_bytes(), None);
            let found: Vec<&str> = compiled.findings.iter().map(|finding| finding.code).collect();
            for code in codes {
                assert_eq!(found.contains(&code.as_str()), causes, "{code} with {line}: {found:?}");
            }
            assert!(causes || compiled.definition.is_some(), "an error with {line}: {found:?}");
        }
    }
}
