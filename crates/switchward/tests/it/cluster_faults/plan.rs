//! The faults of a round: which, when and for how long, drawn from its seed.

use std::time::Duration;
use switchward_testkit::Rng;

/// The servers, by their numbers.
pub(crate) const SERVERS: [u64; 3] = [1, 2, 3];
/// One fault in this many lasts longer than a server believes that it is connected.
const LONG_IN: usize = 8;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// SIGKILL of a server.
    KillOne,
    /// SIGKILL of the server that leads a group.
    KillLeader,
    /// SIGKILL of two servers.
    KillTwo,
    /// SIGKILL of all servers.
    KillAll,
    /// A server loses its power.
    PowerCut,
    /// All servers lose their power.
    PowerCutAll,
    /// SIGSTOP of a server, and SIGCONT.
    Pause,
    /// The same of the server that leads a group.
    PauseLeader,
    /// A server whose syncs do not return.
    Stall,
    /// The same of the server that leads a group.
    StallLeader,
    /// A server whose syncs fail ends by itself, and starts again with all that it has written.
    SyncError,
    /// The same of the server that leads a group; where power can be cut, it starts without what was not synced.
    SyncErrorLeader,
    /// A server is started whose clock is ahead.
    ClockAhead,
    /// A server is started whose clock is behind.
    ClockBehind,
    /// A server is cut off from both others.
    Isolate,
    /// All servers are cut off from each other.
    Shatter,
    /// Two servers are cut off from each other.
    CutBoth,
    /// Nothing from one server arrives at another one.
    OneDirection,
    /// The connections that one server has opened to another one get no answers.
    HalfLink,
    /// What a server sends and receives is late.
    Delay,
    /// The same, because few bytes are forwarded in a second.
    Slow,
    /// The connections between two servers are reset.
    Reset,
    /// SIGKILL of Redis, which has its append-only file when it starts again.
    RedisKill,
    /// Redis loses all of its data.
    RedisFlush,
}

/// The kinds of faults of servers.
pub(crate) const OF_SERVERS: [Kind; 14] = [
    Kind::KillOne,
    Kind::KillLeader,
    Kind::KillTwo,
    Kind::KillAll,
    Kind::PowerCut,
    Kind::PowerCutAll,
    Kind::Pause,
    Kind::PauseLeader,
    Kind::Stall,
    Kind::StallLeader,
    Kind::SyncError,
    Kind::SyncErrorLeader,
    Kind::ClockAhead,
    Kind::ClockBehind,
];

/// The kinds of faults of what the servers talk over: their links, and Redis.
pub(crate) const OF_LINKS: [Kind; 10] = [
    Kind::Isolate,
    Kind::Shatter,
    Kind::CutBoth,
    Kind::OneDirection,
    Kind::HalfLink,
    Kind::Delay,
    Kind::Slow,
    Kind::Reset,
    Kind::RedisKill,
    Kind::RedisFlush,
];

/// How far a clock is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    HalfAMinute,
    AnHour,
    TenYears,
}

impl Wrong {
    const ALL: [Self; 3] = [Self::HalfAMinute, Self::AnHour, Self::TenYears];

    /// The same in milliseconds.
    pub(crate) fn ms(self) -> i64 {
        const HOUR: i64 = 3_600_000;
        match self {
            Self::HalfAMinute => 30_000,
            Self::AnHour => HOUR,
            Self::TenYears => 10 * 365 * 24 * HOUR,
        }
    }
}

impl Step {
    /// Its name in reports.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.name(self.wrong)
    }
}

impl Kind {
    /// Returns true if it is made only where the power of servers can be cut.
    fn cuts_power(self) -> bool {
        matches!(self, Self::PowerCut | Self::PowerCutAll)
    }

    fn name(self, wrong: Wrong) -> &'static str {
        match self {
            Self::KillOne => "kill of one",
            Self::KillLeader => "kill of a leader",
            Self::KillTwo => "kill of two",
            Self::KillAll => "kill of all",
            Self::PowerCut => "power cut",
            Self::PowerCutAll => "power cut of all",
            Self::Pause => "pause",
            Self::PauseLeader => "pause of a leader",
            Self::Stall => "disk stall",
            Self::StallLeader => "disk stall of a leader",
            Self::SyncError => "failed sync",
            Self::SyncErrorLeader => "failed sync of a leader",
            Self::ClockAhead => match wrong {
                Wrong::HalfAMinute => "clock half a minute ahead",
                Wrong::AnHour => "clock an hour ahead",
                Wrong::TenYears => "clock ten years ahead",
            },
            Self::ClockBehind => match wrong {
                Wrong::HalfAMinute => "clock half a minute behind",
                Wrong::AnHour => "clock an hour behind",
                Wrong::TenYears => "clock ten years behind",
            },
            Self::Isolate => "isolated",
            Self::Shatter => "all links cut",
            Self::CutBoth => "cut both ways",
            Self::OneDirection => "cut one way",
            Self::HalfLink => "no answers",
            Self::Delay => "delay",
            Self::Slow => "slow link",
            Self::Reset => "reset",
            Self::RedisKill => "kill of Redis",
            Self::RedisFlush => "flush of Redis",
        }
    }
}

