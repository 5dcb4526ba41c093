//! The position at which an export continues, as its page tokens carry it.

use switchward_machine::{SessionId, Time, limits::BUCKETS};
use switchward_state::NO_SESSION;

/// The beginning of the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A change of the tenant: its number, and how many of its records were exported.
    Change { number: u64, records: u32 },
    /// A record of a session.
    Session(Spot),
}

/// A position among the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) bucket: u16,
    /// The session in progress, or the last one exported of the bucket; [`NO_SESSION`] before the first one.
    pub(super) session: SessionId,
    pub(super) stage: Stage,
    /// How many of its decisions were exported: this many of those that a removal keeps are skipped.
    pub(super) decisions: u64,
    /// The row of its history, by its key.
    pub(super) row: u64,
    /// The sequence of the last exported event of that row.
    pub(super) sequence: u64,
    /// Whether the decision of that event was exported, too.
    pub(super) decided: bool,
}

/// The parts of what is exported of a session, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// What remains of an earlier session of the same id.
    Earlier = 0,
    /// The session itself.
    Itself = 1,
    /// Its events and decisions.
    History = 2,
    /// The removal of its data, if there was one.
    Removal = 3,
    /// Everything of the session has been exported.
    Over = 4,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Earlier, Self::Itself, Self::History, Self::Removal, Self::Over];
}

const CHANGE: u8 = 1;
const SESSION: u8 = 2;
/// More decisions than any session has.
const DECISIONS_MAX: u64 = u32::MAX as u64;

impl Default for Position {
    fn default() -> Self {
        Self::Change { number: 1, records: 0 }
    }
}

impl Spot {
    /// Before the first session of a bucket.
    pub(super) fn before(bucket: u16) -> Self {
        Self::at(bucket, NO_SESSION, Stage::Over)
    }

    /// At the beginning of a session.
    pub(super) fn at(bucket: u16, session: SessionId, stage: Stage) -> Self {
        Self { bucket, session, stage, decisions: 0, row: 0, sequence: 0, decided: false }
    }
}

impl Position {
    /// The bytes for a token of an export of this time.
    pub(super) fn bytes(self, at: Time) -> Vec<u8> {
        let mut bytes = at.0.to_be_bytes().to_vec();
        match self {
            Self::Change { number, records } => {
                bytes.push(CHANGE);
                bytes.extend(number.to_be_bytes());
                bytes.extend(records.to_be_bytes());
            }
            Self::Session(spot) => {
                bytes.push(SESSION);
                bytes.extend(spot.bucket.to_be_bytes());
                bytes.extend(spot.session.0);
                bytes.push(spot.stage as u8);
                for number in [spot.decisions, spot.row, spot.sequence] {
                    bytes.extend(number.to_be_bytes());
                }
                bytes.push(u8::from(spot.decided));
            }
        }
        bytes
    }

    /// The inverse of [`bytes`](Self::bytes); `None` if they are of another length or form.
    pub(super) fn read(bytes: &[u8]) -> Option<(Time, Self)> {
        let mut rest = bytes;
        let at = Time(u64::from_be_bytes(take(&mut rest)?));
        let [kind] = take(&mut rest)?;
        let position = match kind {
            CHANGE => Self::Change {
                number: u64::from_be_bytes(take(&mut rest)?),
                records: u32::from_be_bytes(take(&mut rest)?),
            },
            SESSION => Self::Session(spot(&mut rest)?),
            _ => return None,
        };
        (rest.is_empty() && position.is_reachable()).then_some((at, position))
    }

    /// Returns true if an export may end a page here: a token proves nothing, anybody can compute one.
    fn is_reachable(self) -> bool {
        match self {
            Self::Change { .. } => true,
            // Before the first session of a bucket, no session is in progress.
            Self::Session(spot) if spot.session == NO_SESSION => spot == Spot::before(spot.bucket),
            Self::Session(spot) => spot.decisions <= DECISIONS_MAX,
        }
    }
}

fn spot(rest: &mut &[u8]) -> Option<Spot> {
    let bucket = Some(u16::from_be_bytes(take(rest)?)).filter(|bucket| *bucket < BUCKETS)?;
    let session = SessionId(take(rest)?);
    let [stage] = take(rest)?;
    Some(Spot {
        bucket,
        session,
        stage: Stage::ALL.into_iter().find(|known| *known as u8 == stage)?,
        decisions: u64::from_be_bytes(take(rest)?),
        row: u64::from_be_bytes(take(rest)?),
        sequence: u64::from_be_bytes(take(rest)?),
        decided: take(rest)? == [1],
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_and_nothing_else_is_one() {
        let spot = Spot {
            decisions: 3,
            row: 70,
            sequence: 75,
            decided: true,
            ..Spot::at(9, SessionId([7; 16]), Stage::History)
        };
        for position in
            [Position::default(), Position::Session(spot), Position::Session(Spot::before(BUCKETS - 1))]
        {
            let bytes = position.bytes(Time(1_782_000_000_000));
            assert_eq!(Position::read(&bytes), Some((Time(1_782_000_000_000), position)));
            assert_eq!(Position::read(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Position::read(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(Position::read(&Position::Session(Spot::before(BUCKETS)).bytes(Time(1))), None);
        assert_eq!(Position::read(&[0; 21]), None);
    }

    #[test]
    fn a_position_at_which_no_page_ends_is_none() {
        let session = SessionId([7; 16]);
        for spot in [
            Spot::at(9, NO_SESSION, Stage::History),
            Spot { decisions: 1, ..Spot::before(9) },
            Spot { decisions: u64::MAX, ..Spot::at(9, session, Stage::History) },
        ] {
            assert_eq!(Position::read(&Position::Session(spot).bytes(Time(1))), None, "{spot:?}");
        }
    }
}
