//! Gates that take several approvals, if the start of the session or the directory asks for that. An approval is a vote
//! until there are enough; a rejection by anybody who may decide ends the gate at once, also by one who has approved
//! before.
//!
//! A vote is bound to what was shown, so that it outlasts the rounds of its gate, which show the same to everybody. At a
//! gate that addresses nobody the vote of everybody who may decide counts, notified or not, unless all must approve:
//! those are the people who were notified. Parts of tasks always take one person's word.

use switchward_machine::{Decision, GateSpec, OpenId, Recipient, RunId};
use switchward_state::approval::{
    ApprovalEvent, Gate, GateRequest, GateSettings, OpenGate, Quorum, Settled, Tally, Via, Vote, VoteFact,
    Voting,
};
use switchward_state::catalogue::Directory;
use switchward_state::session::{GateTrouble, SessionEvent, SessionWarning, Start};
use switchward_state::{ItemHead, Open, ReadRows as _, Reason, Rejection};

use crate::approval::resolve::{self, GateDecision};
use crate::catalogue::tenancy::check_quorum;
use crate::turn::{Stop, Turn};

/// What a decision does.
pub(crate) enum Recorded {
    /// The gate is decided at once.
    Decides,
    /// It counts, and others are needed; the approvals with it.
    Counts(Voting),
    /// The same person has approved before: their vote, and the approvals so far.
    Again(Box<Vote>, Voting),
}

/// Counts an approval; every other decision decides.
pub(crate) fn record(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    given: &GateDecision,
) -> Result<Recorded, Stop> {
    let Some((asked, voting)) =
        open.body.asked.as_ref().and_then(|asked| Some((asked, asked.voting.as_ref()?)))
    else {
        return Ok(Recorded::Decides);
    };
    if given.decision != Decision::Approve {
        return Ok(Recorded::Decides);
    }
    let people = turn.directory()?;
    let address = address_of(asked, &given.by, &people);
    if let Some(before) = earlier(asked, voting, &given.by, &people) {
        // The directory may have changed so that what there is has become enough.
        if Tally::of(open, voting.quorum, None, &people).is_enough() {
            return Ok(Recorded::Decides);
        }
        return Ok(Recorded::Again(Box::new(before.clone()), voting.clone()));
    }
    let vote = Vote {
        by: given.by.clone(),
        address,
        at: turn.now(),
        comment: given.comment.clone(),
        via: given.via,
        shown: asked.digest(),
    };
    let tally = Tally::of(open, voting.quorum, Some(&vote), &people);
    let mut now = voting.clone();
    now.need = tally.need();
    now.votes.push(vote.clone());
    turn.emit(ApprovalEvent::Votes(VoteFact::Given { gate, vote, need: now.need }))?;
    Ok(if tally.is_enough() { Recorded::Decides } else { Recorded::Counts(now) })
}

/// Returns true if this person's approval would close the gate: no other approval is missing after it. Only such an
/// approval needs a reservation in the ledgers.
pub(crate) fn would_decide(open: &OpenGate, by: &str, people: &Directory) -> bool {
    let Some((asked, voting)) =
        open.body.asked.as_ref().and_then(|asked| Some((asked, asked.voting.as_ref()?)))
    else {
        return true;
    };
    let vote = earlier(asked, voting, by, people).is_none().then(|| Vote {
        by: by.to_owned(),
        address: address_of(asked, by, people),
        at: open.head.at,
        comment: String::new(),
        via: Via::Rpc,
        shown: asked.digest(),
    });
    Tally::of(open, voting.quorum, vote.as_ref(), people).is_enough()
}

