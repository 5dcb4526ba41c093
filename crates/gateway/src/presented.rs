//! What a person is shown of a gate, the same on its page and in its mails: what the engine knows of it, and what one
//! decision does. The words of others stand elsewhere, and are marked as theirs.

use switchward_engine::{AskedCall, GateView, Open, Quorum, Session, time_text};
use switchward_machine::{Digest, SessionId};

/// Something that the engine knows of what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is called.
    pub name: &'static str,
    /// What it is; may have several lines, and none that hides or turns what stands in it.
    pub value: String,
    /// Whether it is written for machines: arguments, a digest.
    pub code: bool,
}

/// What the engine knows of a gate, in the order in which it is shown; of a call's arguments at most so many bytes.
#[must_use]
pub fn facts(session: &Session, id: SessionId, gate: &GateView, args_bytes_max: usize) -> Vec<Fact> {
    let open = gate.open();
    let asked = open.gate.asked.as_ref();
    let mut facts = Vec::new();
    let mut fact = |name, value: &str, code| facts.push(Fact { name, value: clean(value), code });
    if let Some(call) = &open.gate.call {
        fact("Call", &call.capability, true);
        fact("With", &arguments(call, args_bytes_max), true);
    }
    if let Some(digest) = digest(open) {
        fact("Digest", &format!("sha256 {digest}"), true);
    }
    let state = gate.node().map_or("", |node| node.name.as_str());
    fact("Process", &format!("{} v{}, {state}", session.definition, session.version), false);
    fact("Session", &session.key.clone().unwrap_or_else(|| id.to_string()), false);
    fact("Asked by", &format!("{} at {}", open.gate.requester, time_text(open.at)), false);
    if let Some(voting) = asked.and_then(|asked| asked.voting.as_ref()) {
        fact("Approvals", &voting.count(), false);
    }
    if !gate.unreached().is_empty() {
        fact("No mail reaches", &gate.unreached().join(", "), false);
    }
    if let (GateView::Open(..), Some(due)) = (gate, asked.and_then(|asked| asked.due)) {
        fact("Until", &format!("{} (then others are asked, or it lapses)", time_text(due)), false);
    }
    facts
}

/// The digest of what is shown: of a call with its arguments, or of the request's words; nothing where neither is.
fn digest(open: &Open) -> Option<Digest> {
    open.gate.shown()
}

fn arguments(call: &AskedCall, bytes_max: usize) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(&call.args) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_default(),
        Err(_) => String::from_utf8_lossy(&call.args).into_owned(),
    };
    if text.len() <= bytes_max {
        return text;
    }
    format!("{}\n… ({} bytes in all)", &text[..text.floor_char_boundary(bytes_max)], text.len())
}

/// What it takes to decide an open gate that can be approved, in a sentence or two.
#[must_use]
pub fn rule(open: &Open) -> String {
    let own = if open.gate.kind.needs_another() { " Who asked cannot decide." } else { "" };
    let (many, anybody) = open.gate.asked.as_ref().map_or((0, true), |asked| (asked.to.len(), asked.open));
    let voting = open.gate.asked.as_ref().and_then(|asked| asked.voting.as_ref());
    let rule = match voting.map(|voting| (voting.quorum, voting.need)) {
        None if anybody => "The first decision of anybody who may decide counts.".to_owned(),
        None if many == 1 => "Your decision counts.".to_owned(),
        None => format!("The first decision of the {many} asked counts."),
        Some((Quorum::AtLeast(_), need)) if anybody => {
            format!(
                "It takes the approval of {need} people who may decide, each once; {many} are told of it."
            )
        }
        Some((Quorum::All, need)) if anybody && many > 0 => {
            format!("All who are told of it must approve, each once: {need}.")
        }
        Some((_, need)) if anybody => format!("It takes {need} of those who may decide, each once."),
        Some((_, need)) => format!("{need} of the {many} asked must approve, each once."),
    };
    let ends = if voting.is_some() { " A rejection by anybody who may decide ends it." } else { "" };
    format!("{rule}{ends}{own}")
}

/// The text without anything that moves a terminal's cursor, recolours it, is not seen or turns the reading direction:
/// what comes from an agent must not be able to dress up as something else.
#[must_use]
pub fn clean(text: &str) -> String {
    let hides = |c| {
        turns(c)
            || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|c| if (c.is_control() && c != '\n') || hides(c) { '\u{fffd}' } else { c }).collect()
}

/// Prose without what turns its reading direction or controls a terminal; what joins and parts letters stays, which some
/// languages cannot be written without.
#[must_use]
pub fn prose(text: &str) -> String {
    let plain = |c: char| (!c.is_control() || matches!(c, '\n' | '\r' | '\t')) && !turns(c);
    text.chars().map(|c| if plain(c) { c } else { '\u{fffd}' }).collect()
}

fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_is_seen() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}c\u{200b}\nd"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\nd");
        assert_eq!(
            prose("a\u{1b}b\u{202e}c\u{2067}\u{200c}\n\td"),
            "a\u{fffd}b\u{fffd}c\u{fffd}\u{200c}\n\td"
        );
    }
}
