//! An open gate, or somebody's part of it, is handed to somebody else of the directory: by an operator, who may hand over
//! all of it, or by a person who is asked there, who may hand over their own part.
//!
//! The requester can neither hand over nor receive, whichever of their addresses is used. If several must approve, each
//! person has one part at most: the gate is handed over part by part, to people who are not asked yet, and a part that has
//! approved stays where it is.

use switchward_machine::{Digest, OpenId, RunId};
use switchward_state::approval::{
    ApprovalEvent, Decider, GateRequest, NotCounted, Notice, OpenGate, PageProof, ReplyOutcome,
    RequestSubject, Tally, Via, VoteFact,
};
use switchward_state::catalogue::{Directory, Role};
use switchward_state::delivery::{DeliveryEvent, EffectBody, Purpose};
use switchward_state::limits::ADDRESS_BYTES_MAX;
use switchward_state::work::{About as WorkAbout, WorkEvent};
use switchward_state::{Actor, ItemKind, Key, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::decide_gate::{has_a_say, is_meant, not_listed, open_gate, proved, resolved, via};
use crate::approval::mails::{mail, mail_bytes, notice};
use crate::approval::record_reply::outcome::{Mail, moot};
use crate::approval::record_reply::{About, AtGate, recorded, replied};
use crate::approval::{reminders, reply_words, votes};
use crate::delivery::capacity;
use crate::turn::{Stop, Turn, check_text};

/// What somebody wants to hand over.
pub(crate) struct Order<'o> {
    /// Whose part; `None` for an approver's own one, or for an operator's whole gate.
    pub(crate) from: Option<&'o str>,
    /// Who gets it: a name or an address.
    pub(crate) to: &'o str,
    /// Words beside it.
    pub(crate) comment: &'o str,
}

/// A handover that is allowed.
struct Handover {
    /// The addresses that are no longer asked.
    from: Vec<String>,
    /// The address that is asked instead.
    to: String,
    /// Who is asked then.
    asked: GateRequest,
}

/// What is handed over.
enum Part {
    /// The gate: everybody who is asked there.
    Whole,
    /// One person's part: their addresses.
    Of(Vec<String>),
}

pub(crate) fn run(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    order: &Order<'_>,
    shown: Option<Digest>,
    proof: Option<&PageProof>,
) -> Result<Reply, Stop> {
    let actor = &turn.command.actor;
    let open = still_open(turn, gate, actor)?;
    proved(turn, gate, &open, proof)?;
    is_meant(&open, shown, order.comment)?;
    let handover = check(turn, gate, &open, actor, order)?;
    let by = Decider { by: actor.subject.clone(), via: via(proof) };
    hand_over(turn, gate, &open, handover, by, order.comment)?;
    Ok(Reply::Gate { gate, sequence: turn.session()?.sequence, summary: None })
}

/// Takes a reply whose first line is `assign to NAME`: the writer's part is handed over. If an operator vouches for the
/// reply, they do it themselves; any other writer is informed if it cannot be done.
pub(crate) fn by_reply(turn: &mut Turn<'_, '_>, at: &AtGate<'_>) -> Result<Option<Reply>, Stop> {
    let AtGate { run, gate, open, reply, .. } = *at;
    let Some(to) = named(&reply.text) else { return Ok(None) };
    let sender = Actor { subject: reply.from.clone(), role: Role::Approver };
    let (actor, via, from) = if reply.vouched {
        (&turn.command.actor, Via::Vouched, Some(reply.from.as_str()))
    } else {
        (&sender, Via::Mail, None)
    };
    let comment = reply_words::comment(&reply.text);
    let by = Decider { by: actor.subject.clone(), via };
    let order = Order { from, to, comment: &comment };
    // What a requester writes assigns nothing, also if an operator passes it on.
    let own = not_requester(&reply.from, open, &*turn.directory()?);
    let checked = own.map_err(Stop::from).and_then(|()| check(turn, gate, open, actor, &order));
    let copy = Box::new(open.clone());
    let outcome = match checked {
        Ok(handover) => {
            recorded(turn, run, reply, &About::Gate(gate, copy))?;
            hand_over(turn, gate, open, handover, by, &comment)?;
            ReplyOutcome::Assigned
        }
        Err(stop) if reply.vouched || !unfit(&stop) => return Err(stop),
        Err(_) => {
            let known = receiver(turn, to)?.is_some();
            let why = if known { NotCounted::ReceiverUnfit } else { NotCounted::ReceiverUnknown };
            recorded(turn, run, reply, &About::Moot(gate, copy, why))?;
            moot(turn, gate, open, &Mail::of(reply, None), why)?
        }
    };
    replied(turn, outcome).map(Some)
}

