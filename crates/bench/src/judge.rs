//! The floors that a release must keep, and the aims.

use crate::measure::{QUIET_SYNCS, Round};

/// Which figures make a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judging {
    /// Those outside their bounds.
    Usual,
    /// Those, and those that could not be judged.
    Strict,
    /// None: it fails only if something cannot be measured.
    Shown,
}

/// One figure of one point, by the median of the rounds on a quiet machine.
struct Bound {
    what: &'static str,
    callers: usize,
    connections: usize,
    value: fn(&Round) -> f64,
    floor: f64,
    aim: Option<f64>,
    /// Whether more is better.
    more: bool,
}

const BOUNDS: [Bound; 4] = [
    Bound {
        what: "steps by echo",
        callers: 256,
        connections: 8,
        value: |round| round.ratio,
        floor: 0.30,
        aim: Some(0.50),
        more: true,
    },
    Bound {
        what: "syncs a step",
        callers: 64,
        connections: 8,
        value: |round| round.ours.gate.syncs_a_step,
        floor: 0.2,
        aim: None,
        more: false,
    },
    Bound {
        what: "p50 by one sync and one echo",
        callers: 1,
        connections: 1,
        value: |round| round.latency_ratio,
        floor: 2.5,
        aim: Some(1.6),
        more: false,
    },
    Bound {
        what: "server CPU of a conversation's command by a checkpoint's",
        callers: 64,
        connections: 8,
        value: |round| round.conversation_cpu().unwrap_or(f64::MAX),
        floor: 1.5,
        aim: None,
        more: false,
    },
];

/// What a bound came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The figure is on the right side of the floor.
    Reached,
    /// It is on the wrong side.
    Below,
    /// There is no figure of a quiet machine.
    NotJudged,
}

/// A bound, and what it came to.
type Judged = (&'static str, Outcome);

/// Prints for each bound whether it is kept. A bound that was not judged is printed as not judged; it does not fail the run.
///
/// # Errors
/// A figure is on the wrong side of its floor.
pub(crate) fn judge(rounds: &[Round]) -> anyhow::Result<()> {
    failed(&[below(&shown(rounds))])
}

/// The same, and a bound that was not judged is a failure.
///
/// # Errors
/// As of [`judge`]; a figure was not judged.
pub(crate) fn judge_strictly(rounds: &[Round]) -> anyhow::Result<()> {
    let judged = shown(rounds);
    failed(&[below(&judged), named("not judged", &judged, Outcome::NotJudged)])
}

fn shown(rounds: &[Round]) -> Vec<Judged> {
    println!();
    let show = |bound: &Bound| {
        let (line, outcome) = bound.verdict(rounds);
        println!("{line}");
        (bound.what, outcome)
    };
    BOUNDS.iter().map(show).collect()
}

fn below(judged: &[Judged]) -> Option<String> {
    named("below the floor", judged, Outcome::Below)
}

/// The bounds that came to this, after these words; `None` if there are none.
fn named(words: &str, judged: &[Judged], wanted: Outcome) -> Option<String> {
    let all: Vec<&str> =
        judged.iter().filter(|(_, outcome)| *outcome == wanted).map(|(what, _)| *what).collect();
    (!all.is_empty()).then(|| format!("{words}: {}", all.join(", ")))
}

/// Fails with these problems, if there are any.
fn failed(problems: &[Option<String>]) -> anyhow::Result<()> {
    let all: Vec<&str> = problems.iter().flatten().map(String::as_str).collect();
    anyhow::ensure!(all.is_empty(), "{}", all.join("; "));
    Ok(())
}

impl Bound {
    fn verdict(&self, rounds: &[Round]) -> (String, Outcome) {
        let Self { what, callers, connections, floor, aim, .. } = self;
        let point = format!("{what}, {callers} callers on {connections}");
        let here =
            rounds.iter().filter(|round| (round.callers, round.connections) == (*callers, *connections));
        let quiet = here.filter(|round| round.syncs_a_second >= QUIET_SYNCS);
        let mut values: Vec<f64> = quiet.map(self.value).collect();
        values.sort_by(f64::total_cmp);
        let Some(median) = values.get(values.len() / 2).copied() else {
            return (format!("{point}: not judged, no quiet round"), Outcome::NotJudged);
        };
        let reaches = |bound: f64| if self.more { median >= bound } else { median <= bound };
        let (outcome, word) = match (reaches(*floor), aim.is_some_and(reaches)) {
            (false, _) => (Outcome::Below, "BELOW THE FLOOR"),
            (true, true) => (Outcome::Reached, "the target is reached"),
            (true, false) => (Outcome::Reached, "the floor is reached"),
        };
        let aim = aim.map(|aim| format!(", target {aim:.2}")).unwrap_or_default();
        (format!("{point}: {median:.3} (floor {floor:.2}{aim}): {word}"), outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(callers: usize, connections: usize, value: f64, syncs_a_second: f64) -> Round {
        let mut round = Round::sample(callers, connections);
        round.ours.gate.syncs_a_step = value;
        Round { syncs_a_second, ratio: value, latency_ratio: value, ..round }
    }

    #[test]
    fn a_conversation_that_costs_too_much_fails() {
        let mut talk = round(64, 8, 0.2, QUIET_SYNCS);
        assert_eq!(talk.conversation_cpu(), Some(1.0));
        talk.ours.conversation.iter_mut().for_each(|cost| cost.figures.server_cpu_us_a_step = 1.6);
        assert!(judge(&[talk.clone()]).is_err());
        talk.ours.conversation = None;
        assert!(judge(&[talk]).is_err(), "a missing measurement must not count as a success");
    }

    #[test]
    fn the_median_of_the_quiet_rounds_is_judged() {
        let quiet = QUIET_SYNCS;
        assert!(
            judge(&[round(256, 8, 0.30, quiet), round(64, 8, 0.2, quiet), round(1, 1, 2.5, quiet)]).is_ok()
        );
        assert!(judge(&[round(256, 8, 0.29, quiet)]).is_err());
        assert!(judge(&[round(64, 8, 0.21, quiet)]).is_err());
        assert!(judge(&[round(1, 1, 2.6, quiet)]).is_err());
        // A round on a busy machine says nothing, and nor does another point.
        assert!(judge(&[round(256, 8, 0.1, quiet - 1.0), round(256, 1, 0.1, quiet)]).is_ok());
        let three = [0.1, 0.4, 0.5].map(|value| round(256, 8, value, quiet));
        assert!(judge(&three).is_ok());
    }

    #[test]
    fn a_strict_run_fails_for_what_was_not_judged() {
        let quiet = QUIET_SYNCS;
        let all = [round(256, 8, 0.30, quiet), round(64, 8, 0.2, quiet), round(1, 1, 2.5, quiet)];
        assert!(judge_strictly(&all).is_ok());
        let mut busy = all.clone();
        busy[1].syncs_a_second = quiet - 1.0;
        assert!(judge(&busy).is_ok());
        let cpu = BOUNDS[3].what;
        let error = judge_strictly(&busy).unwrap_err().to_string();
        assert_eq!(error, format!("not judged: syncs a step, {cpu}"));
        busy[0].ratio = 0.29;
        let error = judge_strictly(&busy).unwrap_err().to_string();
        assert_eq!(error, format!("below the floor: steps by echo; not judged: syncs a step, {cpu}"));
    }
}
