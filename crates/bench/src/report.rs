//! The figures for a person.

use crate::measure::{QUIET_SYNCS, Round};

/// Prints every block, and the ratios of every point with minimum, median and maximum.
pub(crate) fn print(rounds: &[Round]) {
    println!(
        "\n{:>5} {:>7} {:>5} | {:>8} | {:>9} {:>8} {:>8} | {:>9} {:>8} {:>8} | {:>7} {:>7} {:>7} | {:>6} {:>6}",
        "round",
        "callers",
        "conns",
        "syncs/s",
        "echo/s",
        "p50 ms",
        "p99 ms",
        "steps/s",
        "p50 ms",
        "p99 ms",
        "sync/st",
        "B/step",
        "st/entr",
        "ratio",
        "us/st"
    );
    for round in rounds {
        let busy = if round.syncs_a_second < QUIET_SYNCS { "*" } else { "" };
        let (gate, ours) = (&round.ours.gate, &round.ours.gate.figures);
        println!(
            "{:>5} {:>7} {:>5} | {:>8} | {:>9.0} {:>8.3} {:>8.3} | {:>9.0} {:>8.3} {:>8.3} | {:>7.3} {:>7.0} {:>7.1} | {:>6.2} {:>6.1}",
            round.round,
            round.callers,
            round.connections,
            format!("{:.0}{busy}", round.syncs_a_second),
            round.echo.steps_a_second,
            round.echo.p50_ms,
            round.echo.p99_ms,
            ours.steps_a_second,
            ours.p50_ms,
            ours.p99_ms,
            gate.syncs_a_step,
            gate.log_bytes_a_step,
            gate.steps_an_entry,
            round.ratio,
            ours.server_cpu_us_a_step
        );
    }
    println!("\n* fewer than {QUIET_SYNCS:.0} syncs a second: the machine is too busy to judge latency");
    println!(
        "\n{:>7} {:>5} | {:>22} | {:>28}",
        "callers", "conns", "steps by echo", "p50 by one sync and one echo"
    );
    let mut points: Vec<(usize, usize)> =
        rounds.iter().map(|round| (round.callers, round.connections)).collect();
    points.sort_unstable();
    points.dedup();
    for (callers, connections) in points {
        let of = |value: fn(&Round) -> f64| {
            let here =
                rounds.iter().filter(|round| (round.callers, round.connections) == (callers, connections));
            spread(here.map(value).collect())
        };
        println!(
            "{callers:>7} {connections:>5} | {:>22} | {:>28}",
            of(|round| round.ratio),
            of(|round| round.latency_ratio)
        );
    }
}

/// Minimum, median and maximum.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    format!("{:.2} / {:.2} / {:.2}", at(0), at(values.len() / 2), at(values.len().saturating_sub(1)))
}
