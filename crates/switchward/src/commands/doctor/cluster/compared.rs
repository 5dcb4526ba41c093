//! What the servers of a cluster must have in common, by their answers. Pure.

use jiff::Timestamp;
use switchward_gateway::proxy::RedisFacts;
use switchward_state::{Level, Levels};

use super::{Answer, Own};
use crate::commands::doctor::CheckResult;
use crate::commands::doctor::certificate::LEFT;
use crate::output::count;

/// A clock that differs by more from the median of all needs attention, milliseconds.
const CLOCK_WARN_MS: i64 = 1_000;
/// A server whose clock differs by more leads nothing, milliseconds.
const CLOCK_FAIL_MS: i64 = 2_000;

/// All checks: who answers, and what differs.
pub(super) fn all(own: &Own, answers: &[Answer], failed: &[(u64, String)]) -> Vec<CheckResult> {
    let mut found = peers(own, answers, failed);
    if answers.is_empty() {
        return found;
    }
    found.push(clocks(answers));
    found.push(levels(answers));
    found.push(certificates(answers));
    found.push(disks(answers));
    found.extend(own.keys.as_deref().map(|keys| key_rings(keys, answers)));
    found.extend(own.redis.as_ref().map(|redis| one_redis(redis, answers)));
    found
}

/// A line for each server that cannot be reached, and one for those that can.
fn peers(own: &Own, answers: &[Answer], failed: &[(u64, String)]) -> Vec<CheckResult> {
    let what = "peers";
    let unreachable = |(server, why): &(u64, String)| {
        let said = format!("server {server}: {why}");
        let advice = "a server that is down or cut off; if it runs, check its cluster.listen, its address and its certificate";
        CheckResult::fail(what, said, advice)
    };
    let mut found: Vec<CheckResult> = failed.iter().map(unreachable).collect();
    if !answers.is_empty() {
        let said = format!("{} and of the same cluster", reached(answers));
        found.push(CheckResult::ok(what, said));
    } else if own.peers.is_empty() {
        let advice = "name the other servers in cluster.peers, unless this is the only one";
        found.push(CheckResult::warn(what, "cluster.peers names no other server", advice));
    }
    found
}

fn reached(answers: &[Answer]) -> String {
    match answers {
        [one] => format!("server {} is reachable", one.server),
        several => format!("the servers {} are reachable", numbers(several.iter().map(|one| one.server))),
    }
}

fn numbers(servers: impl Iterator<Item = u64>) -> String {
    servers.map(|server| server.to_string()).collect::<Vec<_>>().join(", ")
}

/// Compares the clocks, this one included, with their median: with an even number of clocks, the lower of the two in the middle.
fn clocks(answers: &[Answer]) -> CheckResult {
    let what = "clocks";
    let mut offsets: Vec<i64> = answers.iter().map(|answer| answer.clock_ahead_ms).collect();
    offsets.push(0);
    offsets.sort_unstable();
    let median = offsets[(offsets.len() - 1) / 2];
    let others = answers.iter().map(|answer| (format!("server {}", answer.server), answer.clock_ahead_ms));
    let this = std::iter::once(("this machine".to_owned(), 0));
    let differ = this.chain(others).map(|(whose, ahead)| (whose, ahead.saturating_sub(median)));
    let differ: Vec<_> = differ.filter(|(_, ahead)| ahead.saturating_abs() > CLOCK_WARN_MS).collect();
    let largest = differ.iter().map(|(_, ahead)| ahead.saturating_abs()).max().unwrap_or(0);
    if differ.is_empty() {
        return CheckResult::ok(
            what,
            format!("{} differ by a second at most", count(offsets.len(), "clock")),
        );
    }
    let lines = differ.iter().map(|(whose, ahead)| format!("{whose} by {ahead:+} ms"));
    let said = format!("differ from the median: {}", lines.collect::<Vec<_>>().join(", "));
    if largest > CLOCK_FAIL_MS {
        return CheckResult::fail(
            what,
            said,
            "a server whose clock differs by more than two seconds leads nothing; use NTP",
        );
    }
    CheckResult::warn(
        what,
        said,
        "synchronise the machines with NTP; at more than two seconds a server leads nothing",
    )
}

