//! What the servers of a cluster must have in common, by their answers. Pure.

use jiff::Timestamp;
use switchward_gateway::proxy::RedisFacts;
use switchward_messages::cli::doctor::{certificate as certificate_texts, shared as texts};
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
    found.push(clocks(answers, failed.len()));
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
        CheckResult::fail(what, texts::unreachable(*server, why), texts::CHECK_PEER)
    };
    let mut found: Vec<CheckResult> = failed.iter().map(unreachable).collect();
    if !answers.is_empty() {
        let servers: Vec<u64> = answers.iter().map(|one| one.server).collect();
        found.push(CheckResult::ok(what, texts::reachable(&servers)));
    } else if own.peers.is_empty() {
        found.push(CheckResult::warn(what, texts::NO_PEERS, texts::NAME_PEERS));
    }
    found
}

/// Compares the clocks, this one included, with their median: with an even number of clocks, the lower of the two in the middle.
/// There are `unknown` further clocks, of servers that do not answer.
fn clocks(answers: &[Answer], unknown: usize) -> CheckResult {
    let what = "clocks";
    let mut offsets: Vec<i64> = answers.iter().map(|answer| answer.clock_ahead_ms).collect();
    offsets.push(0);
    offsets.sort_unstable();
    let median = offsets[(offsets.len() - 1) / 2];
    let others = answers.iter().map(|answer| (texts::server(answer.server), answer.clock_ahead_ms));
    let this = std::iter::once((texts::THIS_MACHINE.to_owned(), 0));
    let differ = this.chain(others).map(|(whose, ahead)| (whose, ahead.saturating_sub(median)));
    let differ: Vec<_> = differ.filter(|(_, ahead)| ahead.saturating_abs() > CLOCK_WARN_MS).collect();
    let largest = differ.iter().map(|(_, ahead)| ahead.saturating_abs()).max().unwrap_or(0);
    if differ.is_empty() {
        return CheckResult::ok(what, texts::clocks_agree(&count(offsets.len(), "clock")));
    }
    let lines: Vec<String> = differ.iter().map(|(whose, ahead)| texts::clock_ahead(whose, *ahead)).collect();
    let said = texts::clocks_differ(&lines);
    if largest <= CLOCK_FAIL_MS {
        return CheckResult::warn(what, said, texts::SYNCHRONISE_MACHINES);
    }
    let advice = if are_undecided(&offsets, unknown) { texts::NO_MEDIAN } else { texts::USE_NTP };
    CheckResult::fail(what, said, advice)
}

/// Returns true if no majority of all clocks says which of these, in order, are right: up to half of all may be wrong. The servers
/// judge so, too.
fn are_undecided(offsets: &[i64], unknown: usize) -> bool {
    let wrong = (offsets.len() + unknown) / 2;
    let low = offsets.len().checked_sub(wrong + 1).and_then(|at| offsets.get(at));
    let (Some(low), Some(high)) = (low, offsets.get(wrong)) else { return true };
    high.saturating_sub(*low) > CLOCK_FAIL_MS
}

/// Every server, this program included, must know and be able to write the level of the cluster.
fn levels(answers: &[Answer]) -> CheckResult {
    let what = "levels";
    let level = Level(answers.iter().map(|answer| answer.facts.level).max().unwrap_or(0));
    if level.0 == 0 {
        return CheckResult::warn(what, texts::NO_LEVEL, texts::RUN_AGAIN);
    }
    let of = |answer: &Answer| Levels {
        lowest: Level(answer.facts.lowest_level),
        highest: Level(answer.facts.highest_level),
    };
    let others = answers.iter().map(|answer| (texts::server(answer.server), of(answer)));
    let this = std::iter::once((texts::THIS_PROGRAM.to_owned(), Levels::OF_PROGRAM));
    let all: Vec<(String, Levels)> = this.chain(others).collect();
    if let Some((whose, why)) =
        all.iter().find_map(|(whose, levels)| Some((whose, levels.check(level).err()?)))
    {
        return CheckResult::fail(what, texts::wrong_level(whose, &why), texts::UNKNOWN_LEVEL);
    }
    let possible = all.iter().map(|(_, levels)| levels.highest).min().unwrap_or(level);
    if possible > level {
        return CheckResult::ok(what, texts::level_can_be_raised(&level, &possible));
    }
    CheckResult::ok(what, texts::level_known(&level))
}

