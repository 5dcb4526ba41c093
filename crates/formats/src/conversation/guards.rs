//! Guards of a transition. See `docs/formats-conversation-operations.md#guards`.

use switchward_expr::{CmpOp, Path};
use switchward_machine::limits::TEXT_BYTES_MAX;
use switchward_machine::{Guard, Pattern};

use super::parse::MODEL;
use super::reader::Reader;
use super::{expr, read, texts};
use crate::codes::{PATTERN, TOO_MANY_ENTRIES, TOO_NESTED};
use crate::document::{Node, Span};
use crate::limits::{
    GUARD_DEPTH_MAX, GUARDS_MAX, LINE_BYTES_MAX, REQUIRED_COPIES_MAX, REQUIRED_FIELDS_MAX, VALUES_MAX,
};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

/// How a rubric names values of the data.
const RUBRIC_HINT: &str = "name the value in words: the model is given the data of the session";

const GUARD: Shape = Shape { what: "a guard", keys: &["type", "config"], ignored: &[], hints: &[] };

/// The types, as the source lists them.
const TYPES: [&str; 13] = [
    "all_required_answered",
    "tool_called",
    "data_contains",
    "data_equals",
    "data_greater_than",
    "data_less_than",
    "data_in_list",
    "user_confirmed",
    "llm_judge",
    "all_tasks_complete",
    "external_event",
    "always",
    "composite",
];

macro_rules! configs {
    ($($name:ident $what:literal [$($key:literal)*])*) => {
        $(const $name: Shape = Shape { what: $what, keys: &[$($key),*], ignored: &[], hints: &[] };)*
    };
}

configs! {
    REQUIRED "an `all_required_answered` guard" ["keys"]
    CALLED "a `tool_called` guard" ["tool_name" "require_success"]
    CONTAINS "a `data_contains` guard" ["key" "pattern"]
    EQUALS "a `data_equals` guard" ["key" "value"]
    GREATER "a `data_greater_than` guard" ["key" "value"]
    LESS "a `data_less_than` guard" ["key" "value"]
    IN_LIST "a `data_in_list` guard" ["key" "values"]
    CONFIRMED "a `user_confirmed` guard" ["patterns"]
    JUDGE "an `llm_judge` guard" ["rubric" "model"]
    TASKS "an `all_tasks_complete` guard" []
    EVENT "an `external_event` guard" ["event_key"]
    ALWAYS "an `always` guard" []
    COMPOSITE "a `composite` guard" ["operator" "guards"]
}

/// The guards of one transition.
pub(super) struct Guards<'a> {
    /// All of them together.
    pub(super) guard: Guard,
    /// Their types, joined into one label.
    pub(super) label: String,
    /// How many there are.
    pub(super) count: usize,
    /// True if one of them names no field at all.
    pub(super) vacuous: bool,
    /// Tools that the guards wait for.
    pub(super) tools: Vec<(Span, &'a str)>,
}

impl<'a> Guards<'a> {
    /// The guards of a transition without any.
    pub(super) fn none() -> Self {
        Self { guard: Guard::Always, label: "always".into(), count: 0, vacuous: false, tools: Vec::new() }
    }

    /// Reads them; `required` are the fields that their state requires.
    pub(super) fn read(node: &'a Node, required: &[&'a str], cx: &mut Reader<'a, '_>) -> Self {
        let mut read = Self::none();
        let items = shape::list(node, "`guards`", GUARDS_MAX, cx.report).unwrap_or_default();
        let mut guards = Vec::new();
        let mut words = Vec::new();
        for item in items {
            let mut one = One { required, cx: &mut *cx, read: &mut read };
            guards.extend(one.guard(item, 0));
            words.extend(item.get("type").and_then(Node::as_text));
        }
        read.count = items.len();
        if !words.is_empty() {
            read.label = words.join(" and ");
        }
        read.guard = match guards.len() {
            0 => Guard::Always,
            1 => guards.pop().unwrap_or_default(),
            _ => Guard::All(guards),
        };
        read
    }
}

/// A guard that is being read.
struct One<'o, 'a, 'r> {
    required: &'o [&'a str],
    cx: &'o mut Reader<'a, 'r>,
    read: &'o mut Guards<'a>,
}