/// Refuses an approval of somebody who has approved before what is shown, as long as others are missing.
pub(crate) fn not_again(turn: &Turn<'_, '_>, open: &OpenGate, by: &str) -> Result<(), Stop> {
    let Some(asked) = &open.body.asked else { return Ok(()) };
    let Some(voting) = &asked.voting else { return Ok(()) };
    let people = turn.directory()?;
    match earlier(asked, voting, by, &people) {
        Some(before) if !Tally::of(open, voting.quorum, None, &people).is_enough() => {
            Err(again(before, voting).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The address under which somebody is asked; else what they are called.
fn address_of(asked: &GateRequest, by: &str, people: &Directory) -> String {
    asked.to.iter().find(|one| people.same(one, by)).map_or(by, String::as_str).to_owned()
}

/// The vote that this person has given on what is shown now.
fn earlier<'v>(asked: &GateRequest, voting: &'v Voting, by: &str, people: &Directory) -> Option<&'v Vote> {
    let address = address_of(asked, by, people);
    let theirs = |vote: &&Vote| vote.is_of(by, people) || vote.is_of(&address, people);
    voting.votes.iter().filter(|vote| vote.shown == asked.digest()).find(theirs)
}

/// Checks that this person's approval would count: if all who were notified must approve, others cannot stand in for
/// them.
pub(crate) fn may_approve(person: &str, open: &OpenGate, people: &Directory) -> Result<(), Rejection> {
    let Some(asked) = open.body.asked.as_ref().filter(|asked| asked.open && !asked.to.is_empty()) else {
        return Ok(());
    };
    let all = asked.voting.as_ref().is_some_and(|voting| voting.quorum == Quorum::All);
    if !all || asked.to.iter().any(|one| people.one_person(one, person) || people.same(one, person)) {
        return Ok(());
    }
    let approvers = asked.to.join(", ");
    let message =
        format!("all who are asked must approve: {approvers}; {person} is none of them, and may only reject");
    Err(Rejection::new(Reason::NotAnApprover, message).fact("approvers", approvers))
}

/// The refusal of a second approval of one person, in the form of that of a second decision.
pub(crate) fn again(vote: &Vote, so_far: &Voting) -> Rejection {
    let word = Decision::Approve.word();
    let (have, need) = (so_far.votes.len(), so_far.need);
    let message = format!(
        "{} has already approved, and each person counts once: {have} of {need} approvals so far",
        vote.by
    );
    Rejection::new(Reason::AlreadyResolved, message)
        .fact("approvals", have)
        .fact("approvals_needed", need)
        .fact("at_ms", vote.at.0)
        .fact("decision", word)
        .fact("by", &vote.by)
        .fact("via", vote.via.word())
        .fact("comment", &vote.comment)
}

/// A gate that opens now, with what it needs. That fewer are asked than must approve is recorded: an escalation may ask
/// more, and at a gate that others may decide as well, others may approve.
pub(crate) fn begun(turn: &mut Turn<'_, '_>, gate: OpenId, run: RunId, body: Gate) -> Result<Gate, Stop> {
    let quorum = turn.settled(run)?.quorum.value.filter(|quorum| *quorum != Quorum::AtLeast(1));
    let Some(quorum) = quorum else { return Ok(body) };
    let head = {
        let at = turn.run(run)?;
        ItemHead { run, node: at.node, entry: at.entry, at: turn.now(), trace: None }
    };
    let mut open = Open { head, body };
    if resolve::spec_of(turn, &open)?.resolve(Decision::Approve).is_none() {
        return Ok(open.body);
    }
    let people = turn.directory()?;
    let tally = Tally::of(&open, quorum, None, &people);
    let (asks, mut warnings) = (tally.missing.len(), Vec::new());
    if let Quorum::AtLeast(least) = quorum
        && usize::try_from(least).unwrap_or(usize::MAX) > asks
        && let Some(asked) = &open.body.asked
    {
        // A tenant without a directory goes by its lists of gates.
        let by_lists = asked.open && asked.to.is_empty();
        let few = GateTrouble::TooFewRecipients { need: least, asks: number(asks), open: asked.open };
        warnings.extend((!by_lists).then_some(few));
    }
    if let Some(asked) = &mut open.body.asked {
        let own =
            |one: &&String| open.body.kind.needs_another() && people.one_person(one, &open.body.requester);
        let addresses = asked.to.iter().filter(|one| !own(one)).count();
        if addresses > asks {
            let (people, addresses) = (number(asks), number(addresses));
            warnings.push(GateTrouble::SharedAddresses { people, addresses });
        }
        asked.voting = Some(Voting { quorum, need: tally.need(), votes: Vec::new() });
    }
    for trouble in warnings {
        turn.emit(SessionEvent::Warned { warning: SessionWarning::AtGate { gate, trouble } })?;
    }
    Ok(open.body)
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Others are asked too: the number of approvals that it takes is counted again.
pub(crate) fn escalated(turn: &mut Turn<'_, '_>, gate: OpenId) -> Result<(), Stop> {
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)?.map(|open| OpenGate::clone(&open));
    let Some(open) = open else { return Ok(()) };
    let Some(voting) = open.body.asked.as_ref().and_then(|asked| asked.voting.as_ref()) else {
        return Ok(());
    };
    let need = Tally::of(&open, voting.quorum, None, &*turn.directory()?).need();
    if need != voting.need {
        turn.emit(ApprovalEvent::Votes(VoteFact::Needed { gate, need }))?;
    }
    Ok(())
}

/// Warns that the quorum can no longer be met: too few remaining approvers satisfy `reachable`. `None` if it still can, or
/// if no quorum applies.
pub(crate) fn out_of_reach(
    open: &OpenGate,
    people: &Directory,
    reachable: impl Fn(&str) -> bool,
) -> Option<GateTrouble> {
    let asked = open.body.asked.as_ref()?;
    let voting = asked.voting.as_ref()?;
    if asked.open && voting.quorum != Quorum::All {
        // Others may approve.
        return None;
    }
    let tally = Tally::of(open, voting.quorum, None, people);
    let (here, gone): (Vec<&String>, Vec<&String>) = tally.missing.iter().partition(|one| reachable(one));
    if tally.have + here.len() >= tally.need {
        return None;
    }
    let unreached = gone.into_iter().cloned().collect();
    Some(GateTrouble::QuorumLost { progress: voting.progress(), unreached })
}

/// Checks that a start may ask for this many approvals: refused if a gate of its machines is known to ask fewer people.
pub(crate) fn check(turn: &Turn<'_, '_>, start: &Start) -> Result<(), Stop> {
    let Some(Quorum::AtLeast(least)) = start.quorum else { return Ok(()) };
    let bad =
        |message: String| Stop::from(Rejection::new(Reason::FieldInvalid, message).fact("field", "quorum"));
    check_quorum("quorum", least)?;
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    let people = turn.directory()?;
    let said = GateSettings { escalation: start.escalation.clone(), ..GateSettings::default() };
    for digest in start.machines() {
        let Some(machine) = turn.rows.machine(turn.tenant(), digest)? else { continue };
        let name = &machine.meta.name;
        let contacts = Settled::of(&said, std::slice::from_ref(name), &people).escalation.value;
        for gate in &machine.gates {
            if let Some(asks) = asks(gate, &contacts, &people).filter(|asks| *asks < least) {
                let message = format!("an approval of {name} asks {asks}, and {least} must approve");
                return Err(bad(message));
            }
        }
    }
    Ok(())
}

/// How many people a gate asks, escalations among them, if that is known before it opens. `contacts` are asked if its
/// definition names nobody for an escalation.
fn asks(gate: &GateSpec, contacts: &[String], people: &Directory) -> Option<usize> {
    let inquiry = gate.inquiry.as_ref()?;
    let mut found: Vec<String> = Vec::new();
    let mut add = |these: Vec<String>| {
        for one in these {
            if !found.iter().any(|known| people.one_person(known, &one)) {
                found.push(one);
            }
        }
    };
    let later = inquiry.rounds.as_ref().map(|rounds| rounds.to.as_slice()).unwrap_or_default();
    for recipient in inquiry.message.to.iter().chain(later) {
        let Recipient::Address(text) = recipient else { return None };
        if text.contains(['{', '}']) {
            return None;
        }
        let these = people.addresses(text);
        add(if these.is_empty() { vec![text.clone()] } else { these });
    }
    if later.is_empty() {
        add(people.all(contacts));
    }
    Some(found.len())
}
