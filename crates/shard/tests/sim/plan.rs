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
    /// The clock of a server jumps ahead.
    ClockJump(u64),
    /// Servers lose their power while their disks stall and an election is under way; then the old leader of this group is
    /// elected by them.
    LostVotes(u64),
    /// The leader of a group stands still, and its monotonic clock with it, as on a machine that moves to another host.
    Pause(u64),
}

/// The kinds of faults, by their names.
pub(crate) const KINDS: [&str; 17] = [
    "isolate",
    "deaf",
    "mute",
    "shatter",
    "kill",
    "power cut",
    "power cut of all",
    "stall",
    "sync error",
    "transfer",
    "breaks",
    "repeats",
    "slow",
    "behind",
    "clock jump",
    "lost votes",
    "pause",
];

/// The kinds that a server alone cannot have.
const NEED_OTHERS: [&str; 10] =
    ["isolate", "deaf", "mute", "shatter", "transfer", "breaks", "repeats", "slow", "behind", "lost votes"];

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
            Self::SyncError(_) => "sync error",
            Self::Transfer(_) => "transfer",
            Self::Breaks => "breaks",
            Self::Repeats => "repeats",
            Self::Slow => "slow",
            Self::Behind(_) => "behind",
            Self::ClockJump(_) => "clock jump",
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
            "sync error" => (Self::SyncError(node), rng.between(300, 900)),
            "transfer" => (Self::Transfer(rng.between(0, groups - 1)), rng.between(200, 500)),
            "breaks" => (Self::Breaks, rng.between(500, 2_000)),
            "repeats" => (Self::Repeats, rng.between(500, 2_000)),
            "slow" => (Self::Slow, rng.between(500, 2_000)),
            "behind" => (Self::Behind(node), rng.between(700, 1_500)),
            "clock jump" => (Self::ClockJump(node), rng.between(100, 500)),
            "lost votes" => (Self::LostVotes(rng.between(0, groups - 1)), rng.between(900, 1_800)),
            "pause" => (Self::Pause(rng.between(0, groups - 1)), rng.between(600, 2_500)),
            other => panic!("no fault is called {other}"),
        }
    }
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

/// Draws faults of these kinds for about this long, milliseconds.
pub(crate) fn draw(rng: &mut Rng, kinds: &[&str], lasts: u64, servers: &[u64], groups: u64) -> Vec<Step> {
    let alone: Vec<&str> = kinds.iter().copied().filter(|kind| !NEED_OTHERS.contains(kind)).collect();
    let kinds = match servers {
        [_] if alone.is_empty() => &["power cut"],
        [_] => &alone[..],
        _ => kinds,
    };
    let (mut plan, mut passed) = (Vec::new(), 0);
    while passed < lasts {
        let (after, kind) = (rng.between(100, 900), *rng.pick(kinds));
        let (fault, lasts) = Fault::draw(kind, rng, servers, groups);
        passed += after + lasts;
        plan.push(Step { after, fault, lasts });
    }
    plan
}