impl<'a> One<'_, 'a, '_> {
    fn guard(&mut self, node: &'a Node, depth: usize) -> Option<Guard> {
        let fields = Fields::open(node, &GUARD, self.cx.report)?;
        let at = fields.required("type", self.cx.report)?;
        let word = shape::word(at, "the type of a guard", &TYPES, self.cx.report)?;
        let shape = match word {
            "all_required_answered" => &REQUIRED,
            "tool_called" => &CALLED,
            "data_contains" => &CONTAINS,
            "data_equals" => &EQUALS,
            "data_greater_than" => &GREATER,
            "data_less_than" => &LESS,
            "data_in_list" => &IN_LIST,
            "user_confirmed" => &CONFIRMED,
            "llm_judge" => &JUDGE,
            "all_tasks_complete" => &TASKS,
            "external_event" => &EVENT,
            "composite" => &COMPOSITE,
            _ => &ALWAYS,
        };
        let config = match fields.optional("config") {
            Some(config) => Some(Fields::open(config, shape, self.cx.report)?),
            None => None,
        };
        match (word, config) {
            // When it is evaluated, no task is open: a task is left when all of it is done.
            ("always" | "all_tasks_complete", _) => Some(Guard::Always),
            ("all_required_answered", config) => {
                let keys = config.and_then(|config| config.optional("keys"));
                Some(self.all_required(at.span, keys))
            }
            ("user_confirmed", config) => {
                let patterns = config.and_then(|config| config.optional("patterns"));
                Some(Guard::Confirmed(patterns.map(|node| self.phrases(node)).unwrap_or_default()))
            }
            (_, None) => {
                let null = fields.required("config", self.cx.report)?;
                shape::wrong_type(null, "`config`", "a map", self.cx.report)
            }
            ("llm_judge", Some(config)) => self.judge(&config),
            ("external_event", Some(config)) => self.event(&config),
            ("tool_called", Some(config)) => self.called(&config),
            ("composite", Some(config)) => self.composite(node, &config, depth),
            (_, Some(config)) => self.data(word, &config),
        }
    }

    fn event(&mut self, config: &Fields<'a>) -> Option<Guard> {
        let report = &mut *self.cx.report;
        let key = config.required("event_key", report)?;
        shape::name(key, "`event_key`", LINE_BYTES_MAX, report).map(|key| Guard::Seen(key.to_owned()))
    }

    /// The guard that asks a model. Its rubric is a "natural language condition", and so no template.
    fn judge(&mut self, config: &Fields<'a>) -> Option<Guard> {
        let node = config.required("rubric", self.cx.report);
        let rubric = node.and_then(|node| shape::text(node, "`rubric`", TEXT_BYTES_MAX, self.cx.report));
        if let (Some(node), Some(text)) = (node, rubric) {
            texts::unread(node, "`rubric`", text, RUBRIC_HINT, self.cx);
        }
        let report = &mut *self.cx.report;
        let model = match config.optional("model") {
            Some(node) => shape::name(node, "`model`", LINE_BYTES_MAX, report),
            None => Some(MODEL),
        };
        Some(Guard::Judge { rubric: rubric?.to_owned(), model: model?.to_owned() })
    }

    /// The keys that the assistant is to record: naming them here counts as setting them.
    fn all_required(&mut self, at: Span, keys_node: Option<&'a Node>) -> Guard {
        let listed = keys_node.map_or(self.required.len(), |node| node.as_list().map_or(1, <[_]>::len));
        self.read.vacuous |= listed == 0;
        let keys = match keys_node {
            Some(node) => read::keys(node, "`keys`", REQUIRED_FIELDS_MAX, self.cx),
            None => self.required_copied(at),
        };
        for item in keys_node.and_then(Node::as_list).unwrap_or_default() {
            if let Some(key) = item.as_text() {
                self.cx.keys.awaits(key, item.span);
            }
        }
        Guard::All(keys.iter().filter_map(|key| expr::path(key)).map(Guard::Present).collect())
    }

