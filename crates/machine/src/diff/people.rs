//! People: who decides, what they are shown, and what their decisions do.

use super::{Both, Change, Difference, Part, Sides, gate_of, listed, variant};
use crate::{Act, ActKind, Decision, GateSpec, Inquiry, Machine, Node, Recipient, Rounds};

/// Compares a gate; `subject` says what it is for.
pub(super) fn compare(
    sides: &mut Sides<'_>,
    state: Option<&str>,
    subject: &str,
    gates: Both<Option<&GateSpec>>,
) {
    match (gates.before, gates.after) {
        (None, None) => {}
        (Some(before), None) => {
            let difference = Difference::new(Part::People, Change::Removed, subject);
            sides.add(difference.in_state(state).text(text(before)).weaker_if(true));
        }
        (None, Some(after)) => {
            let difference = Difference::new(Part::People, Change::Added, subject);
            sides.add(difference.in_state(state).text(text(after)));
        }
        (Some(before), Some(after)) => Gates { state, subject, before, after }.compare(sides),
    }
}

/// Nobody is asked any more: the state of the gate does not exist any more.
pub(super) fn gone(sides: &mut Sides<'_>, state: &str, gate: &GateSpec) {
    compare(sides, Some(state), "decision", Both { before: Some(gate), after: None });
}

/// A gate for people: its kind, and who is asked.
fn text(gate: &GateSpec) -> String {
    match &gate.inquiry {
        Some(inquiry) => format!("{} by {}", gate.kind.word(), recipients(&inquiry.message.to)),
        None => gate.kind.word().to_owned(),
    }
}

fn recipients(list: &[Recipient]) -> String {
    listed(list.iter().map(Recipient::text))
}

/// The two sides of one comparison.
struct Gates<'g> {
    state: Option<&'g str>,
    subject: &'g str,
    before: &'g GateSpec,
    after: &'g GateSpec,
}

impl Gates<'_> {
    fn changed(&self, what: &str) -> Difference {
        let subject = format!("{what} of the {}", self.subject);
        Difference::changed(Part::People, subject).in_state(self.state)
    }

    fn compare(&self, sides: &mut Sides<'_>) {
        let (before, after) = (self.before, self.after);
        sides.unequal(&before.kind, &after.kind, || {
            let weaker = before.kind.needs_another() && !after.kind.needs_another();
            let texts = (before.kind.word(), after.kind.word());
            self.changed("kind").texts(texts.0, texts.1).weaker_if(weaker)
        });
        sides.unequal(&before.outcomes, &after.outcomes, || {
            let texts = (outcomes(before), outcomes(after));
            self.changed("decisions").texts(texts.0, texts.1).weaker_if(true)
        });
        sides.unequal(&before.record, &after.record, || {
            let text = |gate: &GateSpec| gate.record.clone().unwrap_or_default();
            let texts = (text(before), text(after));
            self.changed("record").texts(texts.0, texts.1).weaker_if(before.record.is_some())
        });
        match (&before.inquiry, &after.inquiry) {
            (Some(one), Some(other)) => self.inquiries(sides, one, other),
            (Some(one), None) => {
                let difference = Difference::new(Part::People, Change::Removed, "recipients");
                let difference = difference.in_state(self.state).text(recipients(&one.message.to));
                sides.add(difference.weaker_if(true));
            }
            (None, Some(other)) => {
                let difference = Difference::new(Part::People, Change::Added, "recipients");
                sides.add(difference.in_state(self.state).text(recipients(&other.message.to)));
            }
            (None, None) => {}
        }
        let mut same = before.clone();
        same.kind = after.kind;
        same.outcomes.clone_from(&after.outcomes);
        same.inquiry.clone_from(&after.inquiry);
        same.record.clone_from(&after.record);
        sides.unequal(&same, after, || self.changed("other settings").weaker_if(true));
    }

    fn inquiries(&self, sides: &mut Sides<'_>, before: &Inquiry, after: &Inquiry) {
        let (one, other) = (&before.message, &after.message);
        sides.unequal(&one.to, &other.to, || {
            let texts = (recipients(&one.to), recipients(&other.to));
            self.changed("recipients").texts(texts.0, texts.1).weaker_if(true)
        });
        sides.unequal(&(&one.subject, &one.body), &(&other.subject, &other.body), || {
            let texts = (shown(before), shown(after));
            self.changed("request").texts(texts.0, texts.1)
        });
        sides.unequal(&(one.channel, one.content), &(other.channel, other.content), || {
            let texts = (one.channel.word(), other.channel.word());
            self.changed("channel").texts(texts.0, texts.1)
        });
        sides.unequal(&before.phrases, &after.phrases, || {
            let texts = (phrases(before), phrases(after));
            self.changed("phrases").texts(texts.0, texts.1).weaker_if(approves_more(before, after))
        });
        sides.unequal(&before.hinted, &after.hinted, || {
            self.changed("reading of replies").weaker_if(before.hinted)
        });
        sides.unequal(&before.rounds, &after.rounds, || {
            let texts = (rounds(before), rounds(after));
            let weaker = escalates_elsewhere(before.rounds.as_ref(), after.rounds.as_ref());
            self.changed("reminders").texts(texts.0, texts.1).weaker_if(weaker)
        });
        let mut same = before.clone();
        same.message = after.message.clone();
        same.phrases.clone_from(&after.phrases);
        same.hinted = after.hinted;
        same.rounds.clone_from(&after.rounds);
        sides.unequal(&same, after, || self.changed("other settings of the request").weaker_if(true));
    }
}

fn outcomes(gate: &GateSpec) -> String {
    listed(gate.outcomes.iter().map(|(decision, resolve)| format!("{}: {resolve:?}", decision.word())))
}

fn shown(inquiry: &Inquiry) -> String {
    inquiry.message.texts().map(|text| text.source.as_str()).collect::<Vec<_>>().join("\n")
}

fn phrases(inquiry: &Inquiry) -> String {
    listed(inquiry.phrases.iter().map(|(decision, all)| format!("{}: {}", decision.word(), all.join(" / "))))
}

/// Whether a phrase approves that did not.
fn approves_more(before: &Inquiry, after: &Inquiry) -> bool {
    let known = before.phrases_of(Decision::Approve);
    after.phrases_of(Decision::Approve).iter().any(|phrase| !known.contains(phrase))
}

fn rounds(inquiry: &Inquiry) -> String {
    let Some(rounds) = &inquiry.rounds else { return "none".to_owned() };
    let Rounds { every_ms, to, max, lapse } = rounds;
    let to = recipients(to);
    format!("every {} s, {max} times, to {to}, then {}", every_ms / 1_000, variant(lapse))
}

/// Whether other people are asked after a while, or something else happens when nobody decides.
fn escalates_elsewhere(before: Option<&Rounds>, after: Option<&Rounds>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.to != after.to || before.lapse != after.lapse,
        (None, Some(after)) => !after.to.is_empty(),
        (Some(_) | None, None) => false,
    }
}

/// The gates that the body of a node opens, in the order of its acts.
pub(super) fn gates_of_body<'m>(machine: &'m Machine, node: &Node) -> Vec<&'m GateSpec> {
    let gate = |act: &Act| {
        let ActKind::Decide(decide) = &act.kind else { return None };
        gate_of(machine, Some(decide.gate))
    };
    node.acts.iter().filter_map(gate).collect()
}

/// Whether a person decides in the node, or about leaving it.
pub(super) fn has_gate(machine: &Machine, node: &Node) -> bool {
    node.exits.iter().any(|exit| exit.hold.is_some()) || !gates_of_body(machine, node).is_empty()
}