/// The certificates of the others, which are valid now: a server with any other one was not reached.
fn certificates(answers: &[Answer]) -> CheckResult {
    let what = "certificates";
    let soon = Timestamp::now() + LEFT;
    let day = |answer: &Answer| {
        let ms = i64::try_from(answer.facts.certificate_expire_ms?).ok()?;
        let at = Timestamp::from_millisecond(ms).ok().filter(|at| *at < soon)?;
        Some(texts::certificate_ends(answer.server, &at.strftime("%Y-%m-%d").to_string()))
    };
    let ending: Vec<String> = answers.iter().filter_map(day).collect();
    if ending.is_empty() {
        return CheckResult::ok(what, texts::CERTIFICATES_VALID);
    }
    CheckResult::warn(what, ending.join(", "), certificate_texts::REPLACE_SOON)
}

/// The disks of the others; that of this server has checks of its own.
fn disks(answers: &[Answer]) -> CheckResult {
    let what = "disks";
    let low = answers.iter().filter(|answer| answer.facts.disk_low);
    let free = |answer: &Answer| match answer.facts.disk_free_bytes {
        Some(bytes) => texts::free_space(answer.server, bytes >> 20),
        None => texts::unknown_space(answer.server),
    };
    let lines: Vec<String> = low.map(free).collect();
    if lines.is_empty() {
        return CheckResult::ok(what, answers.iter().map(free).collect::<Vec<_>>().join(", "));
    }
    CheckResult::fail(what, texts::disks_low(&lines), texts::FREE_SPACE)
}

/// Servers whose rings have other keys refuse each other.
fn key_rings(own: &str, answers: &[Answer]) -> CheckResult {
    let what = "rings";
    let other = answers.iter().filter(|answer| answer.facts.keys != own).map(|answer| answer.server);
    let other: Vec<u64> = other.collect();
    if other.is_empty() {
        return CheckResult::ok(what, texts::SAME_KEYS);
    }
    CheckResult::fail(what, texts::other_keys(&other), texts::USE_SAME_KEYS)
}

/// All servers need one Redis, and the same names in it.
fn one_redis(own: &RedisFacts, answers: &[Answer]) -> CheckResult {
    let what = "shared-redis";
    let failed = answers.iter().filter_map(|answer| match &answer.facts.redis {
        RedisFacts::Failed { why } => Some(texts::redis_unreachable(answer.server, why)),
        RedisFacts::None | RedisFacts::Reached { .. } => None,
    });
    let failed: Vec<String> = failed.collect();
    if !failed.is_empty() {
        return CheckResult::fail(what, failed.join("; "), texts::DELIVERIES_WAIT);
    }
    if matches!(own, RedisFacts::Failed { .. }) {
        // The check of Redis itself says why.
        return CheckResult::warn(what, texts::REDIS_NOT_COMPARED, texts::SEE_CHECK_OF_REDIS);
    }
    let other: Vec<u64> =
        answers.iter().filter(|answer| answer.facts.redis != *own).map(|answer| answer.server).collect();
    if !other.is_empty() {
        return CheckResult::fail(what, texts::other_redis(&other), texts::USE_SAME_REDIS);
    }
    match own {
        RedisFacts::None => CheckResult::ok(what, texts::NO_REDIS),
        RedisFacts::Reached { .. } | RedisFacts::Failed { .. } => CheckResult::ok(what, texts::SAME_REDIS),
    }
}
