//! Hints of classification: the phrases that mean a port. See `docs/formats-conversation.md#wait` and
//! `docs/formats-conversation.md#approval`.

use super::reader::Reader;
use crate::codes::NOT_LISTED;
use crate::document::Node;
use crate::limits::{TEMPLATE_BYTES_MAX, VALUES_MAX};
use crate::{Finding, quoted, shape};

/// The hints of each port of the state.
pub(super) fn hints<'a>(
    node: &'a Node,
    ports: &[&str],
    cx: &mut Reader<'a, '_>,
) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let what = "`classification_hints`";
    let entries = shape::map(node, what, VALUES_MAX, cx.report).unwrap_or_default();
    for (key, value) in entries {
        if !ports.contains(&key.text.as_str()) {
            let message =
                format!("{what} names the port {}, which the state does not have", quoted(&key.text));
            let nearest = cx.report.nearest(&key.text, ports.iter().copied());
            let finding = Finding::new(NOT_LISTED, key.span, message);
            cx.report.add(finding.allowed(ports.iter().copied()).nearest(nearest));
        }
        if let Some(text) = shape::text(value, "a hint", TEMPLATE_BYTES_MAX, cx.report) {
            found.push((key.text.clone(), switchward_expr::hints(text)));
        }
    }
    found
}

/// Returns true if there is a phrase among them.
pub(super) fn hinted(hints: &[(String, Vec<String>)]) -> bool {
    hints.iter().any(|(_, phrases)| !phrases.is_empty())
}
