//! The values of YAML anchors, and the bounds of their aliases.

use std::collections::BTreeMap;

use super::{Node, Value};
use crate::limits::{ALIAS_BYTES_MAX, ALIAS_NODES_MAX, ANCHORS_MAX, DEPTH_MAX};

/// The anchored values of a document, and the budget that all its aliases share.
#[derive(Default)]
pub(super) struct Aliases {
    /// By the parser's number of the anchor; `None` for a value that is larger than the whole budget.
    kept: BTreeMap<usize, Option<(Node, Extent)>>,
    nodes: usize,
    bytes: usize,
    exhausted: bool,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    nodes: usize,
    bytes: usize,
    /// The nesting depth of lists and maps; 0 for a scalar.
    height: usize,
}

impl Aliases {
    /// Remembers a finished value.
    pub(super) fn keep(&mut self, anchor: usize, node: &Node) {
        if self.kept.len() < ANCHORS_MAX {
            self.kept.insert(anchor, measure(node).map(|extent| (node.clone(), extent)));
        }
    }

    /// The value of an alias at this depth and its number of values, or why there is none. An exhausted budget is reported
    /// once.
    pub(super) fn resolve(&mut self, anchor: usize, depth: usize) -> Result<(Node, usize), Option<String>> {
        let (node, extent) = match self.kept.get(&anchor) {
            Some(Some(kept)) => kept,
            Some(None) => return Err(self.exhaust()),
            None => {
                return Err(Some(format!(
                    "this alias refers to a key, to a value around it, or to an anchor after the first {ANCHORS_MAX}"
                )));
            }
        };
        if depth + extent.height > DEPTH_MAX {
            return Err(Some(format!(
                "with this alias, lists and maps are nested more than {DEPTH_MAX} deep"
            )));
        }
        let (nodes, bytes) = (self.nodes + extent.nodes, self.bytes + extent.bytes);
        if self.exhausted || nodes > ALIAS_NODES_MAX || bytes > ALIAS_BYTES_MAX {
            return Err(self.exhaust());
        }
        let copy = (node.clone(), extent.nodes);
        (self.nodes, self.bytes) = (nodes, bytes);
        Ok(copy)
    }

    fn exhaust(&mut self) -> Option<String> {
        let first = !std::mem::replace(&mut self.exhausted, true);
        first.then(|| {
            format!(
                "from here on aliases add more than {ALIAS_NODES_MAX} values or {ALIAS_BYTES_MAX} bytes of text"
            )
        })
    }
}

/// The size of a value; `None` if it exceeds the budget.
fn measure(node: &Node) -> Option<Extent> {
    let mut extent = Extent { nodes: 1, ..Extent::default() };
    let mut add = |inner: &Node, bytes: usize| {
        let inner = measure(inner)?;
        extent.nodes += inner.nodes;
        extent.bytes += inner.bytes + bytes;
        extent.height = extent.height.max(inner.height);
        (extent.nodes <= ALIAS_NODES_MAX && extent.bytes <= ALIAS_BYTES_MAX).then_some(())
    };
    match &node.value {
        Value::Null | Value::Bool(_) | Value::Unread => {}
        Value::Number(text) | Value::String(text) => extent.bytes = text.len(),
        Value::List(items) => {
            items.iter().try_for_each(|item| add(item, 0))?;
            extent.height += 1;
        }
        Value::Map(entries) => {
            entries.iter().try_for_each(|(key, node)| add(node, key.text.len()))?;
            extent.height += 1;
        }
    }
    (extent.bytes <= ALIAS_BYTES_MAX).then_some(extent)
}
