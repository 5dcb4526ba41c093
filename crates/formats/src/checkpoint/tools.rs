//! Tools of the process endpoint. See `docs/formats-checkpoint.md#the-process`, `allowed_tools`.

use std::collections::BTreeSet;

use switchward_machine::limits::RULES_MAX;
use switchward_machine::{Layer, Otherwise, Pattern, Rule};

use crate::codes::TOOL_DROPPED;
use crate::document::Node;
use crate::{Finding, Report, quoted, shape};

/// All tools of the endpoint, in the order of the compiled rules.
const WHITELIST: [&str; 3] = ["memory", "task", "process_step"];
const SERVER: &str = "mcp:process:";

/// The answer to a checkpoint, as a capability. No policy can deny it, so that a session can always be closed.
pub(super) const PROCESS_STEP: &str = "mcp:process:process_step";

pub(super) fn process_step() -> Pattern {
    pattern(PROCESS_STEP)
}

/// Parses a built-in pattern.
pub(crate) fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect("a built-in pattern is valid")
}

/// The layer of the endpoint's tools: closed, with the whole whitelist if there is no list.
pub(super) fn read(node: Option<&Node>, report: &mut Report) -> Layer {
    let listed = node.map(|node| listed(node, report));
    let allowed = WHITELIST.iter().filter(|tool| listed.as_ref().is_none_or(|listed| listed.contains(*tool)));
    let rule = |tool: &&str| Rule {
        pattern: pattern(&format!("{SERVER}{tool}")),
        limits: Vec::new(),
        gate: None,
        args: None,
    };
    Layer {
        name: "allowed_tools".into(),
        covers: pattern("mcp:process:*"),
        except: vec![process_step()],
        deny: Vec::new(),
        ask: Vec::new(),
        allow: allowed.map(rule).collect(),
        otherwise: Otherwise::Deny,
        at: None,
    }
}

/// The listed tools that the endpoint has. The source drops the others silently; here each is a warning.
fn listed(node: &Node, report: &mut Report) -> BTreeSet<&'static str> {
    let items = shape::list(node, "`allowed_tools`", RULES_MAX, report).unwrap_or_default();
    let mut known = BTreeSet::new();
    for item in items {
        let Some(name) = shape::text(item, "a name in `allowed_tools`", usize::MAX, report) else { continue };
        if let Some(tool) = WHITELIST.iter().find(|tool| **tool == name) {
            known.insert(*tool);
            continue;
        }
        // A capability's full name is a likely mistake: compare its last part.
        let last = name.rsplit([':', '.']).next().unwrap_or(name);
        let nearest = report.nearest(last, WHITELIST);
        let message =
            format!("{} in `allowed_tools` is not one of the endpoint's tools and is ignored", quoted(name));
        report.add(Finding::new(TOOL_DROPPED, item.span, message).allowed(WHITELIST).nearest(nearest));
    }
    known
}