/// Returns true if a part cannot be handed over because of the people.
fn unfit(stop: &Stop) -> bool {
    match stop {
        Stop::Refused(no) => {
            [Reason::FieldInvalid, Reason::SelfApproval, Reason::AlreadyResolved].contains(&no.reason)
        }
        Stop::Broken(_) => false,
    }
}

/// Whom the first line of a reply hands the writer's part to: `assign to NAME`. Case, the amount of white space and a mark
/// at the end do not matter. `None` if it says something else.
fn named(own: &str) -> Option<&str> {
    let line = own.lines().map(str::trim).find(|line| !line.is_empty())?;
    let rest = after(after(line, "assign")?, "to")?;
    Some(rest.strip_suffix(['.', '!']).unwrap_or(rest).trim_end()).filter(|name| !name.is_empty())
}

/// What follows a word and white space.
fn after<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let rest = line.get(word.len()..).filter(|_| line[..word.len()].eq_ignore_ascii_case(word))?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim_start())
}

/// The open gate. An operator learns how a closed one was decided, whomever it asked.
fn still_open(turn: &Turn<'_, '_>, gate: OpenId, actor: &Actor) -> Result<OpenGate, Stop> {
    let closed = turn.rows.closed_at(&Key::closed(turn.tenant(), turn.session_id()?, gate))?;
    match closed.filter(|_| assigns_all(actor.role)) {
        Some(closed) => Err(resolved(&closed).into()),
        None => open_gate(turn, gate),
    }
}

/// Whether a key of this role may hand over what is somebody else's.
fn assigns_all(role: Role) -> bool {
    match role {
        Role::Operator | Role::Admin => true,
        Role::Approver | Role::Agent | Role::Author | Role::Server | Role::Worker | Role::Integration => {
            false
        }
    }
}

/// Checks that this person may hand over what they want to, to whom they want to.
fn check(
    turn: &Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    actor: &Actor,
    order: &Order<'_>,
) -> Result<Handover, Stop> {
    has_a_say(actor)?;
    let people = turn.directory()?;
    not_requester(&actor.subject, open, &people)?;
    let part = part(actor, open, order.from, &people)?;
    check_text("to", order.to, ADDRESS_BYTES_MAX)?;
    let Some(to) = receiver(turn, order.to)? else {
        let message = format!("the directory has no single person with the name {:?}", order.to);
        return Err(bad_receiver("unknown", message).into());
    };
    not_requester(&to, open, &people).map_err(|refusal| refusal.fact("field", "to"))?;
    fits(turn, gate, open, &part, &to)?;
    let (from, mut asked) = asked_now(turn, open, part, &to)?;
    asked.listed.retain(&asked.to);
    asked.listed.add(&people.listed(&[order.to.trim().to_owned()], std::slice::from_ref(&to)));
    if asked.listed.has_lost(&to, &people) {
        let message = format!("{to} was asked before, and the directory does not lead to them any more");
        return Err(bad_receiver("unknown", message).into());
    }
    let said = asked.subject.bytes() + asked.body.len();
    let bytes = mail_bytes(from.iter().chain([&to]), &asked.subject, &asked.body);
    let excess = capacity::mails(turn, from.len() + 1, bytes)?.or(turn.budget.exceeded(bytes + said));
    match excess {
        Some(excess) => Err(Rejection::new(Reason::QuotaExceeded, excess.to_string()).into()),
        None => Ok(Handover { from, to, asked }),
    }
}

/// Refuses the requester: they have no part in the decision and cannot choose who has one. Tasks are no exception.
fn not_requester(person: &str, open: &OpenGate, people: &Directory) -> Result<(), Rejection> {
    if people.one_person(person, &open.body.requester) {
        let message = "the requester can neither assign the gate nor get it";
        return Err(Rejection::new(Reason::SelfApproval, message));
    }
    Ok(())
}

