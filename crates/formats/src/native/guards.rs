//! Guards and `when`: JSON Logic over the data. See `docs/formats-native.md#guards`.

use switchward_expr::{Logic, LogicError, LogicProblem};

use super::model::Condition;
use super::reader::Reader;
use super::texts;
use crate::codes::{GUARD_FORM, LOGIC};
use crate::document::{Node, Value};
use crate::{Finding, quoted};

/// The operators that are names, for suggestions.
const OPERATORS: [&str; 18] = [
    "var",
    "missing",
    "missing_some",
    "if",
    "or",
    "and",
    "max",
    "min",
    "map",
    "filter",
    "reduce",
    "all",
    "none",
    "some",
    "merge",
    "in",
    "cat",
    "substr",
];

/// A guard: an object of JSON Logic, true or false.
pub(super) fn read<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<Condition> {
    match &node.value {
        Value::Bool(true) => Some(Condition::Always),
        Value::Bool(false) => Some(Condition::Never),
        Value::Map(_) => logic(node, what, cx),
        Value::Unread => None,
        Value::Null | Value::Number(_) | Value::String(_) | Value::List(_) => {
            let kind = node.value.kind();
            let message = format!("{what} must be an object of JSON Logic, true or false, and is {kind}");
            let hint = r#"a condition is written like {"==": [{"var": "field"}, 1]}"#;
            cx.report.add(Finding::new(GUARD_FORM, node.span, message).hint(hint));
            None
        }
    }
}

fn logic<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<Condition> {
    let logic = match Logic::guard(&node.to_json()) {
        Ok(logic) => logic,
        Err(error) => {
            report(node, what, &error, cx);
            return None;
        }
    };
    let mut sound = true;
    for read in &logic.reads().paths {
        let (_, at) = node.at_pointer(&read.at);
        let at = at.as_list().and_then(<[Node]>::first).unwrap_or(at);
        sound &= texts::read_path(&read.path, what, at.span, cx);
    }
    sound.then_some(Condition::Logic(logic))
}

fn report(node: &Node, what: &str, error: &LogicError, cx: &mut Reader<'_, '_>) {
    let (_, at) = node.at_pointer(&error.at);
    let code = if error.problem == LogicProblem::NoCondition { GUARD_FORM } else { LOGIC };
    let message = format!("{what} is not valid: {}", error.problem);
    // The operator is the only key of its object.
    let operator = at.as_map().and_then(<[_]>::first).map(|(key, _)| key);
    let unknown = operator.filter(|_| matches!(error.problem, LogicProblem::UnknownOperator { .. }));
    let Some(key) = unknown else {
        cx.report.add(Finding::new(code, at.span, message));
        return;
    };
    let nearest = cx.report.nearest(&key.text, OPERATORS);
    let message = format!("{what} is not valid: JSON Logic has no operator {}", quoted(&key.text));
    cx.report.add(Finding::new(code, key.span, message).nearest(nearest));
}
