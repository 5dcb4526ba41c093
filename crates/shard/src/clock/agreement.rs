//! Compares this server's clock with those of the other servers. Pure.
//!
//! The opinions are this server's own clock and those of the servers that it knows. Of an even number, every time between
//! the two in the middle may be right; a server decides by the lower one, because a late timer does less harm than an early
//! one.

use crate::limits::CLOCK_APART_MAX_MS;

/// The clock of another server, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other server.
    pub server: u64,
    /// How far its clock is ahead of this server's, milliseconds; negative if it is behind.
    pub ms: i64,
}

/// What a server knows of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockAgreement {
    /// There is nothing to compare it with: the server is alone.
    Alone,
    /// It was not yet compared with enough others: they and this server are no majority. Nothing is decided by it.
    Unknown,
    /// It is close to the median.
    Agrees,
    /// As many clocks say this as say another time, such as with two servers: nobody can say which is right.
    Undecided {
        /// How far it is ahead, milliseconds; negative if it is behind.
        by_ms: i64,
    },
    /// It differs from the median of at least three: this server leads nothing.
    Differs {
        /// How far it is ahead of the median, milliseconds; negative if it is behind.
        by_ms: i64,
    },
}

impl ClockAgreement {
    /// How far the clock is ahead of what this server may decide by, milliseconds.
    pub(crate) fn ahead_ms(self) -> u64 {
        match self {
            Self::Alone | Self::Unknown | Self::Agrees => 0,
            Self::Undecided { by_ms } | Self::Differs { by_ms } => u64::try_from(by_ms).unwrap_or(0),
        }
    }

    /// Returns true if this server may decide by its clock.
    pub(crate) fn is_known(self) -> bool {
        self != Self::Unknown
    }

    /// Returns true if this server must not lead.
    #[must_use]
    pub fn bars_from_leading(self) -> bool {
        matches!(self, Self::Differs { .. })
    }

    /// How far the clock is ahead of the median if the difference is too large, milliseconds; negative if it is behind.
    #[must_use]
    pub fn off_by_ms(self) -> Option<i64> {
        match self {
            Self::Alone | Self::Unknown | Self::Agrees => None,
            Self::Undecided { by_ms } | Self::Differs { by_ms } => Some(by_ms),
        }
    }
}

/// Judges the clock of a server in a cluster with this number of voters.
pub(crate) fn judge(offsets: &[ClockOffset], voters: usize) -> ClockAgreement {
    if voters <= 1 {
        return ClockAgreement::Alone;
    }
    let mut opinions: Vec<i64> = offsets.iter().map(|offset| offset.ms).chain([0]).collect();
    if opinions.len() <= voters / 2 {
        return ClockAgreement::Unknown;
    }
    opinions.sort_unstable();
    let (low, high) = (opinions[(opinions.len() - 1) / 2], opinions[opinions.len() / 2]);
    let far = |ms: i64| ms.unsigned_abs() > CLOCK_APART_MAX_MS;
    let outside = if low > 0 { low } else { high.min(0) };
    if far(outside) && opinions.len() > 2 {
        return ClockAgreement::Differs { by_ms: outside.saturating_neg() };
    }
    // This server is one of the two in the middle.
    let other = if far(low) { low } else { high };
    if far(other) {
        ClockAgreement::Undecided { by_ms: other.saturating_neg() }
    } else {
        ClockAgreement::Agrees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn of(ms: &[i64], voters: usize) -> ClockAgreement {
        let offsets = ms.iter().zip(2..).map(|(ms, server)| ClockOffset { server, ms: *ms });
        judge(&offsets.collect::<Vec<_>>(), voters)
    }

    #[test]
    fn the_one_of_three_that_differs_is_the_one_that_is_wrong() {
        assert_eq!(of(&[10, -15], 3), ClockAgreement::Agrees);
        assert_eq!(of(&[2_000, 1_999], 3), ClockAgreement::Agrees);
        assert_eq!(of(&[2_001, 2_050], 3), ClockAgreement::Differs { by_ms: -2_001 });
        assert_eq!(of(&[-HOUR, -HOUR + 5], 3), ClockAgreement::Differs { by_ms: HOUR - 5 });
        // Another one is wrong.
        assert_eq!(of(&[-HOUR, 20], 3), ClockAgreement::Agrees);
        assert_eq!(of(&[87_600 * HOUR, 20], 3), ClockAgreement::Agrees);
        // All three differ: the one in the middle may lead.
        assert_eq!(of(&[-HOUR, HOUR], 3), ClockAgreement::Agrees);
    }

    #[test]
    fn of_four_a_server_is_wrong_that_is_not_between_the_two_in_the_middle() {
        assert_eq!(of(&[-5_000, -5_000, -5_000], 4), ClockAgreement::Differs { by_ms: 5_000 });
        assert_eq!(of(&[-5_000, -5_000, 5_000], 4), ClockAgreement::Undecided { by_ms: 5_000 });
        assert_eq!(of(&[-5_000, 5_000, 5_000], 4), ClockAgreement::Undecided { by_ms: -5_000 });
        assert_eq!(of(&[5_000, 5_000, 5_000], 4), ClockAgreement::Differs { by_ms: -5_000 });
        assert_eq!(of(&[5_000, 10, -5_000], 4), ClockAgreement::Agrees);
    }

    #[test]
    fn with_two_opinions_nobody_is_barred_and_nobody_decides_ahead_of_the_other() {
        for voters in [2, 3] {
            let ahead = of(&[-HOUR], voters);
            assert_eq!(ahead, ClockAgreement::Undecided { by_ms: HOUR });
            assert!(!ahead.bars_from_leading() && ahead.ahead_ms() == 3_600_000);
            let behind = of(&[HOUR], voters);
            assert!(!behind.bars_from_leading() && behind.is_known() && behind.ahead_ms() == 0);
            assert_eq!(of(&[7], voters), ClockAgreement::Agrees);
        }
    }

    #[test]
    fn without_a_majority_nothing_is_known_and_a_server_alone_needs_none() {
        assert_eq!(of(&[], 1), ClockAgreement::Alone);
        assert_eq!(of(&[], 2), ClockAgreement::Unknown);
        assert_eq!(of(&[], 3), ClockAgreement::Unknown);
        assert_eq!(of(&[1], 5), ClockAgreement::Unknown);
        assert_eq!(of(&[1, 2], 5), ClockAgreement::Agrees);
        assert_eq!(of(&[i64::MIN, i64::MIN], 3), ClockAgreement::Differs { by_ms: i64::MAX });
    }
}
