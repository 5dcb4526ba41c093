//! Tools of the workflow and of its states. See `docs/formats-conversation-operations.md#tools`.

use switchward_machine::limits::RULES_MAX;
use switchward_machine::{Layer, NodeIx, Otherwise, Pattern, Rule};

use super::reader::Reader;
use crate::codes::PATTERN;
use crate::document::Node;
use crate::{Finding, quoted, shape};

/// Tools that can be called in every state of every workflow.
const ALWAYS: [&str; 4] = ["record_data", "signal_completion", "retry_state", "switch_workflow"];

/// The tools that a list names; each once.
pub(super) fn read(node: &Node, what: &str, cx: &mut Reader<'_, '_>) -> Vec<Pattern> {
    let items = shape::list(node, what, RULES_MAX, cx.report).unwrap_or_default();
    let mut tools = Vec::new();
    for item in items {
        let Some(name) = shape::text(item, &format!("a tool in {what}"), usize::MAX, cx.report) else {
            continue;
        };
        match Pattern::new(name) {
            Ok(tool) if tools.contains(&tool) => {}
            Ok(tool) => tools.push(tool),
            Err(fault) => {
                let message = format!("a tool in {what} cannot be {}: it {fault}", quoted(name));
                cx.report.add(Finding::new(PATTERN, item.span, message));
            }
        }
    }
    tools
}

/// The layer of a state: closed except for the workflow's tools, its own, and those of every workflow. If neither the
/// workflow nor the state lists any, the tenant's default applies.
pub(super) fn layer(at: NodeIx, global: Option<&[Pattern]>, own: Option<&[Pattern]>) -> Layer {
    let listed = global.is_some() || own.is_some();
    let (global, own) = (global.unwrap_or_default(), own.unwrap_or_default());
    let own = own.iter().filter(|tool| !global.contains(tool));
    let rule = |tool: &Pattern| Rule { pattern: tool.clone(), limits: Vec::new(), gate: None, args: None };
    Layer {
        name: "tools".into(),
        covers: pattern("*"),
        except: ALWAYS.map(pattern).into(),
        deny: Vec::new(),
        ask: Vec::new(),
        allow: global.iter().chain(own).map(rule).collect(),
        otherwise: if listed { Otherwise::Deny } else { Otherwise::TenantDefault },
        at: Some(at),
    }
}

/// Returns true if this layer may permit a call of this tool.
pub(super) fn is_open(layer: &Layer, tool: &str) -> bool {
    let at = layer.at.unwrap_or(NodeIx(0));
    layer.otherwise != Otherwise::Deny
        || !layer.speaks(tool, at)
        || layer.allow.iter().any(|rule| rule.pattern.covers(tool))
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect("a built-in pattern is valid")
}
