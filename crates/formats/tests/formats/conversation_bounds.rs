//! The maxima of conversation workflows: one above is reported, the maximum itself compiles.

use switchward_formats::limits;

use super::support::{compile_text, summaries};

fn codes(states: &str, transitions: &str) -> Vec<String> {
    let yaml = format!(
        "name: p\nstates:\n  - {states}\n  - {{name: b, type: conversation}}\ntransitions: {transitions}\n"
    );
    summaries(&compile_text("p.yaml", &yaml).findings)
}

/// The source that `make` gives for the largest count compiles; one more is reported as `expected`.
#[track_caller]
fn bound(max: usize, expected: &str, make: impl Fn(usize) -> (String, String)) {
    let (states, transitions) = make(max);
    let found = codes(&states, &transitions);
    assert!(!found.iter().any(|it| *it == expected), "{found:?}");
    let (states, transitions) = make(max + 1);
    let found = codes(&states, &transitions);
    assert!(found.iter().any(|it| *it == expected), "{found:?}");
}

fn repeated(item: &str, count: usize) -> String {
    vec![item; count].join(", ")
}

fn logic(operations: &str) -> (String, String) {
    (format!("{{name: a, type: logic, operations: [{operations}]}}"), "[]".into())
}

#[test]
fn lists_have_a_largest_size() {
    let set = "{type: set_data, config: {key: k, value: 1}}";
    bound(limits::OPERATIONS_MAX, "SW1117 3:40", |count| logic(&repeated(set, count)));
    let case = "{key: k, operator: eq, value: 1, target_state: b}";
    bound(limits::CONDITIONS_MAX, "SW1117 3:89", |count| {
        logic(&format!("{{type: conditional_branch, config: {{conditions: [{}]}}}}", repeated(case, count)))
    });
    let guarded = |guards: String| {
        ("{name: a, type: conversation}".into(), format!("[{{from: a, to: b, guards: [{guards}]}}]"))
    };
    bound(limits::GUARDS_MAX, "SW1117 5:40", |count| guarded(repeated("{type: user_confirmed}", count)));
    bound(limits::VALUES_MAX, "SW1117 5:87", |count| {
        guarded(format!("{{type: data_in_list, config: {{key: k, values: [{}]}}}}", repeated("1", count)))
    });
    bound(limits::RECIPIENTS_MAX, "SW1117 3:69", |count| {
        let to = repeated("a@example.com", count);
        let state = format!("{{name: a, type: output, template: t, target: email, recipients: [{to}]}}");
        (state, "[]".into())
    });
    bound(limits::REQUIRED_FIELDS_MAX, "SW1117 3:52", |count| {
        let names: Vec<String> = (0..count).map(|at| format!("k{at}")).collect();
        (format!("{{name: a, type: conversation, required_fields: [{}]}}", names.join(", ")), "[]".into())
    });
}

#[test]
fn texts_have_a_largest_size() {
    bound(limits::TEMPLATE_BYTES_MAX, "SW1113 3:39", |count| {
        let template = "x".repeat(count);
        (format!("{{name: a, type: output, template: {template}, target: conversation}}"), "[]".into())
    });
    // Two of the bytes are the quotes of JSON.
    bound(limits::TEMPLATE_BYTES_MAX - 2, "SW1113 3:82", |count| {
        logic(&format!("{{type: set_data, config: {{key: k, value: {}}}}}", "x".repeat(count)))
    });
    bound(limits::DATA_KEY_BYTES_MAX, "SW1306 3:72", |count| {
        logic(&format!("{{type: set_data, config: {{key: {}, value: 1}}}}", "k".repeat(count)))
    });
    bound(limits::REGEX_BYTES_MAX, "SW1113 5:89", |count| {
        let pattern = "x".repeat(count);
        let guard = format!("{{type: data_contains, config: {{key: k, pattern: {pattern}}}}}");
        ("{name: a, type: conversation}".into(), format!("[{{from: a, to: b, guards: [{guard}]}}]"))
    });
}

#[test]
fn transitions_and_states_are_bounded() {
    let many = |count: usize| {
        let transition = "{from: a, to: b, guards: [{type: user_confirmed}]}";
        codes("{name: a, type: conversation}", &format!("[{}]", repeated(transition, count)))
    };
    assert_eq!(many(1_000), Vec::<String>::new());
    let over = many(1_001);
    assert_eq!(over.len(), 1);
    assert!(over[0].starts_with("SW1117 5:"), "{over:?}");
    let states = repeated("{name: a, type: action}", 10_001);
    let found = summaries(
        &compile_text("p.yaml", &format!("name: p\nstates: [{states}]\ntransitions: []\n")).findings,
    );
    assert_eq!(found, ["SW1117 2:9"]);
    let over = many(limits::TRANSITIONS_MAX + 1);
    assert_eq!(over.first().map(String::as_str), Some("SW1117 5:14"));
}

