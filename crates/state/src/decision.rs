//! Decisions: what is replicated. The log carries them, and evolving them is all that changes state.

use minicbor::decode::Error as DecodeError;
use minicbor::{CborLen, Decode, Decoder, Encode};
use switchward_machine::{Digest, TenantId, Time};

use crate::{Actor, Event, FormError, Level, Reply, Scope};

/// What one batch of commands came to: one log entry. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Decision {
    /// The feature level at which it was written; never below that of the decision before it. It comes first, so that a
    /// server that does not know the level can read it all the same: see [`Decision::level_of`].
    #[n(0)]
    pub level: Level,
    /// The time of the whole batch; never before that of the decision before it.
    #[n(1)]
    pub at: Time,
    /// One for each accepted command that changed something, or whose reply is remembered.
    #[n(2)]
    pub turns: Vec<TurnRecord>,
    /// For tests: [`SAMPLE`](crate::level::SAMPLE).
    #[cfg(feature = "level-two")]
    #[n(3)]
    pub sample: Option<u64>,
}

/// The version of a decision's stored form; its first byte.
const FORM: u8 = 1;
/// The usual length of a turn in the log, bytes: enough for most decisions without a second allocation.
const TURN_BYTES_USUAL: usize = 512;
/// How many fields a decision of level 1 is written with.
const FIELDS: u64 = 3;

impl Decision {
    /// A decision with nothing that came in after level 1.
    #[must_use]
    pub fn new(level: Level, at: Time, turns: Vec<TurnRecord>) -> Self {
        Self {
            level,
            at,
            turns,
            #[cfg(feature = "level-two")]
            sample: None,
        }
    }

    /// The level of an encoded decision, without reading the rest; `None` if the bytes do not begin as a decision does.
    #[must_use]
    pub fn level_of(bytes: &[u8]) -> Option<Level> {
        let rest = bytes.strip_prefix(&[FORM])?;
        let mut decoder = Decoder::new(rest);
        decoder.array().ok()?;
        decoder.decode().ok()
    }

    /// Checks that it holds nothing that came in after its level.
    ///
    /// # Errors
    /// It does; the text says what.
    pub fn check_level(&self) -> Result<(), String> {
        #[cfg(feature = "level-two")]
        if self.sample.is_some() && !self.level.writes(&crate::level::SAMPLE) {
            let name = crate::level::SAMPLE.name;
            let message = format!("a decision of level {} holds {name}", self.level);
            return Err(message);
        }
        Ok(())
    }

    /// The stored form: a form byte, then fields by number.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        crate::wire::framed_about(FORM, self, self.turns.len().saturating_mul(TURN_BYTES_USUAL))
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Another form, broken bytes, or a kind or field that this program does not know or that is above the decision's
    /// level.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormError> {
        let decision: Self = crate::wire::unframed(FORM, bytes, "decision").map_err(FormError)?;
        decision.check_level().map_err(FormError)?;
        Ok(decision)
    }

    /// Returns true if these bytes, which [`encode`](Self::encode) has made of this decision, read as the same decision.
    /// They are read turn by turn, so that there is never a second decision in memory. They are not counted, as
    /// [`decode`](Self::decode) does to find fields that were skipped: what reads as the same was written as these bytes.
    ///
    /// # Errors
    /// Broken bytes, or something in the decision that is above its level.
    pub fn reads_as(&self, bytes: &[u8]) -> Result<bool, FormError> {
        self.check_level().map_err(FormError)?;
        self.is_in(bytes).map_err(|error| FormError(error.to_string()))
    }

    fn is_in(&self, bytes: &[u8]) -> Result<bool, DecodeError> {
        let Some(rest) = bytes.strip_prefix(&[FORM]) else { return Ok(false) };
        let mut decoder = Decoder::new(rest);
        let fields = decoder.array()?;
        let (level, at): (Level, Time) = (decoder.decode()?, decoder.decode()?);
        let turns = decoder.array()?;
        if (level, at) != (self.level, self.at) || turns != u64::try_from(self.turns.len()).ok() {
            return Ok(false);
        }
        for turn in &self.turns {
            let read: TurnRecord = decoder.decode()?;
            if read != *turn {
                return Ok(false);
            }
        }
        Ok(self.ends_with(fields, &mut decoder)? && decoder.position() == rest.len())
    }

    /// Returns true if the same follows the turns in an encoded decision with this number of fields.
    #[cfg(feature = "level-two")]
    fn ends_with(&self, fields: Option<u64>, decoder: &mut Decoder<'_>) -> Result<bool, DecodeError> {
        let has_sample = fields == Some(FIELDS + 1);
        let sample: Option<u64> = if has_sample { decoder.decode()? } else { None };
        Ok((has_sample || fields == Some(FIELDS)) && sample == self.sample)
    }

    /// Returns true if the same follows the turns in an encoded decision with this number of fields: nothing yet.
    #[cfg(not(feature = "level-two"))]
    fn ends_with(&self, fields: Option<u64>, _: &mut Decoder<'_>) -> Result<bool, DecodeError> {
        Ok(fields == Some(FIELDS))
    }
}

