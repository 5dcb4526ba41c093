//! What a change costs: the figures of the server by those of another build, which was measured in turns with it.

use crate::measure::{Cost, Product, Round};

/// The largest median ratio of a figure; above 1 the server is worse than the other build.
const RATIO_MAX: f64 = 1.05;

/// One figure of a block.
struct Figure {
    what: &'static str,
    unit: &'static str,
    value: fn(&Cost) -> f64,
    /// Whether more is better.
    more: bool,
}

const FIGURES: [Figure; 6] = [
    Figure { what: "steps a second", unit: "", value: |cost| cost.figures.steps_a_second, more: true },
    Figure { what: "p50", unit: "ms", value: |cost| cost.figures.p50_ms, more: false },
    Figure {
        what: "server CPU a step",
        unit: "us",
        value: |cost| cost.figures.server_cpu_us_a_step,
        more: false,
    },
    Figure { what: "syncs a step", unit: "", value: |cost| cost.syncs_a_step, more: false },
    Figure { what: "log bytes a step", unit: "B", value: |cost| cost.log_bytes_a_step, more: false },
    Figure { what: "server memory", unit: "MiB", value: |cost| cost.figures.server_memory_mib, more: false },
];

/// What the callers did in a block.
struct Calls {
    what: &'static str,
    /// `None` if they did not do it at that point.
    cost: fn(&Product) -> Option<Cost>,
}

const CALLS: [Calls; 2] = [
    Calls { what: "gate", cost: |product| Some(product.gate) },
    Calls { what: "conversation", cost: |product| product.conversation },
];

/// Both builds in one round.
struct Pair {
    ours: Cost,
    beside: Cost,
}

/// The least, the median and the largest of the values of all rounds; `NaN` of none.
#[derive(Debug, Clone, Copy)]
struct Spread {
    least: f64,
    /// Of an even number of values, the mean of the two in the middle.
    median: f64,
    most: f64,
}

/// A figure of both builds at one point.
#[derive(Debug)]
struct Row {
    callers: usize,
    connections: usize,
    calls: &'static str,
    what: &'static str,
    unit: &'static str,
    /// The median of the rounds.
    ours: f64,
    /// The median of the rounds.
    beside: f64,
    /// Of both builds in the same round; above 1 ours is worse.
    ratio: Spread,
}

/// Prints the figures of both builds, and judges each ratio by its median over all rounds, also on a busy machine: both
/// builds had the same one.
///
/// # Errors
/// A figure is worse than that of the other build by more than [`RATIO_MAX`], or no other build was measured.
pub(crate) fn judge(rounds: &[Round]) -> anyhow::Result<()> {
    let rows = rows(rounds);
    anyhow::ensure!(!rows.is_empty(), "no other build was measured");
    print(&rows);
    let not_kept: Vec<String> = rows.iter().filter(|row| !row.keeps()).map(Row::name).collect();
    anyhow::ensure!(not_kept.is_empty(), "worse than the other build: {}", not_kept.join("; "));
    Ok(())
}

/// The figures of each point, by callers and connections; those of conversations after those of the deploy gate.
fn rows(rounds: &[Round]) -> Vec<Row> {
    let mut points: Vec<(usize, usize)> =
        rounds.iter().map(|round| (round.callers, round.connections)).collect();
    points.sort_unstable();
    points.dedup();
    let mut rows = Vec::new();
    for (callers, connections) in points {
        for calls in &CALLS {
            let here =
                rounds.iter().filter(|round| (round.callers, round.connections) == (callers, connections));
            let pairs: Vec<Pair> = here.filter_map(|round| calls.pair(round)).collect();
            if pairs.is_empty() {
                continue;
            }
            rows.extend(FIGURES.iter().map(|figure| Row {
                callers,
                connections,
                calls: calls.what,
                what: figure.what,
                unit: figure.unit,
                ours: Spread::of(pairs.iter().map(|pair| (figure.value)(&pair.ours))).median,
                beside: Spread::of(pairs.iter().map(|pair| (figure.value)(&pair.beside))).median,
                ratio: Spread::of(pairs.iter().map(|pair| figure.ratio(pair))),
            }));
        }
    }
    rows
}

fn print(rows: &[Row]) {
    println!(
        "\n{:>7} {:>5} {:<12} {:<17} | {:>10} {:>10} {:<3} | {:>21} | at most {RATIO_MAX:.2}",
        "callers", "conns", "calls", "figure", "server", "beside", "", "ratio"
    );
    for row in rows {
        println!(
            "{:>7} {:>5} {:<12} {:<17} | {:>10} {:>10} {:<3} | {:>21} | {}",
            row.callers,
            row.connections,
            row.calls,
            row.what,
            number(row.ours),
            number(row.beside),
            row.unit,
            format!("{:.3} / {:.3} / {:.3}", row.ratio.least, row.ratio.median, row.ratio.most),
            row.verdict()
        );
    }
    println!(
        "\nratio: of both in one round, least / median / most; above 1 the server is worse than the one beside it"
    );
    println!("noise: the ratios differ from each other by more than their median differs from 1");
}

