//! What a person is shown of a gate, the same on its page and in its mails: what the engine knows of it, and what one
//! decision does. Texts of others are elsewhere, and are marked as theirs.

use switchward_engine::GateView;
use switchward_machine::{Recipient, SessionId, Time};
use switchward_state::approval::{AskedCall, Open, Quorum};
use switchward_state::limits::MAIL_ARGS_BYTES_MAX;
use switchward_state::policy::time_text;
use switchward_state::session::Session;

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

/// What the engine knows of a gate, in the order in which it is shown; in a mail, of arguments that are too long for one
/// the beginning.
#[must_use]
pub fn facts(session: &Session, id: SessionId, gate: &GateView, in_mail: bool) -> Vec<Fact> {
    let open = gate.open();
    let asked = open.gate.asked.as_ref();
    let mut facts = Vec::new();
    let mut fact = |name, value: &str, code| facts.push(Fact { name, value: clean(value), code });
    if let Some(call) = &open.gate.call {
        fact("Call", &call.capability, true);
        let all = arguments(call);
        fact("Arguments", &if in_mail && !open.gate.fits_a_mail() { beginning(&all) } else { all }, true);
    }
    // A review is of an answer, which says little without its question.
    if let (Some(exit), Some(node)) =
        (open.gate.exit.filter(|_| asked.is_none_or(|asked| asked.open)), gate.node())
    {
        fact("Question", node.text.as_deref().unwrap_or_default(), false);
        let answer = node.exits.get(usize::from(exit.0)).and_then(|exit| exit.answer());
        fact("Answered", answer.unwrap_or_default(), false);
    }
    if let Some(digest) = open.gate.shown() {
        fact("Digest", &format!("sha256 {digest}"), true);
    }
    let state = gate.node().map_or("", |node| node.name.as_str());
    fact("Process", &format!("{} v{}, {state}", session.definition, session.version), false);
    fact("Session", &session.key.clone().unwrap_or_else(|| id.to_string()), false);
    fact("Asked by", &format!("{} at {}", open.gate.requester, at(open.at)), false);
    if let Some(asked) = asked.filter(|asked| asked.round > 0) {
        let round = asked.round.saturating_add(1);
        fact(
            "Round",
            &format!(
                "{round}: the round before ended without a decision; asked now: {}",
                asked.to.join(", ")
            ),
            false,
        );
    }
    if let Some(voting) = asked.and_then(|asked| asked.voting.as_ref()) {
        fact("Approvals", &voting.count(), false);
    }
    if !gate.unreached().is_empty() {
        fact("Undeliverable", &gate.unreached().join(", "), false);
    }
    if let Some(until) = until(gate) {
        fact("Until", &until, false);
    }
    facts.retain(|fact| !fact.value.is_empty());
    facts
}

/// When the round of an open gate ends, and what happens then.
fn until(gate: &GateView) -> Option<String> {
    let GateView::Open(open, machine, _) = gate else { return None };
    let asked = open.gate.asked.as_ref()?;
    let due = at(asked.due?);
    let rounds = machine.gate(open.gate.spec)?.inquiry.as_ref()?.rounds.as_ref()?;
    Some(if asked.round < rounds.max {
        let others: Vec<&str> = rounds.to.iter().filter_map(named).collect();
        let others = if others.is_empty() { "all of them".to_owned() } else { others.join(", ") };
        format!("{due}, then these are also asked: {others}")
    } else {
        format!("{due}, then it expires without a decision")
    })
}

/// Returns whom a recipient names, if that is known without the session's data.
fn named(recipient: &Recipient) -> Option<&str> {
    match recipient {
        Recipient::Address(text) if !text.contains('{') => Some(text),
        Recipient::Address(_) | Recipient::Listed(_) => Some("others"),
        Recipient::Contact => Some("the contact"),
        Recipient::Participants => None,
    }
}

/// A time to the second.
#[must_use]
pub fn at(time: Time) -> String {
    time_text(Time(time.0 / 1_000 * 1_000)).replace(".000Z", "Z")
}

/// A call's arguments as they were given, with every character visible.
fn arguments(call: &AskedCall) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(&call.args) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_default(),
        Err(_) => String::from_utf8_lossy(&call.args).into_owned(),
    };
    // Deep nesting is mostly spaces, and then shown as it was given.
    if text.len() <= call.args.len().saturating_mul(4).saturating_add(1_024) {
        return exact(&text);
    }
    exact(&String::from_utf8_lossy(&call.args))
}

fn beginning(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(MAIL_ARGS_BYTES_MAX)];
    format!("{shown}\n… cut off here; the decision page shows all {} bytes", text.len())
}

/// Escapes invisible and direction-changing characters in JSON. The value stays the same, and two values that differ also
/// look different.
#[must_use]
pub fn exact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && (c.is_control() || hides(c)) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    text
}

/// What it takes to decide an open gate that can be approved, in a sentence or two.
#[must_use]
pub fn rule(open: &Open) -> String {
    let own = if open.gate.kind.needs_another() { " The requester cannot decide." } else { "" };
    let (many, anybody) = open.gate.asked.as_ref().map_or((0, true), |asked| (asked.to.len(), asked.open));
    let voting = open.gate.asked.as_ref().and_then(|asked| asked.voting.as_ref());
    let rule = match voting.map(|voting| (voting.quorum, voting.need)) {
        None if anybody => "The first decision by anybody who may decide counts.".to_owned(),
        None if many == 1 => "Your decision counts.".to_owned(),
        None => format!("The first decision by one of the {many} people asked counts."),
        Some((Quorum::AtLeast(_), need)) if anybody => {
            format!(
                "Anybody who may decide can approve, each once. Approvals needed: {need} (notified: {many})."
            )
        }
        Some((Quorum::All, need)) if anybody && many > 0 => {
            format!("Everybody who is notified must approve, each once: {need}.")
        }
        Some((_, need)) if anybody => {
            format!("Anybody who may decide can approve, each once. Approvals needed: {need}.")
        }
        Some((_, need)) => format!("{need} of the {many} asked must approve, each once."),
    };
    let ends = if voting.is_some() { " A rejection by anybody who may decide ends it." } else { "" };
    format!("{rule}{ends}{own}")
}

/// The text without anything that moves a terminal's cursor, recolours it, is invisible or changes the reading direction:
/// an agent's text must not be able to look like something else.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if (c.is_control() && c != '\n') || hides(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns true for a character that is invisible or changes the direction of its neighbours.
fn hides(c: char) -> bool {
    turns(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
                | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Prose without characters that change its reading direction or control a terminal; joiners and non-joiners stay, which
/// some languages need.
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
