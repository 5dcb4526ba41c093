//! Messages to the outside: who gets them, and what they say.

use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use switchward_machine::{Channel, Content, Message, Recipient, RunId, reserved_keys::TASKS};
use switchward_state::catalogue::Tenancy;
use switchward_state::delivery::{EffectBody, MessageText, Purpose};
use switchward_state::limits::{
    EFFECT_BYTES, NAME_FUEL, PARTICIPANTS_MAX, RECIPIENT_BYTES_MAX, RECIPIENTS_MAX, RESULT_SHOWN_BYTES_MAX,
};
use switchward_state::run::{Fault, FaultCause, RecipientsProblem};
use switchward_state::{Key, ReadRows as _, SharedRow};

use crate::delivery::capacity;
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// What a participant of a task is called in its data.
pub(crate) const PARTICIPANT: &str = "participant";

/// Whom names stand for, in one session.
pub(crate) struct People {
    /// The address of the person that the conversation is with.
    contact: Option<String>,
    tenancy: Option<SharedRow<Tenancy>>,
    /// Whether approvers are asked who are not in the directory, wherever they come from.
    any_approver: bool,
}

impl People {
    pub(crate) fn of(turn: &Turn<'_, '_>) -> Result<Self, Stop> {
        let session = turn.session()?;
        let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
        let any = tenancy.as_ref().is_some_and(|known| known.any_approver_address);
        let any_approver = any || session.any_approver_address;
        Ok(Self { contact: session.contact.clone(), tenancy, any_approver })
    }

    /// Whether the directory knows of this name, or holds this address.
    fn holds(&self, name: &str) -> bool {
        let directory = self.tenancy.as_ref().map(|known| &known.directory);
        directory.is_some_and(|known| !known.addresses(name).is_empty() || known.holds(name))
    }

    /// The addresses that a name stands for in the tenant's directory; what stands for nobody there is one itself.
    fn addresses(&self, name: String) -> Vec<String> {
        let known = self.tenancy.as_ref().map(|known| known.directory.addresses(&name)).unwrap_or_default();
        if known.is_empty() { vec![name] } else { known }
    }
}

/// Puts a message into the outbox, once for each recipient; what is wrong with it, or too much, sends nothing.
pub(crate) fn send(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    scope: &Scope,
    message: &Message,
) -> Result<Option<Fault>, Stop> {
    let people = People::of(turn)?;
    let composed = match compose(scope, message, &people) {
        Ok(composed) => composed,
        Err(fault) => return Ok(Some(fault)),
    };
    let (count, bytes) = (composed.to.len(), composed.bytes());
    let over = match composed.channel {
        Channel::Email => capacity::mails(turn, count, bytes)?,
        Channel::Chat | Channel::Webhook => capacity::effects(turn, count, bytes)?,
    };
    if let Some(excess) = over {
        return Ok(Some(excess.into()));
    }
    for effect in composed.effects() {
        turn.send(run, effect)?;
    }
    Ok(None)
}

/// A message as it goes out.
pub(crate) struct ComposedMessage {
    channel: Channel,
    /// To whom; one empty address in the conversation itself.
    pub(crate) to: Vec<String>,
    /// `None` if its author wrote none.
    pub(crate) subject: Option<String>,
    /// Empty if its author wrote none.
    pub(crate) body: String,
    content: Content,
}

impl ComposedMessage {
    /// What its effects hold, bytes.
    fn bytes(&self) -> usize {
        let one = EFFECT_BYTES + self.subject.as_ref().map_or(0, String::len) + self.body.len();
        let to: usize = self.to.iter().map(String::len).sum();
        to.saturating_add(one.saturating_mul(self.to.len()))
    }

    /// One effect for each recipient.
    fn effects(self) -> impl Iterator<Item = EffectBody> {
        let Self { channel, to, subject, body, content } = self;
        let text = MessageText::Written { subject, body, content };
        to.into_iter().map(move |to| EffectBody::Message {
            channel,
            to,
            text: text.clone(),
            gate: None,
            purpose: Purpose::Say,
            head: None,
        })
    }
}