/// What every state or guard copies cannot grow a source into many times its size.
#[test]
fn copies_are_bounded() {
    let tools: Vec<String> = (0..1_000).map(|at| format!("t{at}")).collect();
    let states =
        |count: usize| (0..count).map(|at| format!("{{name: a{at}, type: action}}")).collect::<Vec<_>>();
    let with_tools = |count: usize| {
        let (tools, states) = (tools.join(", "), states(count).join(", "));
        let yaml = format!("name: p\nglobal_tools: [{tools}]\nstates: [{states}]\ntransitions: []\n");
        summaries(&compile_text("p.yaml", &yaml).findings)
    };
    let per_state = limits::TOOL_RULES_MAX / tools.len();
    assert!(!with_tools(per_state).contains(&"SW1117 2:15".to_owned()));
    assert_eq!(with_tools(per_state + 1), ["SW1117 2:15"]);

    let fields: Vec<String> = (0..limits::REQUIRED_FIELDS_MAX).map(|at| format!("k{at}")).collect();
    let state = format!("{{name: a, type: conversation, required_fields: [{}]}}", fields.join(", "));
    let guards = format!("[{}]", repeated("{type: all_required_answered}", 100));
    let with_guards = |count: usize| {
        let transition = format!("{{from: a, to: b, guards: {guards}}}");
        codes(&state, &format!("[{}]", repeated(&transition, count)))
    };
    let each = limits::REQUIRED_FIELDS_MAX * 100;
    assert_eq!(with_guards(limits::REQUIRED_COPIES_MAX / each), Vec::<String>::new());
    let over = with_guards(limits::REQUIRED_COPIES_MAX / each + 1);
    assert_eq!((over.len(), over.iter().all(|it| it.starts_with("SW1117 5:"))), (100, true), "{over:?}");
}

/// The position of each reference is found in one pass over the text.
#[test]
fn a_rubric_full_of_references_is_checked_at_once() {
    let rubric = "{gathered.a} ".repeat(20_000);
    let guard = format!("{{type: llm_judge, config: {{rubric: \"{rubric}\"}}}}");
    let found = codes("{name: a, type: conversation}", &format!("[{{from: a, to: b, guards: [{guard}]}}]"));
    assert_eq!(found.len(), limits::FINDINGS_MAX + 1);
}

/// Unknown names are looked up among the keys, not compared with each of them.
#[test]
fn many_unknown_names_beside_many_keys_are_checked_at_once() {
    let fields = |at: usize| {
        let names: Vec<String> =
            (0..limits::REQUIRED_FIELDS_MAX).map(|field| format!("k{at}_{field}")).collect();
        format!("{{name: a{at}, type: action, required_fields: [{}]}}", names.join(", "))
    };
    let states: Vec<String> = (0..100).map(fields).collect();
    let template = "{{x}}".repeat(12_000);
    let output = |name: &str| {
        format!("{{name: {name}, type: output, target: conversation, template: \"{template}\"}}")
    };
    let states = format!("{}\n  - {}\n  - {}", states.join("\n  - "), output("o"), output("p"));
    assert_eq!(codes(&states, "[]").len(), limits::FINDINGS_MAX + 1);
}

/// Allowed names are listed beside many findings: one that is too long for a name is left out.
#[test]
fn names_that_are_too_long_are_not_listed_as_allowed() {
    let long = "x".repeat(limits::ALLOWED_BYTES_MAX + 1);
    let yaml = format!(
        "name: p\nstates: [{{name: {long}, type: conversation}}, {{name: b, type: conversation}}]\n\
         transitions: [{{from: b, to: nowhere}}]\n"
    );
    let compiled = compile_text("p.yaml", &yaml);
    let dangling = compiled.findings.iter().find(|it| it.code == "SW1303").expect("it is reported");
    assert_eq!(dangling.allowed, ["b"]);
}

/// Values of many requests are followed through many states, and no more than a number of steps in all.
#[test]
fn values_of_many_requests_are_followed_within_a_bound() {
    let texts = |prefix: &str, at: usize| {
        (0..16).map(|value| format!("{{{{gathered.{prefix}{at}_{value}}}}}")).collect::<String>()
    };
    let (mut states, mut transitions) = (String::new(), String::new());
    for at in 0..500 {
        let (shown, used) = (texts("s", at), texts("u", at));
        states += &format!(
            "  - {{name: a{at}, type: approval, approvers: [a@b.example], request_template: {{subject_template: s, \
             body_template: \"{shown}\"}}}}\n  - {{name: o{at}, type: output, target: email, \
             recipients: [a@b.example], template: \"{used}\"}}\n"
        );
        let next = at + 1;
        transitions += &format!(
            "  - {{from: a{at}, port: approved, to: o{at}}}\n  - {{from: o{at}, port: done, to: a{next}}}\n"
        );
    }
    let yaml = format!(
        "name: p\nstates:\n{states}  - {{name: a500, type: conversation}}\ntransitions:\n{transitions}"
    );
    let compiled = compile_text("p.yaml", &yaml);
    assert!(compiled.definition.is_some(), "{:?}", compiled.findings.first());
}

/// Every pattern may be large, and all of them together only so large.
#[test]
fn patterns_are_bounded_together() {
    let with = |count: usize| {
        let guard =
            |at: usize| format!("{{type: data_contains, config: {{key: k, pattern: '\\w{{8}}{at}'}}}}");
        let guards: Vec<String> = (0..count).map(guard).collect();
        let transition = |guards: &[String]| format!("{{from: a, to: b, guards: [{}]}}", guards.join(", "));
        let all: Vec<String> = guards.chunks(limits::GUARDS_MAX).map(transition).collect();
        codes("{name: a, type: conversation}", &format!("[{}]", all.join(", ")))
    };
    let refused = |found: Vec<String>| found.iter().any(|it| it.starts_with("SW1309"));
    assert!(!refused(with(1)) && refused(with(2_000)));
}
