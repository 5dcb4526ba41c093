//! Operations of a logic state. See `docs/formats-conversation-operations.md#operations`.

use switchward_expr::CmpOp;
use switchward_machine::{Case, Convert, NodeIx, Op, Port, Write};

use super::keys::INDEX;
use super::reader::Reader;
use super::steps::{Step, What};
use super::{expr, messages, parse, read, schema};
use crate::codes::{AFTER_BRANCH, DATA_KEY, LOOP_NAME, TOO_NESTED};
use crate::document::Node;
use crate::limits::{
    CONDITIONS_MAX, LINE_BYTES_MAX, LOOP_DEPTH_MAX, OPERATIONS_MAX, ROUND_DIGITS_MAX, VALUES_MAX,
};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

/// The default name of a loop's item.
const ITEM: &str = "item";

/// The types, as the source lists them.
const TYPES: [&str; 7] =
    ["set_data", "transform", "http_request", "send_notification", "conditional_branch", "wait", "loop"];

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*])*) => {
        $(const $name: Shape = Shape { what: $what, keys: &[$($key),*], ignored: &[], hints: &[] };)*
    };
}

shapes! {
    OPERATION "an operation" ["type" "config"]
    SET "`set_data`" ["key" "value"]
    TRANSFORM "`transform`" ["key" "transform" "into" "separator" "digits"]
    SEND "`send_notification`" ["channel" "recipients" "subject" "body"]
    BRANCH "`conditional_branch`" ["conditions"]
    CONDITION "a condition" ["key" "operator" "value" "target_state"]
    WAIT "`wait`" ["hours"]
    LOOP "`loop`" ["over" "as" "operations"]
}

/// The operations of a list, without those that could not be read.
pub(super) fn read<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Vec<Step> {
    let items = shape::list(node, "`operations`", OPERATIONS_MAX, cx.report).unwrap_or_default();
    let mut steps: Vec<Step> = Vec::new();
    let mut branched = false;
    for item in items {
        let Some(step) = operation(item, cx) else { continue };
        if branched {
            let message =
                "this and the operations after it do not run if the conditional branch before it matches";
            cx.report.add(Finding::new(AFTER_BRANCH, step.span, message));
        }
        branched = matches!(step.what, What::Branch(..));
        steps.push(step);
    }
    steps
}

fn operation<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Step> {
    let fields = Fields::open(node, &OPERATION, cx.report)?;
    let at = fields.required("type", cx.report);
    let word = at.and_then(|at| shape::word(at, "the type of an operation", &TYPES, cx.report));
    let config = fields.required("config", cx.report);
    let (at, word, config) = (at?, word?, config?);
    let what = match word {
        "set_data" => What::Run(set_data(config, cx)?),
        "transform" => What::Run(transform(config, cx)?),
        "send_notification" => {
            let fields = Fields::open(config, &SEND, cx.report)?;
            What::Run(Op::Send(messages::notification(config, &fields, cx)?))
        }
        "conditional_branch" => branch(config, cx)?,
        "wait" => {
            let hours = Fields::open(config, &WAIT, cx.report)?.required("hours", cx.report)?;
            What::Wait(read::hours(hours, "`hours`", cx)?)
        }
        "loop" => each(config, cx)?,
        _ => What::Http(parse::http(config, cx, written)?),
    };
    Some(Step { span: at.span, what })
}

/// A key that is written to.
fn written<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    let key = read::key(node, what, cx)?;
    if cx.keys.is_item(key) || (cx.keys.depth() > 0 && key == INDEX) {
        let message = format!("{what} writes to {}, which only the loop sets", quoted(key));
        cx.report.add(Finding::new(LOOP_NAME, node.span, message));
        return None;
    }
    cx.keys.sets(key);
    read::may_write(key, what, node.span, cx).then_some(key)
}

fn set_data<'a>(config: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Op> {
    let fields = Fields::open(config, &SET, cx.report)?;
    let key = fields.required("key", cx.report).and_then(|node| written(node, "`key`", cx));
    let node = fields.required("value", cx.report);
    let value = node.and_then(|node| read::filled_json(node, "`value`", cx));
    let (key, node, value) = (key?, node?, value?);
    schema::warn_written(key, "this value", schema::type_of(node), node.span, cx);
    Some(Op::Write(Write { key: key.to_owned(), value }))
}

