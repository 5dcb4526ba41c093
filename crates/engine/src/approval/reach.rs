//! Whom mails about a gate reach, and what happens if that is too few.

use minicbor::{Decode, Encode};
use switchward_machine::{GateKind, OpenId, SessionId, TenantId};
use switchward_state::approval::{GateRequest, OpenGate, Quorum, Tally, Warning};
use switchward_state::catalogue::Directory;
use switchward_state::delivery::{EffectBody, MailFull, mail_caps};
use switchward_state::limits::WAITING_NAMED_MAX;
use switchward_state::run::PendingInput;
use switchward_state::session::{SessionEvent, SessionWarning};
use switchward_state::{Key, ReadRows, ViewError};

use crate::approval::{rounds, votes};
use crate::turn::{DirectoryRow, Stop, Turn};

/// Whose mails about an open gate have come back, are dead letters or were dismissed: addresses, each once.
pub(crate) fn unreached(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    open: &OpenGate,
) -> Result<Vec<String>, ViewError> {
    let Some(asked) = &open.body.asked else { return Ok(Vec::new()) };
    let mut unreached = bounced(asked, true);
    for to in &asked.dismissed {
        if !unreached.iter().any(|known| known.eq_ignore_ascii_case(to)) {
            unreached.push(to.clone());
        }
    }
    for number in &asked.mails {
        let Some(effect) = rows.outbox_at(&Key::outbox(tenant, session, *number))? else { continue };
        if let (Some(_), EffectBody::Message { to, .. }) = (effect.dead_letter(), &effect.body)
            && !unreached.iter().any(|known| known.eq_ignore_ascii_case(to))
        {
            unreached.push(to.clone());
        }
    }
    Ok(unreached)
}

/// Whose mails are said not to have arrived, by bounces that prove it or that do not.
fn bounced(asked: &GateRequest, proved: bool) -> Vec<String> {
    asked.bounced.iter().filter(|one| one.proved == proved).map(|one| one.to.clone()).collect()
}

/// Who knows of an open gate. Stored form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct Reach {
    /// Whom no mail about it has reached that was sent so far, and who was named and is not asked: addresses.
    #[n(0)]
    pub unreached: Vec<String>,
    /// Whether nobody who may decide was notified by mail: there are no recipients, no mail reaches any of them, or they
    /// may not decide.
    #[n(1)]
    pub unnotified: bool,
    /// What a reader of the gate should know of that.
    #[n(2)]
    pub warnings: Vec<Warning>,
    /// How many inputs of its run wait for it to close.
    #[n(3)]
    pub held: u32,
}

impl Reach {
    pub(crate) fn of(
        rows: &dyn ReadRows,
        tenant: TenantId,
        session: SessionId,
        open: &OpenGate,
    ) -> Result<Self, ViewError> {
        let unreached = unreached(rows, tenant, session, open)?;
        let people = DirectoryRow::of(rows, tenant)?;
        let gone = |one: &String| unreached.iter().any(|known| known.eq_ignore_ascii_case(one));
        let own =
            |one: &String| open.body.kind.needs_another() && people.one_person(one, &open.body.requester);
        let asked = open.body.asked.as_ref();
        let to = asked.map(|asked| asked.to.as_slice()).unwrap_or_default();
        let now = rows.clock_at(&Key::clock())?.map_or(open.head.at, |clock| *clock);
        let waiting = mail_caps::waiting(rows, tenant, session, open, now)?;
        let waits = |one: &String| waiting.iter().any(|(known, _)| known.eq_ignore_ascii_case(one));
        let lost = asked.map(|asked| asked.lost(&people)).unwrap_or_default();
        let gone_from = |one: &String| lost.iter().any(|known| known.eq_ignore_ascii_case(one));
        let unnotified = to.iter().all(|one| gone(one) || own(one) || waits(one) || gone_from(one));
        let mut warnings = Vec::new();
        if to.is_empty() {
            warnings.push(Warning::NoRecipients);
        } else if to.iter().all(own) {
            warnings.push(Warning::OnlyRequester { to: to.to_vec() });
        } else if unnotified && waiting.is_empty() {
            warnings.push(Warning::Unreachable);
        }
        if !lost.is_empty() {
            warnings.push(Warning::NoLongerListed { who: lost });
        }
        warnings.extend(not_notified(waiting));
        warnings.extend(asked.and_then(|asked| few(open, asked, &people)));
        let dropped = asked.map(|asked| asked.dropped.as_slice()).unwrap_or_default();
        warnings.extend(dropped.iter().map(|who| Warning::NotInDirectory { who: who.clone() }));
        let doubted = asked.map(|asked| bounced(asked, false)).unwrap_or_default();
        let doubted = doubted.into_iter().filter(|one| !gone(one));
        warnings.extend(doubted.map(|to| Warning::UnprovedBounce { to }));
        let unreached = unreached.into_iter().chain(dropped.iter().cloned()).collect();
        let held = match open.body.kind {
            GateKind::Approval => {
                let run = rows.run(tenant, session, open.head.run)?;
                run.pending.iter().filter(|input| !matches!(input, PendingInput::TimeOver { .. })).count()
            }
            GateKind::Notify | GateKind::ToolAsk | GateKind::Task => 0,
        };
        Ok(Self { unreached, unnotified, warnings, held: u32::try_from(held).unwrap_or(u32::MAX) })
    }
}