/// What is handed over, if this person may do it. A part whose approval counts already is not.
fn part(actor: &Actor, open: &OpenGate, from: Option<&str>, people: &Directory) -> Result<Part, Rejection> {
    let part = match (assigns_all(actor.role), from) {
        (true, None) => whole(open, people)?,
        (true, Some(name)) => {
            let message = || format!("{name} is not one of those who are asked");
            let none = || Rejection::new(Reason::FieldInvalid, message()).fact("field", "from");
            part_of(open, name, people).ok_or_else(none)?
        }
        (false, from) => own(actor, open, from, people)?,
    };
    let voting = open.body.asked.as_ref().and_then(|asked| asked.voting.as_ref());
    if let (Part::Of(addresses), Some(voting)) = (&part, voting) {
        let given = |address: &String| voting.votes.iter().find(|vote| vote.is_of(address, people));
        if let Some(vote) = addresses.iter().find_map(given) {
            return Err(votes::again(vote, voting));
        }
    }
    Ok(part)
}

/// The part of somebody who has no other right to assign than that they are asked.
fn own(actor: &Actor, open: &OpenGate, from: Option<&str>, people: &Directory) -> Result<Part, Rejection> {
    let person = &actor.subject;
    let refused = |message: String| Err(Rejection::new(Reason::NotAnApprover, message));
    let Some(Part::Of(addresses)) = part_of(open, person, people) else {
        let message = format!("{person} is not one of those who are asked");
        return refused(message);
    };
    if addresses.iter().all(|one| open.body.has_lost(one, people)) {
        return Err(not_listed(person));
    }
    if from.is_some_and(|name| !addresses.iter().any(|one| people.same(one, name))) {
        let message = format!("{person} can hand over their own part alone");
        return refused(message);
    }
    Ok(Part::Of(addresses))
}

/// The part of the person who is asked under this name or address; all their addresses are theirs.
fn part_of(open: &OpenGate, name: &str, people: &Directory) -> Option<Part> {
    let to = open.body.asked.as_ref().map(|asked| asked.to.as_slice()).unwrap_or_default();
    let found = to.iter().find(|one| people.same(one, name))?;
    Some(Part::Of(to.iter().filter(|one| people.one_person(one, found)).cloned().collect()))
}

/// The whole gate; if several must approve, the only part that is left of it.
fn whole(open: &OpenGate, people: &Directory) -> Result<Part, Rejection> {
    let Some((asked, voting)) =
        open.body.asked.as_ref().and_then(|asked| Some((asked, asked.voting.as_ref()?)))
    else {
        return Ok(Part::Whole);
    };
    let missing = Tally::of(open, voting.quorum, None, people).missing;
    let only = missing.first().filter(|_| missing.len() == 1 && !asked.open);
    only.and_then(|only| part_of(open, only, people)).ok_or_else(|| {
        let message = "several people must approve: name the one whose part is handed over";
        Rejection::new(Reason::FieldInvalid, message).fact("field", "from")
    })
}

/// The address that somebody is asked at: the directory must know the name as that of one person, or hold the address.
/// `None` if it does not. Without a directory any address is taken if the tenant or the start takes any approver.
fn receiver(turn: &Turn<'_, '_>, name: &str) -> Result<Option<String>, Stop> {
    let (people, name) = (turn.directory()?, name.trim());
    let found = people.addresses(name);
    if let Some(first) = found.first() {
        let one = found.iter().all(|other| people.one_person(first, other));
        return Ok(one.then(|| first.clone()));
    }
    let plain = !name.is_empty()
        && !name.contains(|character: char| character.is_whitespace() || character.is_control());
    let known = people.holds(name) || (*people == Directory::default() && takes_any(turn)?);
    Ok((plain && known).then(|| name.to_owned()))
}

/// Whether approvers count that are not in the directory.
fn takes_any(turn: &Turn<'_, '_>) -> Result<bool, Stop> {
    let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
    let any = tenancy.is_some_and(|known| known.any_approver_address);
    Ok(any || turn.session()?.any_approver_address)
}