fn transform<'a>(config: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Op> {
    let fields = Fields::open(config, &TRANSFORM, cx.report)?;
    let key = fields.required("key", cx.report);
    let from = key.and_then(|node| read::path(node, "`key`", cx));
    let into = match (fields.optional("into"), key, &from) {
        (Some(node), ..) => written(node, "`into`", cx),
        (None, Some(node), Some(_)) if node.as_text().is_some_and(|path| path.contains('.')) => {
            let path = quoted(node.as_text().unwrap_or_default());
            let message = format!("{path} is inside a value, so the result cannot be written back to it");
            cx.report.add(Finding::new(DATA_KEY, node.span, message).hint("name a key in `into`"));
            None
        }
        (None, Some(node), Some(_)) => written(node, "`key`", cx),
        (None, ..) => None,
    };
    let word = fields.required("transform", cx.report);
    let word = word.and_then(|node| shape::word(node, "`transform`", &expr::TRANSFORMS, cx.report));
    let separator = match fields.optional("separator") {
        Some(node) => shape::name(node, "`separator`", LINE_BYTES_MAX, cx.report),
        None => Some(expr::SEPARATOR),
    };
    let digits = match fields.optional("digits") {
        Some(node) => shape::integer(node, "`digits`", 0..=ROUND_DIGITS_MAX, cx.report),
        None => Some(0),
    };
    if word.is_some_and(|word| !["split", "join"].contains(&word)) {
        cx.idle(config, "separator", "it is used only by `split` and `join`");
    }
    if word.is_some_and(|word| word != "round") {
        cx.idle(config, "digits", "it is used only by `round`");
    }
    let digits = u8::try_from(digits?).unwrap_or(u8::MAX);
    let how = expr::transform(word?, separator?, digits)?;
    let (from, into) = (from?, into?);
    let span = fields.optional("into").or(key).map_or(config.span, |node| node.span);
    schema::warn_written(into, "the result of this transform", Some(expr::given(&how)), span, cx);
    Some(Op::Convert(Convert { from, into: into.to_owned(), how }))
}

/// See `docs/formats-conversation-operations.md#operations`, `conditional_branch`: the first condition that holds
/// routes and bypasses the state's transitions.
fn branch<'a>(config: &'a Node, cx: &mut Reader<'a, '_>) -> Option<What> {
    let fields = Fields::open(config, &BRANCH, cx.report)?;
    let conditions = fields.required("conditions", cx.report)?;
    let items = cx.filled(conditions, "`conditions`", CONDITIONS_MAX)?;
    let read: Vec<(Case, NodeIx)> = items.iter().filter_map(|item| condition(item, cx)).collect();
    let (cases, targets) = read.into_iter().unzip();
    Some(What::Branch(Op::Branch(cases), targets))
}

fn condition<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<(Case, NodeIx)> {
    let fields = Fields::open(node, &CONDITION, cx.report)?;
    let left = fields.required("key", cx.report).and_then(|node| read::path(node, "`key`", cx));
    let op = fields.required("operator", cx.report);
    let op = op.and_then(|node| shape::word(node, "`operator`", &expr::OPERATORS, cx.report));
    let op = op.and_then(expr::operator);
    let value = fields.required("value", cx.report);
    let right = op.zip(value).and_then(|(op, node)| operand(op, node, cx));
    let at = fields.required("target_state", cx.report);
    let to = at.and_then(|node| Some((cx.state(node, "`target_state`")?, node.as_text()?)));
    let (to, name) = to?;
    Some((Case { left: left?, op: op?, right: right?, port: Port::Branch(name.to_owned()) }, to))
}

/// Checks that the operator can compare with this value; a reference may be anything.
fn operand<'a>(op: CmpOp, node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<String> {
    let text = node.as_text();
    let json = read::filled_json(node, "`value`", cx);
    let refers = text.is_some_and(|text| expr::references(text).next().is_some());
    match op {
        CmpOp::Eq | CmpOp::Neq | CmpOp::Contains => {}
        CmpOp::Gt | CmpOp::Gte | CmpOp::Lt | CmpOp::Lte | CmpOp::Matches if refers => {}
        CmpOp::In | CmpOp::NotIn if text.is_some_and(expr::is_reference) => {}
        CmpOp::Gt | CmpOp::Gte | CmpOp::Lt | CmpOp::Lte => {
            let numeric = text.is_some_and(|text| text.trim().parse::<f64>().is_ok_and(f64::is_finite));
            if node.as_number().is_none() && !numeric {
                return shape::wrong_type(node, "`value`", "a number", cx.report);
            }
        }
        CmpOp::In | CmpOp::NotIn => {
            shape::list(node, "`value`", VALUES_MAX, cx.report)?;
        }
        CmpOp::Matches => {
            read::pattern(node, "`value`", cx)?;
        }
    }
    json
}

fn each<'a>(config: &'a Node, cx: &mut Reader<'a, '_>) -> Option<What> {
    let fields = Fields::open(config, &LOOP, cx.report)?;
    let over = fields.required("over", cx.report).and_then(|node| read::path(node, "`over`", cx));
    let item = match fields.optional("as") {
        Some(node) => item_name(node, cx),
        None => Some(ITEM),
    };
    let operations = fields.required("operations", cx.report)?;
    if cx.keys.depth() >= LOOP_DEPTH_MAX {
        let message = format!("loops are nested more than {LOOP_DEPTH_MAX} deep");
        cx.report.add(Finding::new(TOO_NESTED, config.span, message));
        return None;
    }
    cx.keys.enter(item.unwrap_or(ITEM));
    let steps = read(operations, cx);
    cx.keys.leave();
    Some(What::Loop { over: over?, item: item?.to_owned(), steps })
}

/// The item's name in templates.
fn item_name<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    let name = read::key(node, "`as`", cx)?;
    if name != INDEX && !cx.keys.is_item(name) {
        return read::may_write(name, "`as`", node.span, cx).then_some(name);
    }
    let message = if name == INDEX {
        format!("`as` cannot be {}, which is the item's position", quoted(name))
    } else {
        format!("`as` cannot be {}, which is the item of a loop around this one", quoted(name))
    };
    cx.report.add(Finding::new(LOOP_NAME, node.span, message));
    None
}
