//! The figures of a cluster for a person, and whether each is within its bound.

use serde::Serialize;

/// How a figure is judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub(super) enum Bound {
    /// The figure must not be smaller.
    AtLeast(f64),
    /// The figure must not be larger.
    AtMost(f64),
    /// More than this.
    Above(f64),
    /// It is shown beside others.
    Shown,
}

impl Bound {
    fn keeps(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Above(other) => value > other,
            Self::Shown => true,
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::AtLeast(least) => format!("at least {}", number(least)),
            Self::AtMost(most) => format!("at most {}", number(most)),
            Self::Above(other) => format!("above {}", number(other)),
            Self::Shown => String::new(),
        }
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    what: String,
    /// `None` if it could not be measured.
    value: Option<f64>,
    unit: &'static str,
    bound: Bound,
    /// Why there is no value; empty if there is one.
    note: String,
    /// Whether the figure is within its bound; `None` for a row without a figure.
    kept: Option<bool>,
}

/// All figures, in order.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a figure.
    pub(super) fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str, bound: Bound) {
        let (value, kept, note) = (Some(value), Some(bound.keeps(value)), String::new());
        self.rows.push(Row { what: what.into(), value, unit, bound, note, kept });
    }

    /// Adds a row without a value, for what could not be measured for the reason `why`. Only
    /// [`judge_strictly`](Self::judge_strictly) counts it as failed.
    pub(super) fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.absent(what, why, None);
    }

    /// Adds what failed.
    pub(super) fn fail(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.absent(what, why, Some(false));
    }

    fn absent(&mut self, what: impl Into<String>, why: impl Into<String>, kept: Option<bool>) {
        let (what, note) = (what.into(), why.into());
        self.rows.push(Row { what, value: None, unit: "", bound: Bound::Shown, note, kept });
    }

    /// Prints all figures.
    pub(super) fn print(&self) {
        println!("\n{:<58} {:>12} {:<14} {:<18}", "figure", "value", "unit", "bound");
        for row in &self.rows {
            let value = row.value.map_or_else(|| "-".to_owned(), number);
            let verdict = match (row.bound, row.kept) {
                (_, Some(false)) => "NOT KEPT",
                (_, None) => "not judged:",
                (Bound::Shown, Some(true)) => "",
                (Bound::AtLeast(_) | Bound::AtMost(_) | Bound::Above(_), Some(true)) => "kept",
            };
            let line = format!(
                "{:<58} {value:>12} {:<14} {:<18} {verdict} {}",
                row.what,
                row.unit,
                row.bound.in_words(),
                row.note
            );
            println!("{}", line.trim_end());
        }
    }

    /// # Errors
    /// A figure is not within its bound.
    pub(super) fn judge(&self) -> anyhow::Result<()> {
        let not_kept = self.not_kept();
        anyhow::ensure!(not_kept.is_empty(), "not kept: {}", not_kept.join("; "));
        Ok(())
    }

    /// # Errors
    /// A figure is not within its bound, or was not judged.
    pub(super) fn judge_strictly(&self) -> anyhow::Result<()> {
        let skipped = self.rows.iter().filter(|row| row.kept.is_none());
        let not_judged: Vec<String> = skipped.map(|row| format!("{} ({})", row.what, row.note)).collect();
        if not_judged.is_empty() {
            return self.judge();
        }
        let (not_judged, not_kept) = (not_judged.join("; "), self.not_kept());
        anyhow::ensure!(not_kept.is_empty(), "not kept: {}; not judged: {not_judged}", not_kept.join("; "));
        anyhow::bail!("not judged: {not_judged}")
    }

    /// Judges no figure.
    ///
    /// # Errors
    /// A part of the run [failed](Self::fail) and has no figure.
    pub(super) fn judge_none(&self) -> anyhow::Result<()> {
        let failed = self.rows.iter().filter(|row| row.value.is_none() && row.kept == Some(false));
        let failed: Vec<String> = failed.map(|row| format!("{} ({})", row.what, row.note)).collect();
        anyhow::ensure!(failed.is_empty(), "not measured: {}", failed.join("; "));
        Ok(())
    }

    fn not_kept(&self) -> Vec<&str> {
        self.rows.iter().filter(|row| row.kept == Some(false)).map(|row| row.what.as_str()).collect()
    }
}

/// A number with three digits behind the point, or none if it is large.
fn number(value: f64) -> String {
    if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// The median; `NaN` of none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The largest; negative infinity of none.
pub(super) fn worst(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_outside_its_bound_fails_and_is_named() {
        let mut table = Table::default();
        table.add("a", 0.5, "", Bound::AtLeast(0.5));
        table.add("b", 1.5, "s", Bound::AtMost(1.5));
        table.add("c", 2.0, "", Bound::Above(1.0));
        table.add("d", 9.0, "", Bound::Shown);
        table.skip("e", "not installed");
        assert!(table.judge().is_ok());
        table.add("f", 1.0, "", Bound::Above(1.0));
        table.add("g", f64::NAN, "", Bound::AtLeast(0.0));
        table.fail("h", "it ended");
        assert_eq!(table.judge().unwrap_err().to_string(), "not kept: f; g; h");
    }

    #[test]
    fn a_figure_that_was_not_judged_fails_a_strict_run_and_its_reason_is_named() {
        let mut table = Table::default();
        table.add("a", 9.0, "", Bound::Shown);
        assert!(table.judge_strictly().is_ok());
        table.skip("b", "no quiet round");
        assert!(table.judge().is_ok());
        assert_eq!(table.judge_strictly().unwrap_err().to_string(), "not judged: b (no quiet round)");
        assert_eq!(serde_json::to_value(&table).unwrap()[1]["kept"], serde_json::Value::Null);
        table.fail("c", "it ended");
        table.skip("d", "not installed");
        assert_eq!(table.judge().unwrap_err().to_string(), "not kept: c");
        let strict = table.judge_strictly().unwrap_err().to_string();
        assert_eq!(strict, "not kept: c; not judged: b (no quiet round); d (not installed)");
    }

    #[test]
    fn a_run_that_judges_nothing_fails_only_for_what_failed() {
        let mut table = Table::default();
        table.add("a", 0.1, "", Bound::AtLeast(0.5));
        table.skip("b", "not installed");
        assert!(table.judge_none().is_ok());
        table.fail("c", "it ended");
        assert_eq!(table.judge_none().unwrap_err().to_string(), "not measured: c (it ended)");
    }

    #[test]
    fn medians_and_maxima_are_of_all_values() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), worst(&[3.0, 1.0, 2.0])), (2.0, 3.0));
        assert!(median(&[]).is_nan());
    }
}
