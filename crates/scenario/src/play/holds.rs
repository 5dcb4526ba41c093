//! Comparison of expected and seen values. See `docs/scenarios.md#expectations`.

use serde_json::Value;
use switchward_expr::{CmpOp, compare};

use crate::script::Wanted;

pub(super) fn holds(wanted: Wanted, expected: &Value, seen: &Value) -> bool {
    match wanted {
        Wanted::Status | Wanted::Decision | Wanted::Reason | Wanted::Version => expected == seen,
        Wanted::At => at(expected, seen),
        Wanted::Context | Wanted::Left | Wanted::Rule | Wanted::RetryAfter => fits(expected, Some(seen)),
        Wanted::Open if items(expected).is_empty() => items(seen).is_empty(),
        Wanted::Open => distinct(items(expected), items(seen)),
        Wanted::Effects if items(expected).is_empty() => items(seen).is_empty(),
        Wanted::Effects => in_order(items(expected), items(seen), effect),
        Wanted::Events if items(expected).is_empty() => items(seen).is_empty(),
        Wanted::Events => in_order(items(expected), items(seen), |expected, seen| expected == seen),
        Wanted::Without => !items(expected).iter().any(|kind| items(seen).contains(kind)),
        Wanted::Log => items(seen).iter().any(|line| contains(expected, Some(line))),
        Wanted::Runs => {
            let (expected, seen) = (items(expected), items(seen));
            expected.len() == seen.len() && expected.iter().zip(seen).all(|(e, s)| fits(e, Some(s)))
        }
        Wanted::Shows => contains(expected, Some(seen)),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// One name is the only active node; a list is all of them, in any order.
fn at(expected: &Value, seen: &Value) -> bool {
    let names = |value: &Value| {
        let one = std::slice::from_ref(value);
        let list = value.as_array().map_or(one, Vec::as_slice);
        let mut names: Vec<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        names.sort();
        names
    };
    names(expected) == names(seen)
}

/// Maps as subsets, lists whole, null for what is absent or null.
fn fits(expected: &Value, seen: Option<&Value>) -> bool {
    match (expected, seen) {
        (Value::Null, None | Some(Value::Null)) => true,
        (Value::Object(expected), Some(Value::Object(seen))) => {
            expected.iter().all(|(key, value)| fits(value, seen.get(key)))
        }
        (Value::Array(expected), Some(Value::Array(seen))) => {
            expected.len() == seen.len() && expected.iter().zip(seen).all(|(e, s)| fits(e, Some(s)))
        }
        // 1 and 1.0 are one number; large whole numbers are compared exactly.
        (Value::Number(_), Some(Value::Number(_))) => compare(seen, CmpOp::Eq, expected).unwrap_or(false),
        (expected, Some(seen)) => expected == seen,
        (_, None) => false,
    }
}

fn contains(expected: &Value, seen: Option<&Value>) -> bool {
    let pair = expected.as_str().zip(seen.and_then(Value::as_str));
    pair.is_some_and(|(part, whole)| whole.contains(part))
}

/// An effect's text is searched; every other key must be equal.
fn effect(expected: &Value, seen: &Value) -> bool {
    let Some(keys) = expected.as_object() else { return false };
    keys.iter().all(|(key, value)| match key.as_str() {
        "contains" => contains(value, seen.get("text")),
        _ => fits(value, seen.get(key)),
    })
}

/// An open item's `to` is any of its recipients; every other key must be equal.
fn open(expected: &Value, seen: &Value) -> bool {
    let Some(keys) = expected.as_object() else { return false };
    keys.iter().all(|(key, value)| match (key.as_str(), seen.get(key)) {
        ("to", Some(Value::Array(audience))) => audience.contains(value),
        (_, seen) => fits(value, seen),
    })
}

/// Each expected entry is found after the one before; others may stand between.
fn in_order(expected: &[Value], seen: &[Value], same: impl Fn(&Value, &Value) -> bool) -> bool {
    let mut rest = seen.iter();
    expected.iter().all(|wanted| rest.any(|found| same(wanted, found)))
}

/// Each expected entry fits an item of its own: a matching by augmenting paths, because the first item that fits may
/// be the only one for a later entry.
fn distinct(expected: &[Value], seen: &[Value]) -> bool {
    let mut taken: Vec<Option<usize>> = vec![None; seen.len()];
    (0..expected.len()).all(|entry| {
        let mut tried = vec![false; seen.len()];
        assign(entry, expected, seen, &mut taken, &mut tried)
    })
}

fn assign(
    entry: usize,
    expected: &[Value],
    seen: &[Value],
    taken: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for item in 0..seen.len() {
        if tried[item] || !open(&expected[entry], &seen[item]) {
            continue;
        }
        tried[item] = true;
        let free = match taken[item] {
            None => true,
            Some(other) => assign(other, expected, seen, taken, tried),
        };
        if free {
            taken[item] = Some(entry);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn open_entries_match_distinct_items() {
        let gate = |node: &str, kind: &str| json!({"kind": "gate", "node": node, "type": kind});
        let seen = json!([gate("a", "notify"), gate("b", "notify")]);
        let open = |expected: Value| holds(Wanted::Open, &expected, &seen);
        assert!(open(json!([{"kind": "gate"}, {"kind": "gate", "node": "a"}])));
        assert!(!open(json!([{"node": "a"}, {"node": "a"}])));
        assert!(!open(json!([{}, {}, {}])));
        assert!(!open(json!([])) && holds(Wanted::Open, &json!([]), &json!([])));
        assert!(!open(json!([{"kind": "gate", "to": "kim"}])));
        let seen = json!([{"kind": "gate", "to": ["kim", "lee"]}]);
        let open = |expected: Value| holds(Wanted::Open, &expected, &seen);
        assert!(open(json!([{"to": "lee"}])) && !open(json!([{"to": "max"}])) && !open(json!(["gate"])));
    }

    #[test]
    fn events_and_effects_keep_their_order_and_may_have_others_between() {
        let events = |expected: Value| holds(Wanted::Events, &expected, &json!(["a", "b", "a", "c"]));
        assert!(events(json!(["a", "a", "c"])) && events(json!(["b"])));
        assert!(!events(json!(["c", "a"])) && !events(json!(["a", "a", "a"])));
        assert!(!events(json!([])) && holds(Wanted::Events, &json!([]), &json!([])));
        let without = |expected: Value| holds(Wanted::Without, &expected, &json!(["a", "b"]));
        assert!(without(json!(["c"])) && without(json!([])) && !without(json!(["c", "b"])));
        let sent = json!([{"kind": "notice", "subject": "x: y", "text": "x: y"}]);
        let effects = |expected: Value| holds(Wanted::Effects, &expected, &sent);
        assert!(effects(json!([{"kind": "notice", "contains": ": y"}])));
        assert!(!effects(json!([])) && !effects(json!([{"kind": "email"}])));
        assert!(!effects(json!([{"kind": "notice", "to": "x"}])));
    }

    #[test]
    fn null_is_absent_and_maps_are_subsets() {
        let context = |expected: Value| holds(Wanted::Context, &expected, &json!({"a": {"b": 1, "c": [1]}}));
        assert!(context(json!({"x": null, "a": {"b": 1.0}})));
        assert!(!context(json!({"a": null})) && !context(json!({"a": {"c": []}})));
        assert!(!context(json!({"x": {"y": null}})));
        let large = json!({"id": 9_007_199_254_740_993_u64});
        assert!(holds(Wanted::Context, &large, &large));
        assert!(!holds(Wanted::Context, &json!({"id": 9_007_199_254_740_992_u64}), &large));
    }

    #[test]
    fn at_takes_a_name_or_a_whole_list() {
        assert!(holds(Wanted::At, &json!("a"), &json!("a")));
        assert!(holds(Wanted::At, &json!(["b", "a"]), &json!(["a", "b"])));
        assert!(!holds(Wanted::At, &json!(["a"]), &json!(["a", "b"])));
        assert!(!holds(Wanted::At, &json!("a"), &Value::Null));
    }
}