/// What one command came to.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct TurnRecord {
    /// Whose rows it changes.
    #[n(0)]
    pub tenant: TenantId,
    /// What it is about.
    #[n(1)]
    pub scope: Scope,
    /// The caller, with its role then.
    #[n(2)]
    pub by: Actor,
    /// The request id and the digest of its body.
    #[n(3)]
    pub request: Option<(String, Digest)>,
    /// The reply, remembered under the request id.
    #[n(4)]
    pub reply: Reply,
    /// What happened, in order. Empty if nothing did, and the reply alone is remembered.
    #[n(5)]
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> Decision {
        Decision::new(Level(7), Time(3), Vec::new())
    }

    #[test]
    fn the_level_is_read_without_the_rest() {
        let bytes = decision().encode();
        assert_eq!(Decision::level_of(&bytes), Some(Level(7)));
        assert_eq!(Decision::level_of(&bytes[..3]), Some(Level(7)), "the rest may be of any form");
        for other in [&[][..], &[FORM], &[FORM + 1, 0x83, 7], &[FORM, 7]] {
            assert_eq!(Decision::level_of(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        let mut bytes = decision().encode();
        assert_eq!(bytes[1], 0x83, "an array of three");
        // More fields than this program knows, and only the last one is not empty.
        bytes[1] = 0x86;
        bytes.extend([0xf6, 0xf6, 0x18, 0x2a]);
        let error = Decision::decode(&bytes).unwrap_err().to_string();
        assert!(error.contains("does not know"), "{error}");
    }

    #[test]
    fn what_was_written_reads_as_the_same_decision_and_as_no_other() {
        let turn = TurnRecord {
            tenant: TenantId(1),
            scope: Scope::Shard,
            by: Actor::server(),
            request: Some(("a request".into(), Digest([7; 32]))),
            reply: Reply::Done,
            events: Vec::new(),
        };
        let later = TurnRecord { tenant: TenantId(2), ..turn.clone() };
        let all = [
            decision(),
            Decision { at: Time(4), ..decision() },
            Decision { level: Level(8), ..decision() },
            Decision { turns: vec![turn.clone()], ..decision() },
            Decision { turns: vec![later.clone()], ..decision() },
            Decision { turns: vec![turn, later], ..decision() },
        ];
        for one in &all {
            for other in &all {
                assert_eq!(one.reads_as(&other.encode()), Ok(one == other), "{one:?}, {other:?}");
            }
            let bytes = one.encode();
            assert!(one.reads_as(&bytes[..bytes.len() - 1]).is_err());
            for odd in [[&bytes[..], &[0]].concat(), [&[FORM + 1][..], &bytes[1..]].concat()] {
                assert_eq!(one.reads_as(&odd), Ok(false), "{odd:?}");
            }
            let mut longer = bytes;
            longer[1] = 0x86;
            longer.extend([0xf6, 0xf6, 0x18, 0x2a]);
            assert_eq!(one.reads_as(&longer), Ok(false), "it has fields that this program does not know");
        }
    }

    #[cfg(feature = "level-two")]
    #[test]
    fn what_is_above_the_level_of_a_decision_is_refused() {
        let sampled = |level| Decision { level: Level(level), sample: Some(5), ..decision() };
        assert_eq!(Decision::decode(&sampled(2).encode()).as_ref(), Ok(&sampled(2)));
        assert_eq!(sampled(2).reads_as(&sampled(2).encode()), Ok(true));
        let other = Decision { sample: Some(6), ..sampled(2) };
        let without = Decision { sample: None, ..sampled(2) };
        for one in [other, without] {
            assert_eq!(
                [sampled(2).reads_as(&one.encode()), one.reads_as(&sampled(2).encode())],
                [Ok(false), Ok(false)]
            );
        }
        assert!(sampled(1).reads_as(&sampled(1).encode()).is_err());
        let error = Decision::decode(&sampled(1).encode()).unwrap_err().to_string();
        assert!(error.contains("Decision.sample"), "{error}");
    }
}
