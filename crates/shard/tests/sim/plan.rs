//! The faults of a run: which, when and for how long, drawn from its seed.

use switchward_testkit::Rng;

use crate::network::Blocked;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A server is cut off from all others.
    Isolate(u64, Blocked),
    /// A server receives nothing.
    Deaf(u64),
    /// What a server sends vanishes.
    Mute(u64),
    /// All servers are cut off from each other.
    Shatter(Blocked),
    /// The process of a server is killed.
    Kill(u64),
    /// A server loses its power.
    PowerCut(u64),
    /// All servers lose their power at once.
    PowerCutOfAll,
    /// The disk of a server answers late.
    Stall(u64),
    /// The disks of all servers but this one hold back what they write, for longer than callers wait for an entry.
    StallOfMost(u64),
    /// A write to the disk of a server fails.
    SyncError(u64),
    /// The leader of a group hands over.
    Transfer(u64),
    /// Connections break.
    Breaks,
    /// Messages arrive twice.
    Repeats,
    /// Messages are late.
    Slow,
    /// A server is cut off until the others have purged what it lacks.
    Behind(u64),
    /// The clock of a server's machine is set while it runs, to the right time plus these milliseconds, and then set right.
    ClockSet(u64, i64),
    /// The same, until the server believes it.
    ClockBelieved(u64, i64),
    /// A server starts on a machine whose clock is wrong by these milliseconds.
    ClockAtStart(u64, i64),
    /// Servers lose their power while their disks stall and an election is under way; then the old leader of this group is
    /// elected by them.
    LostVotes(u64),
    /// The leader of a group stands still, and its monotonic clock with it, as on a machine that moves to another host.
    Pause(u64),
}

const CLOCK_SET: &str = "clock set";
const CLOCK_BELIEVED: &str = "clock believed";
const CLOCK_AT_START: &str = "clock at start";

/// The kinds of faults, by their names.
pub(crate) const KINDS: [&str; 20] = [
    "isolate",
    "deaf",
    "mute",
    "shatter",
    "kill",
    "power cut",
    "power cut of all",
    "stall",
    "stall of most",
    "sync error",
    "transfer",
    "breaks",
    "repeats",
    "slow",
    "behind",
    CLOCK_SET,
    CLOCK_BELIEVED,
    CLOCK_AT_START,
    "lost votes",
    "pause",
];

/// The kinds that a server alone cannot have.
const NEED_OTHERS: [&str; 13] = [
    "isolate",
    "deaf",
    "mute",
    "shatter",
    "stall of most",
    "transfer",
    "breaks",
    "repeats",
    "slow",
    "behind",
    "lost votes",
    CLOCK_BELIEVED,
    CLOCK_AT_START,
];

