//! Compares this server's clock with those of the other servers. Pure.
//!
//! The opinions are this server's own clock and those of the servers that it knows. It is assumed that more than half of the
//! voters' clocks are right, and not that those of the servers that can be reached now are: of five servers, the three that
//! are left may be one whose clock is right and two whose clocks are wrong in the same way. So up to half of all voters,
//! `w`, may be wrong, and of `n` opinions in order only these bounds are sure:
//!
//! - The one with `w` others after it is not later than a right one: it is the latest time that fires no timer early.
//! - The one with `w` others before it is not earlier than a right one.
//!
//! With all opinions both are the median, or the two in the middle of an even number. With fewer they are further apart. A
//! server outside of them is wrong, and is barred from leading: a majority of all voters says so. Between bounds that are far
//! apart nothing is decided: nobody is barred, and a server decides by the earlier one, because a late timer does less harm
//! than an early one.
//!
//! Two clocks have no median: with two servers, with two voters of three while the third is silent, or with two against two of
//! four. To bar both would stop the shards that are left, and to bar either could bar the one that is right. So both may lead
//! ([`ClockAgreement::Undecided`]), and the requirement that a server leads nothing whose clock is more than two seconds from
//! the median begins when a third clock is compared. Neither decides by a time that is later than the other's, so which of the
//! two leads does not matter for what fires early: nothing does. A voter whose peers are all silent has no majority, so it
//! neither leads nor decides ([`ClockAgreement::Unknown`]) unless it has compared before; then it keeps what it knew.
//! `cluster status` and `doctor` call such clocks undecided, and `switchward_clock_ahead_ms` is not 0.
//!
//! A server that more clocks have judged keeps that verdict while fewer clocks, which decide nothing, are left. A server that
//! was barred from leading is admitted again only after its clock has been close for several comparisons, so that a clock at
//! the limit does not move the leadership again and again.