/// Renders a message, and finds out who gets it.
pub(crate) fn compose(scope: &Scope, message: &Message, people: &People) -> Result<ComposedMessage, Fault> {
    let to = match message.channel {
        Channel::Chat => vec![String::new()],
        Channel::Email | Channel::Webhook => recipients(scope, &message.to, people)?,
    };
    worded(scope, message, to)
}

/// Renders a message to these.
pub(crate) fn worded(scope: &Scope, message: &Message, to: Vec<String>) -> Result<ComposedMessage, Fault> {
    let subject = message.subject.as_ref().map(|subject| scope.text(subject, Content::Text)).transpose()?;
    let subject = subject.map(|subject| subject.replace(['\r', '\n'], " "));
    let text = message.body.as_ref().map(|body| scope.text(body, message.content)).transpose()?;
    let text = text.unwrap_or_default();
    let (body, content) = match (message.content, message.channel) {
        (Content::Markdown, Channel::Email) => (switchward_expr::to_html(&text), Content::Html),
        (content, _) => (text, content),
    };
    Ok(ComposedMessage { channel: message.channel, to, subject, body, content })
}

/// Everybody whom a list names, each once, in its order; never nobody.
pub(crate) fn recipients(scope: &Scope, list: &[Recipient], people: &People) -> Result<Vec<String>, Fault> {
    let same = |one: &str, other: &str| one == other;
    let found = named(scope, list, people, RECIPIENTS_MAX, same, &|_, _| true)?;
    let found = found.ok_or(RecipientsProblem::TooMany)?.to;
    if found.is_empty() {
        return Err(RecipientsProblem::Nobody.into());
    }
    Ok(found)
}

/// Whom a list names to approve something.
pub(crate) struct Approvers {
    /// Addresses, each once, in the list's order; nobody only if somebody was dropped.
    pub(crate) to: Vec<String>,
    /// Those who come from data or from the start, and whom the directory does not hold.
    pub(crate) dropped: Vec<String>,
    /// The names and addresses by which `to` were named.
    pub(crate) names: Vec<String>,
}

/// Whom a list names.
pub(crate) struct Named {
    /// Addresses, each once, in the list's order.
    pub(crate) to: Vec<String>,
    /// The names and addresses that the list has, ordered, each once.
    pub(crate) names: Vec<String>,
}

/// Everybody whom a list names to approve something, or to be asked later. A caller with an agent's key chooses data and
/// start, so that people who come from there count only if the directory holds them.
pub(crate) fn approvers(scope: &Scope, list: &[Recipient], people: &People) -> Result<Approvers, Fault> {
    let dropped = RefCell::new(Vec::new());
    let counts = |recipient: &Recipient, name: &str| {
        let counts = recipient.is_fixed() || people.any_approver || people.holds(name);
        let mut dropped = dropped.borrow_mut();
        if !counts && dropped.len() < RECIPIENTS_MAX && !dropped.iter().any(|known| known == name) {
            dropped.push(name.to_owned());
        }
        counts
    };
    let same = |one: &str, other: &str| one == other;
    let found = named(scope, list, people, RECIPIENTS_MAX, same, &counts)?;
    let Named { to, names } = found.ok_or(RecipientsProblem::TooMany)?;
    let dropped = dropped.into_inner();
    if to.is_empty() && dropped.is_empty() {
        return Err(RecipientsProblem::Nobody.into());
    }
    Ok(Approvers { to, dropped, names })
}

/// Everybody who takes part in a task, each once, in the list's order; maybe nobody. Addresses are compared without
/// regard to case, as at the gates.
pub(crate) fn participants(scope: &Scope, list: &[Recipient], people: &People) -> Result<Named, Fault> {
    let found = named(scope, list, people, PARTICIPANTS_MAX, str::eq_ignore_ascii_case, &|_, _| true)?;
    Ok(found.ok_or(RecipientsProblem::TooManyParticipants)?)
}