/// Checks that the receiver does not have the part already, nor another one where each person counts once.
fn fits(turn: &Turn<'_, '_>, gate: OpenId, open: &OpenGate, part: &Part, to: &str) -> Result<(), Stop> {
    let people = turn.directory()?;
    let is_theirs = |one: &String| people.one_person(one, to);
    let asked = open.body.asked.as_ref();
    let all = asked.map(|asked| asked.to.as_slice()).unwrap_or_default();
    let has_it = match part {
        Part::Whole => !all.is_empty() && asked.is_some_and(|asked| !asked.open) && all.iter().all(is_theirs),
        Part::Of(addresses) => addresses.iter().any(is_theirs),
    };
    let counted = asked.is_some_and(|asked| {
        asked.voting.is_some() && (asked.has_voted(to, &people) || all.iter().any(is_theirs))
    });
    if has_it || counted || takes_part(turn, gate, open, to)? {
        let message = format!("{to} is asked or has approved already, and each person counts once");
        return Err(bad_receiver("counted", message).into());
    }
    Ok(())
}

/// The refusal of somebody who cannot get a part; the problem is `unknown` or `counted`.
fn bad_receiver(problem: &str, message: String) -> Rejection {
    Rejection::new(Reason::FieldInvalid, message).fact("field", "to").fact("problem", problem)
}