/// A number with three digits behind the point, or none if it is large.
fn number(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

impl Calls {
    /// `None` if the round has no other build, or none of these calls.
    fn pair(&self, round: &Round) -> Option<Pair> {
        let (ours, beside) = ((self.cost)(&round.ours)?, (self.cost)(&round.beside?)?);
        Some(Pair { ours, beside })
    }
}

impl Figure {
    /// How many times worse ours is.
    fn ratio(&self, pair: &Pair) -> f64 {
        let (ours, beside) = ((self.value)(&pair.ours), (self.value)(&pair.beside));
        if self.more { beside / ours } else { ours / beside }
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self { least: at(0), median: at(last / 2).midpoint(at(sorted.len() / 2)), most: at(last) }
    }
}

impl Row {
    fn keeps(&self) -> bool {
        self.ratio.median <= RATIO_MAX
    }

    fn is_noise(&self) -> bool {
        self.ratio.most - self.ratio.least > (self.ratio.median - 1.0).abs()
    }

    /// `noise` does not change how the row is judged.
    fn verdict(&self) -> String {
        let word = if self.keeps() { "kept" } else { "NOT KEPT" };
        format!("{word}{}", if self.is_noise() { ", noise" } else { "" })
    }

    fn name(&self) -> String {
        let Self { callers, connections, calls, what, .. } = self;
        format!("{what} ({calls}), {callers} callers on {connections}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round whose steps need this much of the log by the other build, of which all figures are 1.
    fn round(callers: usize, bytes: f64) -> Round {
        let mut round = Round::sample(callers, 8);
        round.beside = Some(round.ours);
        round.ours.gate.log_bytes_a_step = bytes;
        round
    }

    fn verdict(ratios: &[f64]) -> String {
        let rounds: Vec<Round> = ratios.iter().map(|ratio| round(64, *ratio)).collect();
        let row = rows(&rounds).into_iter().find(|row| row.calls == "gate" && row.what == "log bytes a step");
        row.expect("the figure has a row").verdict()
    }

    #[test]
    fn the_median_ratio_is_judged_and_noise_is_only_a_word() {
        assert_eq!(verdict(&[RATIO_MAX, RATIO_MAX, RATIO_MAX]), "kept");
        assert_eq!(verdict(&[1.06, 1.06, 1.06]), "NOT KEPT");
        assert_eq!(verdict(&[1.02, 1.04, 1.05]), "kept");
        assert_eq!(verdict(&[1.0, 1.01, 1.3]), "kept, noise");
        assert_eq!(verdict(&[0.9, 1.06, 1.07]), "NOT KEPT, noise");
        assert_eq!(verdict(&[0.5, 0.5, 9.0]), "kept, noise");
        assert_eq!(verdict(&[0.5, 0.5, 0.6]), "kept");
        assert_eq!(verdict(&[f64::NAN]), "NOT KEPT", "a ratio that is no number must not count as a success");
    }

    #[test]
    fn ratios_are_of_one_round_and_not_of_the_medians() {
        // In each round both builds are as fast as the machine is at that time, and ours is a tenth worse.
        let rounds = [1.0, 8.0, 2.0].map(|bytes| {
            let mut round = round(64, bytes * 1.1);
            round.beside.iter_mut().for_each(|beside| beside.gate.log_bytes_a_step = bytes);
            round
        });
        let rows = rows(&rounds);
        let row = rows.iter().find(|row| row.what == "log bytes a step").expect("the figure has a row");
        assert_eq!((number(row.ours), number(row.beside)), ("2.200".to_owned(), "2.000".to_owned()));
        assert_eq!([row.ratio.least, row.ratio.median, row.ratio.most].map(number), ["1.100"; 3]);
        assert_eq!(row.verdict(), "NOT KEPT");
    }

    #[test]
    fn fewer_steps_a_second_are_worse_and_more_are_better() {
        let mut slower = round(64, 1.0);
        slower.ours.gate.figures.steps_a_second = 0.9;
        let error = judge(&[slower]).expect_err("it has fewer steps").to_string();
        assert_eq!(error, "worse than the other build: steps a second (gate), 64 callers on 8");
        let mut faster = round(64, 1.0);
        faster.ours.gate.figures.steps_a_second = 1.2;
        assert!(judge(&[faster]).is_ok());
    }

    #[test]
    fn each_point_and_the_conversations_have_their_own_rows() {
        let mut other = round(1, 1.0);
        other.ours.conversation = None;
        let mut talks = round(64, 2.0);
        talks.ours.conversation.iter_mut().for_each(|cost| cost.syncs_a_step = 1.1);
        let rounds = [talks, other];
        let rows = rows(&rounds);
        let of =
            |callers, calls| rows.iter().filter(|row| (row.callers, row.calls) == (callers, calls)).count();
        let counts = [of(1, "gate"), of(1, "conversation"), of(64, "gate"), of(64, "conversation")];
        assert_eq!(counts, [FIGURES.len(), 0, FIGURES.len(), FIGURES.len()]);
        assert_eq!(
            judge(&rounds).expect_err("two figures are worse").to_string(),
            "worse than the other build: log bytes a step (gate), 64 callers on 8; \
             syncs a step (conversation), 64 callers on 8"
        );
    }

    #[test]
    fn a_run_without_another_build_is_no_success() {
        assert!(judge(&[Round::sample(64, 8)]).is_err());
        assert!(judge(&[]).is_err());
    }

    #[test]
    fn a_spread_has_the_median_of_any_number_of_values() {
        let spread = |values: &[f64]| {
            let Spread { least, median, most } = Spread::of(values.iter().copied());
            [least, median, most]
        };
        assert_eq!(spread(&[3.0, 1.0, 2.0]), [1.0, 2.0, 3.0]);
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), [1.0, 2.5, 4.0]);
        assert_eq!(spread(&[7.0]), [7.0; 3]);
        assert!(spread(&[]).iter().all(|value| value.is_nan()));
    }
}