/// Every server, this program included, must know and be able to write the level of the cluster.
fn levels(answers: &[Answer]) -> CheckResult {
    let what = "levels";
    let level = Level(answers.iter().map(|answer| answer.facts.level).max().unwrap_or(0));
    if level.0 == 0 {
        return CheckResult::warn(
            what,
            "no server knows the feature level yet",
            "run this again when the cluster is ready",
        );
    }
    let of = |answer: &Answer| Levels {
        lowest: Level(answer.facts.lowest_level),
        highest: Level(answer.facts.highest_level),
    };
    let others = answers.iter().map(|answer| (format!("server {}", answer.server), of(answer)));
    let this = std::iter::once(("this program".to_owned(), Levels::OF_PROGRAM));
    let all: Vec<(String, Levels)> = this.chain(others).collect();
    if let Some((whose, why)) =
        all.iter().find_map(|(whose, levels)| Some((whose, levels.check(level).err()?)))
    {
        return CheckResult::fail(
            what,
            format!("{whose}: {why}"),
            "a server that does not know the level cannot take part",
        );
    }
    let possible = all.iter().map(|(_, levels)| levels.highest).min().unwrap_or(level);
    if possible > level {
        let said = format!("the cluster writes level {level}, and all servers know level {possible}");
        return CheckResult::ok(
            what,
            format!("{said}; `switchward cluster level --raise` raises it for good"),
        );
    }
    CheckResult::ok(what, format!("the cluster writes level {level}, which all servers know"))
}

/// The certificates of the others, which are valid now: a server with any other one was not reached.
fn certificates(answers: &[Answer]) -> CheckResult {
    let what = "certificates";
    let soon = Timestamp::now() + LEFT;
    let day = |answer: &Answer| {
        let ms = i64::try_from(answer.facts.certificate_expire_ms?).ok()?;
        let at = Timestamp::from_millisecond(ms).ok().filter(|at| *at < soon)?;
        Some(format!("that of server {} ends on {}", answer.server, at.strftime("%Y-%m-%d")))
    };
    let ending: Vec<String> = answers.iter().filter_map(day).collect();
    if ending.is_empty() {
        return CheckResult::ok(
            what,
            "the certificates of the other servers are valid for two weeks and more",
        );
    }
    CheckResult::warn(what, ending.join(", "), "replace it in time; a new file is used without a restart")
}

/// The disks of the others; that of this server has checks of its own.
fn disks(answers: &[Answer]) -> CheckResult {
    let what = "disks";
    let low = answers.iter().filter(|answer| answer.facts.disk_low);
    let free = |answer: &Answer| match answer.facts.disk_free_bytes {
        Some(bytes) => format!("server {} has {} MiB free", answer.server, bytes >> 20),
        None => format!("the free space of server {} is unknown", answer.server),
    };
    let lines: Vec<String> = low.map(free).collect();
    if lines.is_empty() {
        return CheckResult::ok(what, answers.iter().map(free).collect::<Vec<_>>().join(", "));
    }
    let said = format!("calls that need space are refused: {}", lines.join(", "));
    CheckResult::fail(what, said, "free space on these servers")
}

/// Servers whose rings have other keys refuse each other.
fn key_rings(own: &str, answers: &[Answer]) -> CheckResult {
    let what = "rings";
    let other = answers.iter().filter(|answer| answer.facts.keys != own).map(|answer| answer.server);
    let other: Vec<u64> = other.collect();
    if other.is_empty() {
        return CheckResult::ok(what, "the key ring has the same keys as that of the other servers");
    }
    let said =
        format!("the key rings of server {} have other keys than this one", numbers(other.into_iter()));
    CheckResult::fail(
        what,
        said,
        "these servers refuse each other; give all the same key ring (`switchward secrets`)",
    )
}

/// All servers need one Redis, and the same names in it.
fn one_redis(own: &RedisFacts, answers: &[Answer]) -> CheckResult {
    let what = "shared-redis";
    let failed = answers.iter().filter_map(|answer| match &answer.facts.redis {
        RedisFacts::Failed { why } => Some(format!("server {} cannot reach its Redis: {why}", answer.server)),
        RedisFacts::None | RedisFacts::Reached { .. } => None,
    });
    let failed: Vec<String> = failed.collect();
    if !failed.is_empty() {
        return CheckResult::fail(
            what,
            failed.join("; "),
            "what these servers send waits until they reach Redis",
        );
    }
    if matches!(own, RedisFacts::Failed { .. }) {
        // The check of Redis itself says why.
        return CheckResult::warn(
            what,
            "this server does not reach its Redis, so it is not compared",
            "see the check redis",
        );
    }
    let other: Vec<u64> =
        answers.iter().filter(|answer| answer.facts.redis != *own).map(|answer| answer.server).collect();
    if !other.is_empty() {
        let said = format!(
            "server {} has another Redis than this server, none, or another prefix",
            numbers(other.into_iter())
        );
        return CheckResult::fail(what, said, "use the same table [redis] on all servers");
    }
    match own {
        RedisFacts::None => {
            CheckResult::ok(what, "no server has one; each delivers what its own shards send")
        }
        RedisFacts::Reached { .. } | RedisFacts::Failed { .. } => {
            CheckResult::ok(what, "all servers use the same Redis")
        }
    }
}