/// Whether somebody has another part of the task that a gate is a part of.
fn takes_part(turn: &Turn<'_, '_>, gate: OpenId, open: &OpenGate, person: &str) -> Result<bool, Stop> {
    let (tenant, id, people) = (turn.tenant(), turn.session_id()?, turn.directory()?);
    let others = open.body.part.into_iter().flat_map(|part| part.gates());
    for other in others.filter(|other| *other != gate) {
        let to = match turn.rows.gate(tenant, id, other)? {
            Some(open) => open.body.asked.as_ref().map(|asked| asked.to.clone()),
            None => {
                let closed = turn.rows.closed_at(&Key::closed(tenant, id, other))?;
                closed.and_then(|closed| closed.open.body.asked.as_ref().map(|asked| asked.to.clone()))
            }
        };
        if to.iter().flatten().any(|one| people.one_person(one, person)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The addresses that are asked no longer, and who is asked then: the receiver, in the former approver's position. What the
/// former one was sent and has not gone out is not sent any more.
fn asked_now(
    turn: &Turn<'_, '_>,
    open: &OpenGate,
    part: Part,
    to: &str,
) -> Result<(Vec<String>, GateRequest), Stop> {
    let before = match &open.body.asked {
        Some(asked) => asked.clone(),
        None => unasked(turn, open)?,
    };
    let (mut from, others_may) = match part {
        Part::Whole => (before.to.clone(), false),
        Part::Of(addresses) => (addresses, before.open),
    };
    from.retain(|one| !one.eq_ignore_ascii_case(to));
    let gone = |one: &str| from.iter().any(|former| former.eq_ignore_ascii_case(one));
    // A number of its own: if a part comes back, what its holder was sent before stays void.
    let request = before.request + 1;
    let mut now = GateRequest { open: others_may, request, ..before.clone() };
    (now.to, now.last, now.newest) = (Vec::new(), Vec::new(), Vec::new());
    let first = before.to.iter().position(|one| gone(one));
    for (at, one) in before.to.iter().enumerate() {
        let (one, last, newest) = if first == Some(at) {
            (to, request, 0)
        } else {
            let last = before.last.get(at).copied().unwrap_or_default();
            (one.as_str(), last, before.newest.get(at).copied().unwrap_or_default())
        };
        if !gone(one) && now.request_of(one).is_none() {
            now.to.push(one.to_owned());
            now.last.push(last);
            now.newest.push(newest);
        }
    }
    if now.to.is_empty() {
        (now.to, now.last) = (vec![to.to_owned()], vec![request]);
        now.remind = reminders::first(turn, open.head.run)?;
    }
    now.codes.retain(|codes| !gone(&codes.to));
    now.bounced.retain(|one| !gone(&one.to));
    now.dismissed.retain(|one| !gone(one));
    now.mails = still_wanted(turn, &before.mails, gone)?;
    Ok((from, now))
}

/// Those of a gate's mails that do not go to a former approver.
fn still_wanted(turn: &Turn<'_, '_>, mails: &[u64], gone: impl Fn(&str) -> bool) -> Result<Vec<u64>, Stop> {
    let mut wanted = Vec::new();
    for number in mails {
        let effect = turn.rows.outbox_at(&Key::outbox(turn.tenant(), turn.session_id()?, *number))?;
        let to_former = effect.is_some_and(|effect| match &effect.body {
            EffectBody::Message { to, .. } => gone(to),
            EffectBody::Notice { .. }
            | EffectBody::Confirm { .. }
            | EffectBody::Settle { .. }
            | EffectBody::Publish { .. } => false,
        });
        wanted.extend((!to_former).then_some(*number));
    }
    Ok(wanted)
}

/// What is asked at a gate that has asked nobody: its notice says so, or its call.
fn unasked(turn: &Turn<'_, '_>, open: &OpenGate) -> Result<GateRequest, Stop> {
    let notice = open.body.notice.unwrap_or_default();
    let effect = turn.rows.outbox_at(&Key::outbox(turn.tenant(), turn.session_id()?, notice))?;
    let said = effect.and_then(|effect| match &effect.body {
        EffectBody::Notice { subject, .. } => Some(subject.clone()),
        EffectBody::Message { .. }
        | EffectBody::Confirm { .. }
        | EffectBody::Settle { .. }
        | EffectBody::Publish { .. } => None,
    });
    let definition = turn.run(open.head.run)?.definition.clone();
    let call = open.body.call.as_ref();
    let call = call.map(|call| RequestSubject::Call { definition, capability: call.capability.clone() });
    let subject = said.or(call).unwrap_or_else(|| RequestSubject::from(""));
    Ok(GateRequest { to: Vec::new(), ..GateRequest::once("", &subject, "") })
}

/// Hands it over: the receiver is asked, and the former approvers are informed.
fn hand_over(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    handover: Handover,
    by: Decider,
    comment: &str,
) -> Result<(), Stop> {
    let (run, Handover { from, to, asked }) = (open.head.run, handover);
    if !comment.trim().is_empty() {
        let (by, comment) = (by.by.clone(), comment.to_owned());
        turn.emit(ApprovalEvent::Commented { gate, by, comment })?;
    }
    let Decider { by: person, via } = by.clone();
    turn.emit(ApprovalEvent::Votes(VoteFact::Assigned {
        gate,
        by: person,
        via,
        from: from.clone(),
        to: to.clone(),
        asked: Box::new(asked.clone()),
    }))?;
    if let Some(number) = open.body.notice {
        // Nothing says any more that nobody is asked.
        let key = Key::outbox(turn.tenant(), turn.session_id()?, number);
        if turn.rows.outbox_at(&key)?.is_some() {
            turn.emit(DeliveryEvent::Acked { number })?;
        }
    }
    votes::escalated(turn, gate)?;
    not_read(turn, gate, run, &from)?;
    turn.send(run, mail(to.clone(), asked.subject.clone(), asked.body.clone(), gate, Purpose::Ask))?;
    for one in &from {
        let said = Notice::Assigned { by: by.clone(), to: to.clone() };
        turn.send(run, notice(one, &asked.subject, said, Some(gate), Purpose::Inform))?;
    }
    Ok(())
}

/// A model that is asked what a former approver's reply means is asked no longer.
fn not_read(turn: &mut Turn<'_, '_>, gate: OpenId, run: RunId, from: &[String]) -> Result<(), Stop> {
    for item in turn.open_in(run, ItemKind::Work)? {
        let work = turn.rows.work_at(&turn.item_key(item)?)?;
        let theirs = work.is_some_and(|work| {
            let owed = &work.body.owed;
            let writer = owed.input.0.get("from").and_then(serde_json::Value::as_str).unwrap_or_default();
            owed.about == (WorkAbout::Reply { to: gate, gate: true })
                && from.iter().any(|one| one.eq_ignore_ascii_case(writer))
        });
        if theirs {
            turn.emit(WorkEvent::Closed { item, run })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_first_line_names_the_receiver_and_nothing_else_does() {
        for (line, name) in [
            ("assign to kim", "kim"),
            ("\n  ASSIGN \t to  Kim Lee!\nShe knows.", "Kim Lee"),
            ("Assign to kim@acme.example.", "kim@acme.example"),
            ("assign to group:release", "group:release"),
        ] {
            assert_eq!(named(line), Some(name), "{line:?}");
        }
        for other in ["", "assign", "assign to", "assign to .", "assignto kim", "assign tokim", "é"] {
            assert_eq!(named(other), None, "{other:?}");
        }
        for other in ["yes\nassign to kim", "please assign to kim", "reassign to kim", "assign kim"] {
            assert_eq!(named(other), None, "{other:?}");
        }
    }
}