impl Fault {
    /// The name of its kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Isolate(..) => "isolate",
            Self::Deaf(_) => "deaf",
            Self::Mute(_) => "mute",
            Self::Shatter(_) => "shatter",
            Self::Kill(_) => "kill",
            Self::PowerCut(_) => "power cut",
            Self::PowerCutOfAll => "power cut of all",
            Self::Stall(_) => "stall",
            Self::StallOfMost(_) => "stall of most",
            Self::SyncError(_) => "sync error",
            Self::Transfer(_) => "transfer",
            Self::Breaks => "breaks",
            Self::Repeats => "repeats",
            Self::Slow => "slow",
            Self::Behind(_) => "behind",
            Self::ClockSet(..) => CLOCK_SET,
            Self::ClockBelieved(..) => CLOCK_BELIEVED,
            Self::ClockAtStart(..) => CLOCK_AT_START,
            Self::LostVotes(_) => "lost votes",
            Self::Pause(_) => "pause",
        }
    }

    /// Draws a fault of a kind, and how long it lasts, milliseconds.
    fn draw(kind: &str, rng: &mut Rng, servers: &[u64], groups: u64) -> (Self, u64) {
        let node = *rng.pick(servers);
        let how = if rng.once_in(2) { Blocked::Noticed } else { Blocked::Silent };
        match kind {
            "isolate" => (Self::Isolate(node, how), rng.between(500, 2_500)),
            "deaf" => (Self::Deaf(node), rng.between(500, 2_500)),
            "mute" => (Self::Mute(node), rng.between(500, 2_500)),
            "shatter" => (Self::Shatter(how), rng.between(300, 2_600)),
            "kill" => (Self::Kill(node), rng.between(20, 1_200)),
            "power cut" => (Self::PowerCut(node), rng.between(20, 1_200)),
            "power cut of all" => (Self::PowerCutOfAll, rng.between(20, 400)),
            "stall" => (Self::Stall(node), rng.between(400, 2_600)),
            "stall of most" => (Self::StallOfMost(node), rng.between(2_300, 3_800)),
            "sync error" => (Self::SyncError(node), rng.between(300, 900)),
            "transfer" => (Self::Transfer(rng.between(0, groups - 1)), rng.between(200, 500)),
            "breaks" => (Self::Breaks, rng.between(500, 2_000)),
            "repeats" => (Self::Repeats, rng.between(500, 2_000)),
            "slow" => (Self::Slow, rng.between(500, 2_000)),
            "behind" => (Self::Behind(node), rng.between(700, 1_500)),
            CLOCK_SET => (Self::ClockSet(node, wrong_by(rng)), rng.between(700, 3_000)),
            CLOCK_BELIEVED => (Self::ClockBelieved(node, wrong_by(rng)), rng.between(500, 2_000)),
            CLOCK_AT_START => (Self::ClockAtStart(node, wrong_by(rng)), rng.between(500, 3_000)),
            "lost votes" => (Self::LostVotes(rng.between(0, groups - 1)), rng.between(900, 1_800)),
            "pause" => (Self::Pause(rng.between(0, groups - 1)), rng.between(600, 2_500)),
            other => panic!("no fault is called {other}"),
        }
    }
}

/// Draws how far a clock is ahead or behind, milliseconds: seconds, but more than servers overlook; minutes; an hour; ten years.
fn wrong_by(rng: &mut Rng) -> i64 {
    const HOUR: u64 = 3_600_000;
    let by = match rng.below(4) {
        0 => rng.between(3_000, 20_000),
        1 => rng.between(60_000, 600_000),
        2 => HOUR,
        _ => 10 * 365 * 24 * HOUR,
    };
    let by = i64::try_from(by).unwrap();
    if rng.once_in(2) { -by } else { by }
}

/// A fault that is planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// The pause before it, milliseconds.
    pub(crate) after: u64,
    pub(crate) fault: Fault,
    /// How long it lasts, milliseconds.
    pub(crate) lasts: u64,
}

/// Draws the kinds of faults of a run. Each run has only some, so that none hides what another would show.
pub(crate) fn kinds(rng: &mut Rng) -> Vec<&'static str> {
    (0..rng.between(3, 6)).map(|_| *rng.pick(&KINDS)).collect()
}

/// Draws faults of these kinds for about this long, milliseconds. A kind that is possible once in a run is removed from them
/// when it is drawn.
pub(crate) fn draw(
    rng: &mut Rng,
    kinds: &mut Vec<&'static str>,
    lasts: u64,
    servers: &[u64],
    groups: u64,
) -> Vec<Step> {
    let (mut plan, mut passed) = (Vec::new(), 0);
    while passed < lasts {
        let is_possible = |kind: &&&str| servers.len() > 1 || !NEED_OTHERS.contains(*kind);
        let possible: Vec<&str> = kinds.iter().filter(is_possible).copied().collect();
        let after = rng.between(100, 900);
        let kind = if possible.is_empty() { "power cut" } else { *rng.pick(&possible) };
        if kind == CLOCK_BELIEVED {
            // More than a quarter of an hour passes meanwhile: two or three would end the hour of the limits.
            kinds.retain(|left| *left != CLOCK_BELIEVED);
        }
        let (fault, lasts) = Fault::draw(kind, rng, servers, groups);
        passed += after + lasts;
        plan.push(Step { after, fault, lasts });
    }
    plan
}
