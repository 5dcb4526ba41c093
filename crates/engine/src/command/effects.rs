//! What becomes of effects.

use switchward_machine::Time;

use crate::MailToken;
use crate::state::Attempt;

/// An effect has arrived. Repeated, or for an effect that no longer exists, it changes nothing; for a dead letter it
/// closes the incident.
#[derive(Debug, Clone)]
pub struct AckEffect {
    /// Its number in the session.
    pub number: u64,
}

/// An effect cannot be delivered, now or later: it becomes a dead letter, and its session has an incident. For a dead
/// letter, or for an effect that no longer exists, it changes nothing.
#[derive(Debug, Clone)]
pub struct FailEffect {
    /// Its number in the session.
    pub number: u64,
    /// A lower-case code, 1 to 64 bytes.
    pub code: String,
    /// What exactly, for a person; at most 16 KiB.
    pub message: String,
    /// Which sending has failed, see [`Effect::round`](crate::Effect::round); of an older one than the last it changes
    /// nothing. Nothing: the last.
    pub round: Option<u32>,
}

/// An attempt to deliver an effect has failed, or was not made because a cap is reached, and another one is to be made
/// later. For a dead letter, for an effect that no longer exists, or for an older attempt than the last, it changes
/// nothing.
#[derive(Debug, Clone)]
pub struct DeferEffect {
    /// Its number in the session.
    pub number: u64,
    /// Which attempt has failed.
    pub attempt: Attempt,
    /// When the next one is due.
    pub until: Time,
    /// A lower-case code, 1 to 64 bytes.
    pub code: String,
    /// What exactly, for a person; at most 16 KiB.
    pub message: String,
    /// Whether an attempt was made, which counts; one that was only put off does not bring it nearer to its last.
    pub made: bool,
}

/// A mail has come back. A token of [`Way::Bounce`](crate::Way), which stands in no header of a mail, proves the bounce: its
/// recipient counts as out of reach, and if nobody else can be reached, the gate's next round begins. A token of a reply
/// address is known to everybody whom the mail was forwarded to: then the gate shows a warning, and nothing else changes.
/// Of a gate that is closed, or of a mail that is no more wanted, it changes nothing.
#[derive(Debug, Clone)]
pub struct RecordBounce {
    /// The token of the mail; it names whom it went to.
    pub token: MailToken,
    /// What exactly, for a person; at most 16 KiB.
    pub message: String,
}

/// A dead letter is to be delivered after all; its incident is closed. For an effect that is on its way, it changes
/// nothing.
#[derive(Debug, Clone)]
pub struct RetryEffect {
    /// Its number in the session.
    pub number: u64,
}

/// Nobody is to deliver a dead letter any more; its incident is closed.
#[derive(Debug, Clone)]
pub struct DismissEffect {
    /// Its number in the session.
    pub number: u64,
}