    /// The fields that the state requires, unless the guards of the workflow have taken over too many.
    fn required_copied(&mut self, at: Span) -> Vec<&'a str> {
        self.cx.copies = self.cx.copies.saturating_add(self.required.len());
        if self.cx.copies <= REQUIRED_COPIES_MAX {
            return self.required.to_vec();
        }
        let message = format!(
            "the guards refer to more than {REQUIRED_COPIES_MAX} required fields of their states in all"
        );
        self.cx.report.add(Finding::new(TOO_MANY_ENTRIES, at, message));
        Vec::new()
    }

    fn phrases(&mut self, node: &'a Node) -> Vec<String> {
        let items = shape::list(node, "`patterns`", VALUES_MAX, self.cx.report).unwrap_or_default();
        let phrase = |item| shape::name(item, "a phrase", LINE_BYTES_MAX, self.cx.report).map(str::to_owned);
        items.iter().filter_map(phrase).collect()
    }

    fn called(&mut self, config: &Fields<'a>) -> Option<Guard> {
        let success = match config.optional("require_success") {
            Some(node) => read::flag(node, "`require_success`", self.cx),
            None => Some(true),
        };
        let node = config.required("tool_name", self.cx.report)?;
        let tool = shape::text(node, "`tool_name`", usize::MAX, self.cx.report)?;
        if let Err(fault) = Pattern::check_call(tool) {
            let message = format!("`tool_name` cannot be {}: it {fault}", quoted(tool));
            self.cx.report.add(Finding::new(PATTERN, node.span, message));
            return None;
        }
        self.read.tools.push((node.span, tool));
        Some(Guard::Called { tool: tool.to_owned(), success: success? })
    }

    fn composite(&mut self, node: &'a Node, config: &Fields<'a>, depth: usize) -> Option<Guard> {
        if depth >= GUARD_DEPTH_MAX {
            let message = format!("composite guards are nested more than {GUARD_DEPTH_MAX} deep");
            self.cx.report.add(Finding::new(TOO_NESTED, node.span, message));
            return None;
        }
        let operator = config.required("operator", self.cx.report);
        let operator =
            operator.and_then(|node| shape::word(node, "`operator`", &["and", "or"], self.cx.report));
        let guards = config.required("guards", self.cx.report)?;
        let items = self.cx.filled(guards, "`guards` of a composite", GUARDS_MAX)?;
        let inner: Vec<Guard> = items.iter().filter_map(|item| self.guard(item, depth + 1)).collect();
        Some(if operator? == "or" { Guard::Any(inner) } else { Guard::All(inner) })
    }

    /// Guards that look at one value.
    fn data(&mut self, word: &str, config: &Fields<'a>) -> Option<Guard> {
        let left = config.required("key", self.cx.report);
        let left = left.and_then(|node| read::path(node, "`key`", self.cx));
        let (op, right) = match word {
            "data_contains" => return self.contains(left, config),
            "data_in_list" => {
                let values = config.required("values", self.cx.report)?;
                shape::list(values, "`values`", VALUES_MAX, self.cx.report)?;
                (CmpOp::In, read::bounded_json(values, "`values`", self.cx)?)
            }
            "data_equals" => {
                let value = config.required("value", self.cx.report)?;
                (CmpOp::Eq, read::bounded_json(value, "`value`", self.cx)?)
            }
            _ => {
                let value = config.required("value", self.cx.report)?;
                let Some(number) = value.as_number() else {
                    return shape::wrong_type(value, "`value`", "a number", self.cx.report);
                };
                let op = if word == "data_less_than" { CmpOp::Lt } else { CmpOp::Gt };
                (op, number.to_owned())
            }
        };
        Some(Guard::Compare { left: left?, op, right })
    }

    /// The key exists, and its value optionally matches.
    fn contains(&mut self, left: Option<Path>, config: &Fields<'a>) -> Option<Guard> {
        let Some(node) = config.optional("pattern") else { return left.map(Guard::Present) };
        let pattern = read::pattern(node, "`pattern`", self.cx)?;
        let present = Guard::Present(left.clone()?);
        let matches = Guard::Compare { left: left?, op: CmpOp::Matches, right: read::json_text(pattern) };
        Some(Guard::All(vec![present, matches]))
    }
}
