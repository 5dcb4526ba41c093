use super::*;
use crate::script::{Until, Verb, Wanted};

fn read_steps(steps: &str) -> Result<Scenario, Vec<Finding>> {
    parse("x.yaml", format!("definition: a.json\nsteps:\n{steps}").as_bytes())
}

/// Line, code, and the nearest name of each finding.
fn findings_of(text: &str) -> Vec<(u32, &'static str, Option<String>)> {
    let findings = parse("x.yaml", text.as_bytes()).unwrap_err();
    findings.into_iter().map(|it| (it.line, it.code, it.nearest)).collect()
}

#[test]
fn a_scenario_needs_no_more_than_a_definition() {
    let scenario = parse("x.yaml", b"definition: a.json\n").unwrap();
    assert_eq!(scenario.start.at, CLOCK_STARTS);
    assert_eq!(scenario.start.session.role, "agent");
    assert_eq!(scenario.start.span.line, 1);
    assert!(scenario.steps.is_empty() && scenario.also.is_empty());
}

#[test]
fn the_example_of_the_page_is_read() {
    let text = r#"
definition: deploy-gate.json           # relative to this file
process: growth_review
also: [shipping.yaml]
start:
  at: 2026-01-05T09:00:00Z
  input: {ticket: T-1}
  role: agent
  run_type: programmatic
  dry_run: false
  queue: [returns]
  expect: {at: env-check, status: waiting}
  contact: sam@example.com
  expect_error: SCHEMA_VIOLATION
steps:
  - answer: {state: env-check, answer: "yes"}
    expect: {at: migration-check}
  - authorize: {capability: "mcp:filesystem:delete_file"}
    expect: {decision: ask}
  - wait: 1h
  - answer: {answer: maybe}
    expect_error: ANSWER_NOT_ALLOWED
"#;
    let scenario = parse("x.yaml", text.as_bytes()).unwrap();
    assert_eq!(scenario.start.at, CLOCK_STARTS);
    assert_eq!(scenario.start.session.input, br#"{"ticket":"T-1"}"#);
    let steps: Vec<_> =
        scenario.steps.iter().map(|step| (step.index, step.verb.word(), step.span.line)).collect();
    assert_eq!(steps, [(1, "answer", 16), (2, "authorize", 18), (3, "wait", 20), (4, "answer", 21)]);
    assert_eq!(scenario.steps[1].expected.expectations[0].wanted, Wanted::Decision);
    assert_eq!(scenario.steps[2].verb, Verb::Wait(Until::Later(3_600_000)));
    assert_eq!(
        scenario.steps[3].expected.refusal.as_ref().map(|(code, span)| (code.as_str(), span.line)),
        Some(("ANSWER_NOT_ALLOWED", 22))
    );
}

#[test]
fn every_verb_of_every_format_is_read() {
    let steps = "
  - message: hello
  - turn:
  - turn: {text: hello}
  - record: {a: 1}
  - signal: {}
  - retry:
  - switch: returns
  - tool: {name: bash, success: false, result: {x: 1}, cost_usd: 0.5, tokens: 3}
  - usage: {cost_usd: 1e-7}
  - work: {node: a, kind: judge, result: {verdict: true}, next: b, confidence: 0.5, usage: {tokens: 1}}
  - form: {node: a, values: {ok: true}, by: kim}
  - decide: {node: a, kind: escalation, decision: discuss, by: kim, comment: c}
  - assign: {node: a, from: lee, to: kim, by: dana}
  - start: {role: agent, input: {a: 1}}
  - email: {from: a@b.example, text: yes, headers: {x: y}, authenticated: false}
  - event: {key: k, data: {a: 1}, state: s}
  - advance: {to: b, by: kim}
  - supervise: {command: set_context, context: {a: 1}, reason: r}
  - wait: {until: 2026-02-01T00:00:00Z}
  - publish: b.json
  - undelivered: a@b.example
  - raise: {tokens: 10, cost_usd: 2}
  - resume: {reason: r}
  - pause:
  - cancel: {}
  - shutdown: {reason: r}
";
    let scenario = read_steps(steps).unwrap();
    assert_eq!(scenario.steps.len(), 26);
    assert_eq!(
        scenario.steps[14].verb,
        Verb::Email { from: "a@b.example".into(), text: "yes".into(), authenticated: false }
    );
    let Verb::Usage { cost, .. } = scenario.steps[8].verb else { panic!("the ninth step is a usage") };
    assert_eq!(cost.0, 1, "a reported cost is rounded up to a micro");
}

#[test]
fn every_error_is_reported_at_once_with_its_line_and_the_nearest_name() {
    let text = "definition: a.json
statr: {}
start: {rol: agent, at: yesterday}
steps:
  - anser: {answer: yes}
  - answer: {answr: yes}
  - answer: {answer: true}
    expect: {staus: waiting, at: 3}
  - wait: 5 minutes
  - decide: {decision: aprove}
  - {}
  - pause: {}
    resume: {}
";
    let near = |word: &str| Some(word.to_owned());
    assert_eq!(
        findings_of(text),
        [
            (2, "SW1110", near("start")),
            (3, "SW1110", near("role")),
            (3, "SW1902", None),
            (5, "SW1110", near("answer")),
            (6, "SW1111", None),
            (6, "SW1110", near("answer")),
            (7, "SW1112", None),
            (8, "SW1110", near("status")),
            (8, "SW1112", None),
            (9, "SW1902", None),
            (10, "SW1116", near("approve")),
            (11, "SW1901", None),
            (12, "SW1901", None),
        ]
    );
}

#[test]
fn keys_that_no_format_of_this_build_has_are_reported_and_not_ignored() {
    let text = "definition: a.json
tenant: {deny: [bash]}
start: {agent_card: card.json}
steps:
  - migrate: {file: b.json}
  - undo: {to: kim}
  - start: {audience: [kim@x.example]}
    expect: {open: [{kind: gate, by: kim}]}
";
    let found: Vec<_> = findings_of(text).into_iter().map(|(line, code, _)| (line, code)).collect();
    assert_eq!(found, [2, 3, 5, 6, 7, 8].map(|line| (line, "SW1110")));
}

#[test]
fn a_text_that_is_no_yaml_is_reported_as_such() {
    assert_eq!(findings_of("definition: [")[0].1, "SW1004");
    assert_eq!(findings_of("definition: a\ndefinition: b\n")[0].1, "SW1008");
    assert_eq!(findings_of("- a\n")[0].1, "SW1112");
}

#[test]
fn durations_are_whole_numbers_of_one_unit() {
    let wait = |text: &str| match read_steps(&format!("  - wait: {text}\n")) {
        Ok(scenario) => Some(scenario.steps[0].verb.clone()),
        Err(_) => None,
    };
    for (text, ms) in [("90s", 90_000), ("5m", 300_000), ("2h", 7_200_000), ("3d", 259_200_000), ("0s", 0)] {
        assert_eq!(wait(text), Some(Verb::Wait(Until::Later(ms))), "{text}");
    }
    for text in ["90", "s", "-1s", "+1s", "1.5h", "1h30m", "1 h", "1w", "99999999999999999999d", "1é", "{}"]
    {
        assert_eq!(wait(text), None, "{text}");
    }
}

#[test]
fn a_wrong_length_of_time_is_reported_under_its_own_key() {
    let text = "definition: a.json\nstart: {reminders: {every: 8, max: 2}}\nsteps: [{wait: 8}]\n";
    let found = parse("x.yaml", text.as_bytes()).unwrap_err();
    let starts: Vec<bool> =
        ["`every` ", "`wait` "].iter().zip(&found).map(|(key, it)| it.message.starts_with(key)).collect();
    assert_eq!((found.len(), starts), (2, vec![true, true]), "{found:?}");
}

#[test]
fn arguments_keep_the_digits_that_were_written() {
    let scenario =
        read_steps("  - authorize: {capability: a, args: {b: 1.50, a: [yes, null, \"q\\\"\"]}}\n").unwrap();
    let Verb::Authorize(call) = &scenario.steps[0].verb else { panic!("the step is a call") };
    assert_eq!(String::from_utf8_lossy(&call.args), r#"{"b":1.50,"a":["yes",null,"q\""]}"#);
}

/// A list of unrecorded events with a wrong name would hold whatever a step does.
#[test]
fn a_type_of_event_that_does_not_exist_is_refused() {
    let text = "definition: a.json\nsteps:\n- turn: {}\n  expect: {without: [session.complete]}\n\
                - turn: {}\n  expect: {events: [work.opened, definition.deployed, opened]}\n";
    let nearest = Some("session.completed".to_owned());
    let found: Vec<_> = findings_of(text);
    assert_eq!(found[0], (4, "SW1116", nearest));
    assert_eq!((found.len(), found[1].0, found[1].1), (2, 6, "SW1116"));
}

#[test]
fn the_types_of_events_are_the_documented_ones() {
    let page = include_str!("../../../../docs/api.md");
    let (_, rest) = page.split_once("## Event types of a history").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let mut documented: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    documented.extend(["definition.activated", "definition.deployed"]);
    documented.sort_unstable();
    assert_eq!(event_types::EVENT_TYPES.to_vec(), documented);
}

/// In a fragment of the page of findings, the first line causes the finding and the second is right.
#[test]
fn the_fragments_of_the_page_of_findings_are_as_it_says() {
    type Listed = fn(&str) -> String;
    let page = include_str!("../../../../docs/findings.md");
    let cases: [(&str, Listed); 2] = [("SW1901", str::to_owned), ("SW1902", |line| format!("[{line}]"))];
    for (code, listed) in cases {
        let (_, fragment) = page.split_once(&format!("\n`{code}`, ")).expect("it has a fragment");
        let mut lines = fragment.lines().filter_map(|line| line.strip_prefix("- "));
        let mut text =
            || format!("definition: a.json\nsteps: {}\n", listed(lines.next().expect("two lines")));
        let (wrong, right) = (text(), text());
        assert!(findings_of(&wrong).iter().any(|(_, found, _)| *found == code), "{wrong}");
        assert!(parse("x.yaml", right.as_bytes()).is_ok(), "{right}");
    }
}
