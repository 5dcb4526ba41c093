//! What a person is shown of a gate, the same on its page and in its mails: what the engine knows of it, and what one
//! decision does. Texts of others are elsewhere, and are marked as theirs.

use std::borrow::Cow;
use switchward_machine::{GateKind, Recipient, SessionId, Time};
use switchward_state::approval::{OpenGate, Quorum, RequestSubject};
use switchward_state::limits::MAIL_ARGS_BYTES_MAX;
use switchward_state::policy::time_text;
use switchward_state::session::Session;

use super::people::count;
use crate::clean::{clean, exact};
use crate::fact::{Fact, GateFacts, Medium};

/// The subject of a request; may be empty.
#[must_use]
pub fn request(subject: &RequestSubject) -> Cow<'_, str> {
    match subject {
        RequestSubject::Written(text) => Cow::Borrowed(text),
        RequestSubject::Call { definition, capability } => {
            Cow::Owned(format!("{definition}: approve {capability}?"))
        }
        RequestSubject::Review { definition, answer, state } => {
            Cow::Owned(format!("{definition}: {answer:?} at {state:?} needs a review"))
        }
        RequestSubject::Approval { state } => Cow::Owned(format!("Approval needed: {state}")),
        RequestSubject::Task { state } => Cow::Owned(format!("Your answer is needed: {state}")),
    }
}

/// What the engine knows of a gate, in the order in which it is shown; in a mail, of arguments that are too long for one
/// the beginning.
#[must_use]
pub fn facts(session: &Session, id: SessionId, gate: &GateFacts<'_>, medium: Medium) -> Vec<Fact> {
    let open = gate.open;
    let asked = open.body.asked.as_ref();
    let mut facts = Vec::new();
    let mut fact = |name, value: &str, code| facts.push(Fact { name, value: clean(value), code });
    if let Some(call) = &open.body.call {
        fact("Call", &call.capability, true);
        let all = arguments(&call.args);
        let whole = medium == Medium::Page || open.body.fits_a_mail();
        fact("Arguments", &if whole { all } else { beginning(&all) }, true);
    }
    // A review is of an answer, which says little without its question.
    let review = open.body.kind == GateKind::Notify || asked.is_none_or(|asked| asked.open);
    if let (Some(exit), Some(node)) = (open.body.exit.filter(|_| review), gate.node()) {
        fact("Question", node.text.as_deref().unwrap_or_default(), false);
        let answer = node.exits.get(usize::from(exit.0)).and_then(|exit| exit.answer());
        fact("Answered", answer.unwrap_or_default(), false);
    }
    if let Some(digest) = open.body.shown() {
        fact("Digest", &format!("sha256 {digest}"), true);
    }
    let state = gate.node().map_or("", |node| node.name.as_str());
    fact("Process", &format!("{} v{}, {state}", session.definition, session.version), false);
    if open.head.run != session.root {
        fact("Run", &open.head.run.0.to_string(), false);
    }
    fact("Session", &session.key.clone().unwrap_or_else(|| id.to_string()), false);
    fact("Asked by", &format!("{} at {}", open.body.requester, at(open.head.at)), false);
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
        fact("Approvals", &count(voting), false);
    }
    fact("Undeliverable", &gate.unreached.unwrap_or_default().join(", "), false);
    if let Some(until) = until(gate) {
        fact("Until", &until, false);
    }
    facts.retain(|fact| !fact.value.is_empty());
    facts
}

/// When the round of an open gate ends, and what happens then.
fn until(gate: &GateFacts<'_>) -> Option<String> {
    gate.unreached?;
    let asked = gate.open.body.asked.as_ref()?;
    let due = at(asked.due?);
    let rounds = gate.machine.gate(gate.open.body.spec)?.inquiry.as_ref()?.rounds.as_ref()?;
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

/// A call's arguments as they were given, with every character visible. The approval is bound to the digits of their
/// numbers, so none of them is read.
fn arguments(args: &[u8]) -> String {
    let given = String::from_utf8_lossy(args);
    let text = indented(&given);
    // Deep nesting is mostly spaces, and then shown as it was given.
    if text.len() <= args.len().saturating_mul(4).saturating_add(1_024) {
        return exact(&text);
    }
    exact(&given)
}

/// JSON without white space between its values, with a line for each entry of its lists and maps.
fn indented(json: &str) -> String {
    let (mut out, mut depth) = (String::with_capacity(json.len()), 0_usize);
    let (mut in_text, mut escaped, mut opened) = (false, false, false);
    for c in json.chars() {
        if in_text {
            (in_text, escaped) = (escaped || c != '"', !escaped && c == '\\');
            out.push(c);
            continue;
        }
        let closes = matches!(c, '}' | ']');
        depth = depth.saturating_sub(usize::from(closes));
        // An empty list or map stays on its line.
        if opened != closes {
            begin_line(&mut out, depth);
        }
        out.push(c);
        opened = matches!(c, '{' | '[');
        depth += usize::from(opened);
        match c {
            ',' => begin_line(&mut out, depth),
            ':' => out.push(' '),
            '"' => in_text = true,
            _ => {}
        }
    }
    out
}

fn begin_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn beginning(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(MAIL_ARGS_BYTES_MAX)];
    format!("{shown}\n… cut off here; the decision page shows all {} bytes", text.len())
}

/// What it takes to decide an open gate that can be approved, in a sentence or two.
#[must_use]
pub fn rule(open: &OpenGate) -> String {
    let own = if open.body.kind.needs_another() { " The requester cannot decide." } else { "" };
    let (many, anybody) = open.body.asked.as_ref().map_or((0, true), |asked| (asked.to.len(), asked.open));
    let voting = open.body.asked.as_ref().and_then(|asked| asked.voting.as_ref());
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
            format!("Everybody who is notified must approve, each once. Approvals needed: {need}.")
        }
        Some((_, need)) if anybody => {
            format!("Anybody who may decide can approve, each once. Approvals needed: {need}.")
        }
        Some((_, need)) => format!("{need} of the {many} people asked must approve, each once."),
    };
    let ends = if voting.is_some() { " A rejection by anybody who may decide ends it." } else { "" };
    format!("{rule}{ends}{own}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_with_the_digits_that_are_approved() {
        let args =
            r#"{"a":[],"b":{},"c":[123456789012345678901,0.10000000000000000001,1e2],"d":{"e":"},[\"\\"}}"#;
        let shown = [
            "{",
            r#"  "a": [],"#,
            r#"  "b": {},"#,
            r#"  "c": ["#,
            "    123456789012345678901,",
            "    0.10000000000000000001,",
            "    1e2",
            "  ],",
            r#"  "d": {"#,
            r#"    "e": "},[\"\\""#,
            "  }",
            "}",
        ];
        assert_eq!(arguments(args.as_bytes()), shown.join("\n"));
    }

    #[test]
    fn deep_arguments_are_shown_as_they_were_given() {
        let deep = format!("{}[]{}", "[[],".repeat(500), "]".repeat(500));
        assert_eq!(arguments(deep.as_bytes()), deep);
    }
}