/// A fault of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// How long after the end of the one before.
    pub(crate) after: Duration,
    pub(crate) kind: Kind,
    /// The server that fails, if it is not a leader.
    pub(crate) server: u64,
    /// Another server: the other end of a link, or the one that stays up.
    pub(crate) other: u64,
    /// The group whose leader fails.
    pub(crate) group: u64,
    /// How far a clock is wrong, if one is.
    pub(crate) wrong: Wrong,
    /// How long it lasts at least.
    pub(crate) lasts: Duration,
}

/// The faults of a round: two sequences at the same time, so that no more than two faults overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) servers: Vec<Step>,
    pub(crate) links: Vec<Step>,
    /// The names of those that cannot be made here.
    pub(crate) left_out: Vec<&'static str>,
}

/// Whether the power of servers can be cut here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    CanBeCut,
    Stays,
}

impl Plan {
    /// Draws the faults of a seed. It has half of the kinds; an odd seed has those that the even one before it lacks. Six
    /// seeds in a row have clocks that are wrong by all that is possible.
    pub(crate) fn draw(seed: u64, power: Power) -> Self {
        let mut rng = Rng::new(seed);
        let wrong = Wrong::ALL[(seed / 2 % 3) as usize];
        let mut steps =
            |kinds: &[Kind]| half(kinds, seed).into_iter().map(|kind| step(&mut rng, kind, wrong)).collect();
        let (drawn, links): (Vec<Step>, _) = (steps(&OF_SERVERS), steps(&OF_LINKS));
        let can_be = |step: &Step| power == Power::CanBeCut || !step.kind.cuts_power();
        let (servers, others): (Vec<Step>, Vec<Step>) = drawn.into_iter().partition(can_be);
        Self { servers, links, left_out: others.iter().map(Step::name).collect() }
    }

    /// The number of faults that are made.
    pub(crate) fn count(&self) -> usize {
        self.servers.len() + self.links.len()
    }
}

fn half(kinds: &[Kind], seed: u64) -> Vec<Kind> {
    let mut rng = Rng::new(!(seed / 2));
    let mut kinds = kinds.to_vec();
    for at in (1..kinds.len()).rev() {
        kinds.swap(at, rng.below(at + 1));
    }
    let second = kinds.split_off(kinds.len() / 2);
    if seed.is_multiple_of(2) { kinds } else { second }
}

fn step(rng: &mut Rng, kind: Kind, wrong: Wrong) -> Step {
    let server = *rng.pick(&SERVERS);
    let others: Vec<u64> = SERVERS.into_iter().filter(|other| *other != server).collect();
    let lasts = if rng.once_in(LONG_IN) { rng.between(5_500, 7_000) } else { rng.between(700, 2_000) };
    Step {
        after: Duration::from_millis(rng.between(200, 900)),
        kind,
        server,
        other: *rng.pick(&others),
        group: rng.between(1, 2),
        wrong,
        lasts: Duration::from_millis(lasts),
    }
}

#[test]
fn two_seeds_in_a_row_have_all_kinds_of_faults_once() {
    for seed in [0, 2, 40] {
        let [even, odd] = [seed, seed + 1].map(|seed| Plan::draw(seed, Power::CanBeCut));
        assert_eq!(even, Plan::draw(seed, Power::CanBeCut), "a seed has one plan");
        let kinds = |of: fn(&Plan) -> &Vec<Step>| {
            let mut kinds: Vec<Kind> = of(&even).iter().chain(of(&odd)).map(|step| step.kind).collect();
            kinds.sort_unstable();
            kinds
        };
        assert_eq!(kinds(|plan| &plan.servers), OF_SERVERS);
        assert_eq!(kinds(|plan| &plan.links), OF_LINKS);
        let steps = || even.servers.iter().chain(&even.links);
        assert!(steps().all(|step| step.server != step.other && SERVERS.contains(&step.other)));
        let without = [seed, seed + 1].map(|seed| Plan::draw(seed, Power::Stays));
        let mut left_out = without.iter().flat_map(|plan| plan.left_out.clone()).collect::<Vec<_>>();
        left_out.sort_unstable();
        assert_eq!(left_out, ["power cut", "power cut of all"]);
        let made: usize = without.iter().map(Plan::count).sum();
        assert_eq!(made + left_out.len(), even.count() + odd.count(), "no power is cut");
    }
}

#[test]
fn six_seeds_in_a_row_have_all_wrong_clocks() {
    let steps = (6..12).flat_map(|seed| Plan::draw(seed, Power::CanBeCut).servers);
    let names: std::collections::BTreeSet<_> = steps.map(|step| step.name()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("clock")).count(), 6, "{names:?}");
}