use crate::limits::{CLOCK_APART_MAX_MS, CLOCK_CLOSE_COMPARISONS, CLOCK_CLOSE_MS};

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
    /// The clocks differ, and no majority of all voters says which time is right, such as with two servers.
    Undecided {
        /// How far it is ahead of the lower bound, or, if it is close to that, of the upper one, milliseconds; negative if
        /// it is behind.
        by_ms: i64,
    },
    /// A majority of all voters' clocks is on one side of it: this server leads nothing.
    Differs {
        /// How far it is ahead of the lower bound, milliseconds; negative if it is behind.
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

    /// How far the clock is certainly behind, milliseconds: a majority of all voters' clocks shows at least that much more.
    pub(crate) fn behind_ms(self) -> u64 {
        match self {
            Self::Alone | Self::Unknown | Self::Agrees | Self::Undecided { .. } => 0,
            Self::Differs { by_ms } => u64::try_from(by_ms.saturating_neg()).unwrap_or(0),
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

/// One comparison of a server's clock with the others'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// What it says by itself.
    agreement: ClockAgreement,
    /// How far the clock is ahead of the lower bound, milliseconds; negative if it is behind.
    by_ms: i64,
    /// Returns the server to those that may lead.
    is_close: bool,
    /// The number of clocks, this server's included.
    opinions: usize,
}

impl Comparison {
    /// There is nothing to compare the clock with.
    pub(crate) const ALONE: Self = Self::without(ClockAgreement::Alone);
    /// There are too few others to compare it with.
    pub(crate) const UNKNOWN: Self = Self::without(ClockAgreement::Unknown);

    const fn without(agreement: ClockAgreement) -> Self {
        Self { agreement, by_ms: 0, is_close: true, opinions: 1 }
    }
}

/// What a server knows of its clock after all comparisons until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgreementState {
    /// What it says.
    pub(crate) agreement: ClockAgreement,
    /// The number of clocks that it comes from.
    opinions: usize,
    /// How many comparisons in a row have found the clock of a barred server close.
    close: u32,
}

impl AgreementState {
    /// What the first comparison says.
    pub(crate) fn of(comparison: Comparison) -> Self {
        let Comparison { agreement, opinions, .. } = comparison;
        Self { agreement, opinions, close: 0 }
    }

    /// The verdict after one more comparison. `None` if that says less than is known: the earlier verdict stays, and
    /// the clock is bounded by what was compared then.
    pub(crate) fn after(self, comparison: Comparison) -> Option<Self> {
        let Comparison { agreement, by_ms, is_close, opinions } = comparison;
        match agreement {
            ClockAgreement::Alone => return Some(Self::of(comparison)),
            ClockAgreement::Unknown => {
                return (self.agreement == ClockAgreement::Alone).then(|| Self::of(comparison));
            }
            // More clocks have said which one is right.
            ClockAgreement::Undecided { .. } if opinions < self.opinions && self.is_decided() => return None,
            ClockAgreement::Agrees | ClockAgreement::Undecided { .. } | ClockAgreement::Differs { .. } => {}
        }
        if !self.agreement.bars_from_leading() || agreement.bars_from_leading() {
            return Some(Self::of(comparison));
        }
        let close = if is_close { self.close + 1 } else { 0 };
        if close >= CLOCK_CLOSE_COMPARISONS {
            return Some(Self::of(comparison));
        }
        Some(Self { agreement: ClockAgreement::Differs { by_ms }, opinions, close })
    }

    fn is_decided(self) -> bool {
        match self.agreement {
            ClockAgreement::Agrees | ClockAgreement::Differs { .. } => true,
            ClockAgreement::Alone | ClockAgreement::Unknown | ClockAgreement::Undecided { .. } => false,
        }
    }
}

/// Compares the clock of a server in a cluster with this number of voters.
pub(crate) fn judge(offsets: &[ClockOffset], voters: usize) -> Comparison {
    if voters <= 1 {
        return Comparison::ALONE;
    }
    let mut opinions: Vec<i64> = offsets.iter().map(|offset| offset.ms).chain([0]).collect();
    if opinions.len() <= voters / 2 {
        return Comparison::UNKNOWN;
    }
    opinions.sort_unstable();
    // Learners have opinions, too: there may be more than voters.
    let wrong = voters.max(opinions.len()) / 2;
    let (low, high) = (opinions[opinions.len() - wrong - 1], opinions[wrong]);
    let far = |ms: i64| ms.unsigned_abs() > CLOCK_APART_MAX_MS;
    let outside = if low > 0 { low } else { high.min(0) };
    let by_ms = low.saturating_neg();
    // Otherwise this server is between the bounds.
    let other = if far(low) { low } else { high };
    let agreement = if far(outside) {
        ClockAgreement::Differs { by_ms }
    } else if far(other) {
        ClockAgreement::Undecided { by_ms: other.saturating_neg() }
    } else {
        ClockAgreement::Agrees
    };
    let is_close = outside.unsigned_abs() < CLOCK_CLOSE_MS;
    Comparison { agreement, by_ms, is_close, opinions: opinions.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn of(ms: &[i64], voters: usize) -> ClockAgreement {
        let offsets = ms.iter().zip(2..).map(|(ms, server)| ClockOffset { server, ms: *ms });
        judge(&offsets.collect::<Vec<_>>(), voters).agreement
    }

    /// What is known after these comparisons in a cluster of this many voters.
    fn after(comparisons: &[&[i64]], voters: usize) -> ClockAgreement {
        let last = comparisons.iter().fold(AgreementState::of(Comparison::UNKNOWN), |verdict, ms| {
            let offsets: Vec<_> =
                ms.iter().zip(2..).map(|(ms, server)| ClockOffset { server, ms: *ms }).collect();
            verdict.after(judge(&offsets, voters)).unwrap_or(verdict)
        });
        last.agreement
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

    #[test]
    fn two_of_five_that_are_wrong_in_the_same_way_decide_nothing_when_two_right_ones_are_down() {
        let undecided = |by_ms| ClockAgreement::Undecided { by_ms };
        for wrong in [HOUR, -HOUR] {
            // What the right one sees, and what a wrong one sees.
            let (right, mistaken) = ([wrong, wrong], [-wrong, 0]);
            let all: [&[i64]; 2] = [&[wrong, wrong, 0, 0], &[-wrong, 0, -wrong, -wrong]];
            assert_eq!(after(&[all[0], &right], 5), ClockAgreement::Agrees);
            assert_eq!(after(&[all[1], &mistaken], 5), ClockAgreement::Differs { by_ms: wrong });
            // Nothing was known before: each decides by the earliest of the three, and each may lead.
            assert_eq!(after(&[&right], 5), undecided(-wrong));
            assert_eq!(after(&[&mistaken], 5), undecided(wrong));
            assert_eq!(undecided(wrong).ahead_ms(), u64::try_from(wrong).unwrap_or(0));
            // Of four, three that agree are a majority of five.
            assert_eq!(of(&[wrong, 0, 0], 5), ClockAgreement::Agrees);
            assert_eq!(of(&[-wrong, -wrong, -wrong], 5), ClockAgreement::Differs { by_ms: wrong });
        }
        // And so are all of three.
        assert_eq!(of(&[9, -9], 5), ClockAgreement::Agrees);
    }

    #[test]
    fn no_server_with_a_right_clock_is_barred_and_none_decides_early() {
        // All ways in which two of five clocks at most are an hour ahead, and two servers at most are down.
        for (wrong, down) in (0_u32..32).flat_map(|wrong| (0_u32..32).map(move |down| (wrong, down))) {
            if wrong.count_ones() > 2 || down.count_ones() > 2 {
                continue;
            }
            let clock = |server: u32| if wrong & (1 << server) != 0 { HOUR } else { 0 };
            let up: Vec<u32> = (0..5).filter(|server| down & (1 << server) == 0).collect();
            for own in &up {
                let others = up.iter().filter(|server| *server != own);
                let offsets: Vec<i64> = others.map(|server| clock(*server) - clock(*own)).collect();
                let found = of(&offsets, 5);
                let is_right = clock(*own) == 0;
                assert!(!(is_right && found.bars_from_leading()), "{wrong:b} {down:b} {own}: {found:?}");
                let decides_by = clock(*own) - i64::try_from(found.ahead_ms()).unwrap();
                assert_eq!(decides_by, 0, "{wrong:b} {down:b} {own}: {found:?}");
            }
        }
    }

    #[test]
    fn a_server_ahead_of_two_in_the_middle_that_differ_decides_by_the_lower_one() {
        for (others, by_ms) in [
            ([-2 * HOUR, -2 * HOUR, -HOUR], 2 * HOUR),
            ([-2 * HOUR, -HOUR, -HOUR], HOUR),
            ([-3 * HOUR, -2 * HOUR, -HOUR], 2 * HOUR),
            // It is behind: it decides by its own clock.
            ([HOUR, 2 * HOUR, 2 * HOUR], -HOUR),
        ] {
            let found = of(&others, 4);
            assert_eq!(found, ClockAgreement::Differs { by_ms }, "{others:?}");
            assert_eq!(found.ahead_ms(), u64::try_from(by_ms).unwrap_or(0));
        }
        // The upper one is not far away, the lower one is.
        assert_eq!(of(&[-HOUR, -HOUR, -1_000], 4), ClockAgreement::Undecided { by_ms: HOUR });
    }

    #[test]
    fn what_more_clocks_have_decided_stays_when_fewer_cannot() {
        let differs = ClockAgreement::Differs { by_ms: -9 * HOUR };
        let undecided = |by_ms| ClockAgreement::Undecided { by_ms };
        let table: &[(&[&[i64]], usize, ClockAgreement)] = &[
            // The third server goes down, and the second is wrong.
            (&[&[-9 * HOUR, 10], &[-9 * HOUR]], 3, ClockAgreement::Agrees),
            (&[&[-9 * HOUR, 10], &[-9 * HOUR], &[], &[-9 * HOUR]], 3, ClockAgreement::Agrees),
            (&[&[9 * HOUR, 10], &[9 * HOUR]], 3, ClockAgreement::Agrees),
            // The wrong one itself stays barred, until its clock is right.
            (&[&[9 * HOUR, 9 * HOUR], &[9 * HOUR]], 3, differs),
            // One of the three of five that agree goes down.
            (&[&[0, 0, -HOUR, -HOUR], &[0, -HOUR, -HOUR]], 5, ClockAgreement::Agrees),
            // Nothing was decided before.
            (&[&[-HOUR]], 3, undecided(HOUR)),
            (&[&[0], &[-HOUR]], 3, undecided(HOUR)),
            // The third server comes back.
            (&[&[-HOUR], &[-HOUR, 10]], 3, ClockAgreement::Agrees),
            (&[&[-HOUR, 10], &[-HOUR], &[-HOUR, -HOUR]], 3, ClockAgreement::Differs { by_ms: HOUR }),
            // It is alone now.
            (&[&[-HOUR, 10], &[-HOUR]], 1, ClockAgreement::Alone),
        ];
        for (comparisons, voters, expected) in table {
            assert_eq!(after(comparisons, *voters), *expected, "{comparisons:?} of {voters}");
        }
    }

    #[test]
    fn a_barred_server_leads_again_only_after_its_clock_was_close_for_several_comparisons() {
        let max = i64::try_from(CLOCK_APART_MAX_MS).unwrap();
        let near = i64::try_from(CLOCK_CLOSE_MS).unwrap();
        let enough = usize::try_from(CLOCK_CLOSE_COMPARISONS).unwrap();
        for sign in [1, -1] {
            let ms = |ms: i64| [sign * ms; 2];
            let (far, at_limit, close) = (ms(max + 1), ms(near), ms(near - 1));
            let run = |comparisons: &[[i64; 2]]| {
                let comparisons: Vec<&[i64]> = comparisons.iter().map(|it| &it[..]).collect();
                after(&comparisons, 3)
            };
            // Up to the limit nobody is barred, whatever it was before.
            assert_eq!(run(&[ms(max), ms(0), ms(max)]), ClockAgreement::Agrees);
            // A clock at the limit does not toggle.
            let toggles: Vec<_> = (0..9).map(|n| if n % 2 == 0 { far } else { ms(max) }).collect();
            for until in 1..=toggles.len() {
                assert!(run(&toggles[..until]).bars_from_leading(), "{until}");
            }
            assert!(run(&[&[far][..], &vec![at_limit; 3 * enough]].concat()).bars_from_leading());
            let closes = vec![close; enough - 1];
            let kept = run(&[&[far][..], &closes].concat());
            assert_eq!(kept, ClockAgreement::Differs { by_ms: -sign * (near - 1) }, "by the last comparison");
            assert_eq!(run(&[&[far][..], &closes, &[close]].concat()), ClockAgreement::Agrees);
            // They must be in a row.
            let interrupted = run(&[&[far][..], &closes, &[at_limit], &closes].concat());
            assert!(interrupted.bars_from_leading());
        }
    }
}
