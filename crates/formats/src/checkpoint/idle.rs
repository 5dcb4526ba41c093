//! Rules that never decide. See `docs/policies.md#how-one-layer-decides`.

use switchward_machine::{Pattern, Rule};

use super::tools::{PROCESS_STEP, process_step};
use crate::codes::RULE_IDLE;
use crate::document::Span;
use crate::{Finding, Report, quoted};

const SEPARATORS: [char; 2] = [':', '.'];

/// A rule and the span of its capability.
pub(super) struct Listed {
    /// As compiled.
    pub(super) rule: Rule,
    /// The capability's span.
    pub(super) span: Span,
}

/// Warns of rules that an earlier list always decides first, and of rules about `process_step`. The lists are in
/// evaluation order.
pub(super) fn warn(lists: &[(&str, &[Listed])], report: &mut Report) {
    for (at, (name, listed)) in lists.iter().enumerate() {
        for it in *listed {
            let capability = quoted(it.rule.pattern.as_str());
            if it.rule.pattern == process_step() {
                let message = format!(
                    "{capability} in `{name}` never decides: {} is always allowed",
                    quoted(PROCESS_STEP)
                );
                report.add(Finding::new(RULE_IDLE, it.span, message));
            } else if let Some((before, earlier)) = covering(&lists[..at], &it.rule.pattern) {
                let message = format!(
                    "{capability} in `{name}` never decides: `{before}` is checked first and has {}",
                    quoted(earlier.as_str())
                );
                report.add(Finding::new(RULE_IDLE, it.span, message));
            }
        }
    }
}

/// The first rule of these lists that covers everything that `pattern` covers.
fn covering<'a>(lists: &[(&'a str, &'a [Listed])], pattern: &Pattern) -> Option<(&'a str, &'a Pattern)> {
    lists.iter().find_map(|(name, listed)| {
        let found = listed.iter().find(|it| covers_all(&it.rule.pattern, pattern));
        found.map(|it| (*name, &it.rule.pattern))
    })
}

/// Returns true if `wide` covers everything that `narrow` covers.
fn covers_all(wide: &Pattern, narrow: &Pattern) -> bool {
    match (wide.as_str().strip_suffix('*'), narrow.as_str().strip_suffix('*')) {
        (Some(wide), Some(narrow)) => narrow.starts_with(wide),
        // A pattern of one segment also covers everything below it: `mcp` covers all of `mcp:*`.
        (None, Some(stem)) => {
            let below = stem.strip_prefix(wide.as_str()).is_some_and(|rest| rest.starts_with(SEPARATORS));
            below && !wide.as_str().contains(SEPARATORS)
        }
        (Some(_) | None, None) => wide.covers(narrow.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_pattern_covers_all_of_a_narrow_one() {
        let all = |wide: &str, narrow: &str| {
            covers_all(&Pattern::new(wide).unwrap(), &Pattern::new(narrow).unwrap())
        };
        for (wide, narrow) in [
            ("bash", "bash"),
            ("bash", "bash:rm"),
            ("bash", "bash:*"),
            ("bash", "bash.r*"),
            ("*", "bash"),
            ("*", "*"),
            ("mcp:*", "mcp:fs:*"),
            ("mcp:*", "mcp:fs:read"),
            ("mcp:fs:re*", "mcp:fs:read"),
            ("mcp", "mcp:fs:*"),
        ] {
            assert!(all(wide, narrow), "{wide} {narrow}");
        }
        for (wide, narrow) in [
            ("bash:rm", "bash"),
            ("mcp:fs:*", "mcp:*"),
            ("mcp:fs:read", "mcp:fs:re*"),
            ("bash", "bash*"),
            ("bash", "*"),
            ("a:b", "a:b:*"),
            ("a:bx", "a:b*"),
            ("ax", "a*"),
            ("mcp:*", "mcp"),
            ("mcp:fs", "mcp:fs:*"),
        ] {
            assert!(!all(wide, narrow), "{wide} {narrow}");
        }
    }
}
