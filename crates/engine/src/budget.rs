//! What one turn may write. Code that is about to write much checks first, so that no memory is spent on what is refused.

use switchward_machine::RunId;

use crate::data::length;
use crate::event::Flow;
use crate::faults::Fault;
use crate::limits::{
    EFFECT_BYTES, EFFECTS_BYTES_MAX, EFFECTS_MAX, EFFECTS_TURN_MAX, MAILS_OF_DAY_MAX, OUTBOX_BYTES_MAX,
    OUTBOX_MAX, TURN_BYTES_MAX,
};
use crate::state::{Gate, OpenItemBody};
use crate::turn::{Stop, Turn};
use crate::{Event, Session};

/// What a turn has written so far.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Effects of the act that runs.
    act: usize,
    /// What they hold, bytes.
    act_bytes: usize,
    /// Effects of the turn.
    turn: usize,
    /// What was written down in it, bytes: effects, gates, data, items of loops, warnings.
    bytes: usize,
}

impl Budget {
    /// Another act begins.
    pub(crate) fn next_act(&mut self) {
        self.act = 0;
        self.act_bytes = 0;
    }

    /// What was written down, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts an event that may be long, or that there may be many of.
    #[expect(clippy::wildcard_enum_match_arm, reason = "what is bounded by what came in is not counted")]
    pub(crate) fn count(&mut self, event: &Event) {
        match event {
            Event::EffectQueued { effect } if effect.body.inner() => self.bytes += effect.body.bytes(),
            Event::EffectQueued { effect } => self.count_effect(effect.body.bytes()),
            Event::GateOpened { body, .. } => self.bytes += gate_bytes(body),
            Event::Warned { text, .. } => self.bytes += text.len() + EFFECT_BYTES,
            Event::Flow(Flow::ItemOpened { body: OpenItemBody::Work { owed, .. }, .. }) => {
                self.count_effect(length(&owed.input.0) + EFFECT_BYTES);
            }
            Event::Flow(Flow::Wrote { key, value, .. }) => self.bytes += key.len() + length(&value.0),
            Event::Flow(Flow::Looped { at: Some(at), .. }) => self.bytes += length(&at.items.0),
            Event::Flow(Flow::Faulted { message, .. }) => self.bytes += message.len(),
            _ => {}
        }
    }

    fn count_effect(&mut self, bytes: usize) {
        self.act += 1;
        self.act_bytes += bytes;
        self.turn += 1;
        self.bytes += bytes;
    }

    /// Returns why this many more bytes cannot be written; `None` if they can.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Option<Fault> {
        (self.bytes.saturating_add(bytes) > TURN_BYTES_MAX)
            .then(|| Fault::operation(format!("more than {TURN_BYTES_MAX} bytes come of one step")))
    }

    /// Returns why the act or the turn cannot have this many more effects; `None` if it can.
    fn step(&self, count: usize, bytes: usize) -> Option<Fault> {
        Some(Fault::outbox(if over(self.act, count, EFFECTS_MAX) {
            format!("more than {EFFECTS_MAX} effects in one go")
        } else if over(self.act_bytes, bytes, EFFECTS_BYTES_MAX) {
            format!("effects of more than {EFFECTS_BYTES_MAX} bytes in one go")
        } else if over(self.turn, count, EFFECTS_TURN_MAX) {
            format!("more than {EFFECTS_TURN_MAX} effects in one step")
        } else if over(self.bytes, bytes, TURN_BYTES_MAX) {
            format!("more than {TURN_BYTES_MAX} bytes come of one step")
        } else {
            return None;
        }))
    }

    /// Returns why the outbox of a session cannot take this many more effects; `None` if it can.
    fn outbox(count: usize, bytes: usize, session: &Session) -> Option<Fault> {
        let waiting = session.outbox();
        let out = usize::try_from(waiting.count).unwrap_or(usize::MAX);
        let out_bytes = usize::try_from(waiting.bytes).unwrap_or(usize::MAX);
        if over(out, count, OUTBOX_MAX) {
            let message = format!("the session has {OUTBOX_MAX} effects that have not arrived");
            return Some(Fault::outbox(message));
        }
        over(out_bytes, bytes, OUTBOX_BYTES_MAX).then(|| {
            let message =
                format!("the session has effects of {OUTBOX_BYTES_MAX} bytes that have not arrived");
            Fault::outbox(message)
        })
    }
}

fn over(now: usize, more: usize, max: usize) -> bool {
    now.saturating_add(more) > max
}

/// Returns why this many more effects with this many bytes cannot go out; `None` if they can.
pub(crate) fn effects(turn: &Turn<'_, '_>, count: usize, bytes: usize) -> Result<Option<Fault>, Stop> {
    Ok(effects_of(turn, &*turn.session()?, count, bytes))
}

/// Returns why this many more mails with this many bytes cannot go out; `None` if they can.
pub(crate) fn mails(turn: &Turn<'_, '_>, count: usize, bytes: usize) -> Result<Option<Fault>, Stop> {
    Ok(mails_of(turn, &*turn.session()?, count, bytes))
}

/// The same of a session that is at hand.
pub(crate) fn mails_of(turn: &Turn<'_, '_>, session: &Session, count: usize, bytes: usize) -> Option<Fault> {
    let sent = session.mailed.unwrap_or_default().on(turn.now());
    let count_now = u32::try_from(count).unwrap_or(u32::MAX);
    if sent.saturating_add(count_now) > MAILS_OF_DAY_MAX {
        let message =
            format!("the session has sent {sent} mails today, at most {MAILS_OF_DAY_MAX} a day go out");
        return Some(Fault::outbox(message));
    }
    effects_of(turn, session, count, bytes)
}

/// The same for effects that are not mails.
fn effects_of(turn: &Turn<'_, '_>, session: &Session, count: usize, bytes: usize) -> Option<Fault> {
    turn.budget.step(count, bytes).or_else(|| Budget::outbox(count, bytes, session))
}

/// Returns why work with an input of this many bytes cannot be opened; `None` if it can. Work does not stand in the
/// outbox.
pub(crate) fn opened(turn: &Turn<'_, '_>, bytes: usize) -> Option<Fault> {
    turn.budget.step(1, bytes + EFFECT_BYTES)
}

/// Notes that a message is not sent, for this reason.
pub(crate) fn unsent(turn: &mut Turn<'_, '_>, run: RunId, fault: &Fault) -> Result<(), Stop> {
    let node = turn.run(run)?.node;
    let machine = turn.machine(&*turn.run(run)?)?;
    let state = machine.node(node).map_or("", |node| node.name.as_str());
    let text = format!("{state}: a message is not sent: {}", fault.message);
    turn.emit(Event::Warned { text, of_definition: false })?;
    Ok(())
}

fn gate_bytes(gate: &Gate) -> usize {
    let asked = gate.asked.iter().map(|asked| {
        let to: usize = asked.to.iter().map(String::len).sum();
        to + asked.subject.len() + asked.body.len()
    });
    EFFECT_BYTES + asked.sum::<usize>()
}
