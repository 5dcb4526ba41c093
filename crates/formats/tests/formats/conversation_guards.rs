//! Compiled guards, one by one and together. See `docs/formats-conversation-operations.md#guards`.

use switchward_expr::{CmpOp, Path};
use switchward_machine::{Exit, Guard, Trigger};

use super::support::{EVERYTHING, clean, workflow};

fn path(text: &str) -> Path {
    Path::new(text).expect("it is a path")
}

fn compare(left: &str, op: CmpOp, right: &str) -> Guard {
    Guard::Compare { left: path(left), op, right: right.into() }
}

/// The exit with these guards, of a state that requires `x` and `y`.
#[track_caller]
fn exit(guards: &str) -> Exit {
    let state = "{name: a, type: conversation, required_fields: [x, y]}";
    let machine = workflow(&[state], &[&format!("{{from: a, to: a{guards}}}")]);
    machine.nodes[0].exits[0].clone()
}

#[test]
fn each_guard_is_what_its_type_says() {
    let machine = clean(EVERYTHING).machine;
    let present = || Guard::Present(path("email"));
    let required = Guard::All(vec![present(), Guard::Present(path("amount"))]);
    let expected = [
        Guard::All(vec![required, Guard::Called { tool: "search".into(), success: true }]),
        Guard::Called { tool: "mcp:a:b".into(), success: false },
        present(),
        Guard::All(vec![present(), compare("email", CmpOp::Matches, "\"@example\\\\.com$\"")]),
        compare("flag", CmpOp::Eq, "true"),
        compare("amount", CmpOp::Gt, "10.5"),
        compare("amount", CmpOp::Lt, "-1"),
        compare("text", CmpOp::In, "[\"a\",2]"),
        Guard::Confirmed(Vec::new()),
        Guard::Confirmed(vec!["go ahead".into()]),
        Guard::Any(vec![Guard::Confirmed(Vec::new()), Guard::All(vec![present()])]),
    ];
    let exits = &machine.nodes[0].exits;
    assert_eq!(exits.iter().map(|exit| exit.guard.clone()).collect::<Vec<_>>(), expected);
    assert!(exits.iter().all(|exit| exit.on == Trigger::Auto { event: true }), "each exit has a condition");
}

#[test]
fn one_guard_is_itself_several_are_all_and_none_is_always() {
    let one = exit(", guards: [{type: user_confirmed}]");
    assert_eq!((one.guard, one.label.as_str()), (Guard::Confirmed(Vec::new()), "user_confirmed"));
    let two = exit(", guards: [{type: always}, {type: user_confirmed}]");
    assert_eq!(two.guard, Guard::All(vec![Guard::Always, Guard::Confirmed(Vec::new())]));
    assert_eq!((two.label.as_str(), two.on), ("always and user_confirmed", Trigger::Auto { event: true }));
    for none in ["", ", guards: []", ", guards: null"] {
        let exit = exit(none);
        assert_eq!((exit.guard, exit.label.as_str()), (Guard::Always, "always"), "{none:?}");
        assert_eq!(exit.on, Trigger::Auto { event: false });
    }
}

#[test]
fn all_required_names_its_keys_or_has_its_states() {
    let all = |keys: &[&str]| Guard::All(keys.iter().map(|key| Guard::Present(path(key))).collect());
    assert_eq!(exit(", guards: [{type: all_required_answered}]").guard, all(&["x", "y"]));
    assert_eq!(exit(", guards: [{type: all_required_answered, config: {}}]").guard, all(&["x", "y"]));
    assert_eq!(exit(", guards: [{type: all_required_answered, config: {keys: [z]}}]").guard, all(&["z"]));
}

#[test]
fn a_value_keeps_its_json() {
    for (value, json) in [
        ("null", "null"),
        ("1.50", "1.50"),
        ("\"a\\\"\\n\"", "\"a\\\"\\n\""),
        ("{k: [1, {}], l: no}", "{\"k\":[1,{}],\"l\":\"no\"}"),
        ("\"{gathered.x}\"", "\"{gathered.x}\""),
    ] {
        let guards = format!(", guards: [{{type: data_equals, config: {{key: x, value: {value}}}}}]");
        assert_eq!(exit(&guards).guard, compare("x", CmpOp::Eq, json));
        serde_json::from_str::<serde_json::Value>(json).expect("it is JSON");
    }
}

/// Nested values, by a path of names.
#[test]
fn guards_over_data_look_into_values() {
    let guards = ", guards: [{type: data_contains, config: {key: order.items.0}}]";
    assert_eq!(exit(guards).guard, Guard::Present(path("order.items.0")));
}