/// The warnings about people whose mails wait for the next hour: one for each cap that they wait for.
fn not_notified(waiting: Vec<(String, MailFull)>) -> Vec<Warning> {
    let mut groups: Vec<(MailFull, Vec<String>)> = Vec::new();
    for (one, full) in waiting {
        match groups.iter_mut().find(|(known, _)| *known == full) {
            Some((_, people)) => people.push(one),
            None => groups.push((full, vec![one])),
        }
    }
    let warning = |(full, mut to): (MailFull, Vec<String>)| {
        let more = to.len().saturating_sub(WAITING_NAMED_MAX);
        to.truncate(WAITING_NAMED_MAX);
        Warning::Waiting { to, more, full }
    };
    groups.into_iter().map(warning).collect()
}

/// The warning if the approvals that were asked for are more than the people who know of the gate.
fn few(open: &OpenGate, asked: &GateRequest, people: &Directory) -> Option<Warning> {
    let voting = asked.voting.as_ref()?;
    let tally = Tally::of(open, voting.quorum, None, people);
    let (can, need) = (tally.have + tally.missing.len(), tally.need);
    match voting.quorum {
        Quorum::All if asked.open && asked.to.is_empty() => Some(Warning::AllOfNobody),
        Quorum::All => None,
        Quorum::AtLeast(least) if asked.open => {
            let short = !asked.to.is_empty() && can < need;
            short.then_some(Warning::FewNotified { need: least, can })
        }
        Quorum::AtLeast(least) => {
            let short = usize::try_from(least).unwrap_or(usize::MAX) > need;
            short.then_some(Warning::TooFewRecipients { wanted: least, can, need })
        }
    }
}

/// Begins the next round of an open gate if its mails have reached none of its recipients, and cannot any more, or too
/// few for the approvals that it needs. A mail that has arrived is removed from those of the gate.
pub(crate) fn reach(turn: &mut Turn<'_, '_>, gate: OpenId) -> Result<(), Stop> {
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)?.map(|open| OpenGate::clone(&open));
    let Some(open) = open else { return Ok(()) };
    let Some(asked) = &open.body.asked else { return Ok(()) };
    let dead = unreached(turn.rows, turn.tenant(), turn.session_id()?, &open)?;
    let alive = |one: &String| !dead.iter().any(|dead| dead.eq_ignore_ascii_case(one));
    let people = turn.directory()?;
    let theirs = |one: &str| asked.to.iter().any(|known| alive(known) && people.one_person(known, one));
    let lost = votes::out_of_reach(&open, &people, theirs);
    let is_lost = lost.is_some();
    if let Some(trouble) = lost {
        turn.emit(SessionEvent::Warned { warning: SessionWarning::AtGate { gate, trouble } })?;
    }
    if is_lost || !asked.to.iter().any(alive) {
        rounds::escalate_now(turn, gate)?;
    }
    Ok(())
}
