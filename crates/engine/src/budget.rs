//! What one turn may write. Code that is about to write much checks first, so that no memory is spent on what is refused.

use switchward_state::Event;
use switchward_state::approval::{ApprovalEvent, Gate};
use switchward_state::delivery::DeliveryEvent;
use switchward_state::limits::{
    EFFECT_BYTES, EFFECTS_BYTES_MAX, EFFECTS_MAX, EFFECTS_TURN_MAX, OUTBOX_BYTES_MAX, OUTBOX_MAX,
    TURN_BYTES_MAX,
};
use switchward_state::run::{Fault, FaultCause, OutboxExcess, RunEvent, json_length};
use switchward_state::session::{Session, SessionEvent};
use switchward_state::work::{OpenItemBody, WorkEvent, WorkItem};

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
            Event::Delivery(DeliveryEvent::Queued { effect }) if effect.body.inner() => {
                self.bytes += effect.body.bytes()
            }
            Event::Delivery(DeliveryEvent::Queued { effect }) => self.count_effect(effect.body.bytes()),
            Event::Approval(ApprovalEvent::Opened { body, .. }) => self.bytes += gate_bytes(body),
            Event::Session(SessionEvent::Warned { warning }) => self.bytes += warning.bytes() + EFFECT_BYTES,
            Event::Work(WorkEvent::Opened { body: OpenItemBody::Work(WorkItem { owed, .. }), .. }) => {
                self.count_effect(json_length(&owed.input.0) + EFFECT_BYTES);
            }
            Event::Run(RunEvent::Wrote { key, value, .. }) => self.bytes += key.len() + json_length(&value.0),
            Event::Run(RunEvent::Looped { at: Some(at), .. }) => self.bytes += json_length(&at.items.0),
            Event::Run(RunEvent::Faulted { fault, .. }) => self.bytes += fault.bytes(),
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
        self.exceeded(bytes).map(|_| FaultCause::TurnBytes.into())
    }

    /// Returns the maximum that this many more bytes would exceed.
    pub(crate) fn exceeded(&self, bytes: usize) -> Option<OutboxExcess> {
        over(self.bytes, bytes, TURN_BYTES_MAX).then_some(OutboxExcess::TurnBytes)
    }

    /// Returns why the act or the turn cannot have this many more effects; `None` if it can.
    pub(crate) fn step(&self, count: usize, bytes: usize) -> Option<OutboxExcess> {
        if over(self.act, count, EFFECTS_MAX) {
            Some(OutboxExcess::ActEffects)
        } else if over(self.act_bytes, bytes, EFFECTS_BYTES_MAX) {
            Some(OutboxExcess::ActBytes)
        } else if over(self.turn, count, EFFECTS_TURN_MAX) {
            Some(OutboxExcess::TurnEffects)
        } else {
            self.exceeded(bytes)
        }
    }

    /// Returns why the outbox of a session cannot take this many more effects; `None` if it can.
    pub(crate) fn outbox(count: usize, bytes: usize, session: &Session) -> Option<OutboxExcess> {
        let waiting = session.outbox();
        let out = usize::try_from(waiting.count).unwrap_or(usize::MAX);
        let out_bytes = usize::try_from(waiting.bytes).unwrap_or(usize::MAX);
        if over(out, count, OUTBOX_MAX) {
            return Some(OutboxExcess::OutboxEffects);
        }
        over(out_bytes, bytes, OUTBOX_BYTES_MAX).then_some(OutboxExcess::OutboxBytes)
    }
}

fn over(now: usize, more: usize, max: usize) -> bool {
    now.saturating_add(more) > max
}

fn gate_bytes(gate: &Gate) -> usize {
    let asked = gate.asked.iter().map(|asked| {
        let to: usize = asked.to.iter().map(String::len).sum();
        to + asked.subject.bytes() + asked.body.len()
    });
    EFFECT_BYTES + asked.sum::<usize>()
}