/// Those whom a list names and who count, each once; `None` if there are more than the maximum.
fn named(
    scope: &Scope,
    list: &[Recipient],
    people: &People,
    max: usize,
    same: impl Fn(&str, &str) -> bool,
    counts: &dyn Fn(&Recipient, &str) -> bool,
) -> Result<Option<Named>, Fault> {
    let (mut to, mut names): (Vec<String>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    for recipient in list {
        for value in values(scope, recipient, people)? {
            let Some(name) = address(value)? else { continue };
            if scope.fuel().is_used_up() {
                return Err(FaultCause::TurnFuel.into());
            }
            scope.fuel().spend(NAME_FUEL);
            // A name that was looked up before adds nobody.
            if !counts(recipient, &name) || !names.insert(name.clone()) {
                continue;
            }
            let addresses = people.addresses(name);
            scope.fuel().spend(u64::try_from(addresses.len()).unwrap_or(u64::MAX).saturating_mul(NAME_FUEL));
            for address in addresses {
                if !to.iter().any(|known| same(known, &address)) {
                    to.push(address);
                }
                if to.len() > max {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(Named { to, names: names.into_iter().collect() }))
}

/// What an entry of a list of recipients stands for.
fn values(scope: &Scope, recipient: &Recipient, people: &People) -> Result<Vec<Value>, Fault> {
    Ok(match recipient {
        Recipient::Address(text) => match scope.short(text)? {
            Value::Array(items) => items,
            one @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                vec![one]
            }
        },
        Recipient::Contact => people.contact.as_deref().map(Value::from).into_iter().collect(),
        Recipient::Participants => known_participants(scope),
        Recipient::Listed(path) => match scope.get(path) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.clone(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                return Err(RecipientsProblem::NoList { path: path.as_str().to_owned() }.into());
            }
        },
    })
}

/// Those who have taken part in the tasks that are done.
fn known_participants(scope: &Scope) -> Vec<Value> {
    let tasks = scope.key(TASKS).and_then(Value::as_object).into_iter().flat_map(Map::values);
    let answers = tasks.filter_map(Value::as_array).flatten();
    answers.filter_map(|answer| answer.get(PARTICIPANT)).cloned().collect()
}

/// An address; `None` if it is empty.
fn address(value: Value) -> Result<Option<String>, Fault> {
    match value {
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) if text.len() > RECIPIENT_BYTES_MAX => {
            Err(RecipientsProblem::AddressLength.into())
        }
        Value::String(text) if text.chars().any(char::is_control) => {
            Err(RecipientsProblem::NoAddress { value: format!("{text:?}") }.into())
        }
        Value::String(text) => Ok(Some(text.trim().to_owned())),
        Value::Null => Ok(None),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            let mut shown = other.to_string();
            shown.truncate(shown.floor_char_boundary(RESULT_SHOWN_BYTES_MAX));
            Err(RecipientsProblem::NoAddress { value: shown }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchward_expr::Fuel;

    use super::*;

    #[test]
    fn each_name_that_a_list_has_is_work_of_the_turn() {
        let names: Vec<String> = (0..2_000).map(|at| format!("n{at}")).collect();
        let data = Map::from_iter([("people".to_owned(), json!(names))]);
        let list = [Recipient::Address("{gathered.people}".into())];
        let people = People { contact: None, tenancy: None, any_approver: false };
        let fuel = Fuel::new(u64::MAX);
        let found = approvers(&Scope::of(data.clone(), &fuel), &list, &people).ok();
        let found = found.map(|found| (found.to.len(), found.dropped.len()));
        assert_eq!(found, Some((0, RECIPIENTS_MAX)));
        assert!(u64::MAX - fuel.left() >= 2_000 * NAME_FUEL);
        let scope = Scope::of(data, &Fuel::new(1_000 * NAME_FUEL));
        let fault = approvers(&scope, &list, &people).err();
        assert_eq!(fault, Some(FaultCause::TurnFuel.into()));
    }
}
