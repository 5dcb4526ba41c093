//! Tables for people: without borders, at most as wide as the terminal.

use comfy_table::{ColumnConstraint, ContentArrangement, Table as Grid, presets::NOTHING};
use terminal_size::{Width, terminal_size_of};

use super::{STRONG, clean, put};

/// Columns of space between two table columns.
const GAP: u16 = 2;
/// Table columns that are always shown.
const COLUMNS_MIN: usize = 3;
/// The width that a column gets before the last column is omitted.
const COLUMN_WIDTH: u16 = 24;

/// A table with a header, the most important columns first: if the terminal is too narrow, the last columns are omitted
/// and long cells are cut. The command for one item shows everything.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. The first column contains names and is never cut, so that they can be copied.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row of one line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell).replace('\n', " ")).collect());
    }

    /// The table as text, or `if_empty` if it has no row.
    pub(crate) fn text(&self, if_empty: &str) -> String {
        self.fit(if_empty, terminal_size_of(std::io::stdout()).map(|(Width(width), _)| width))
    }

    fn fit(&self, if_empty: &str, width: Option<u16>) -> String {
        if self.rows.is_empty() {
            return format!("{if_empty}\n");
        }
        let mut grid = self.grid(self.head.len());
        if let Some(width) = width {
            while needs(&grid) > width && grid.column_count() > COLUMNS_MIN {
                grid = self.grid(grid.column_count() - 1);
            }
            grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let mut text = String::new();
        for (at, line) in grid.lines().enumerate() {
            let line = line.trim_end();
            let style = if at == 0 { STRONG } else { anstyle::Style::new() };
            put(&mut text, format_args!("{style}{line}{style:#}\n"));
        }
        text
    }

    /// The first columns as a grid.
    fn grid(&self, columns: usize) -> Grid {
        let row = |cells: &Vec<String>| {
            let mut row = comfy_table::Row::from(cells.iter().take(columns));
            row.max_height(1);
            row
        };
        let mut grid = Grid::new();
        grid.load_style(NOTHING).set_header(row(&self.head)).add_rows(self.rows.iter().map(row));
        let last = columns.saturating_sub(1);
        for (at, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((0, if at == last { 0 } else { GAP }));
        }
        if let Some(first) = grid.column_mut(0) {
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
        grid
    }
}

/// The width that the columns of a grid need.
fn needs(grid: &Grid) -> u16 {
    let widths = grid.column_max_content_widths();
    let (first, others) =
        widths.split_first().map_or((0, widths.as_slice()), |(first, others)| (*first, others));
    others.iter().fold(first, |sum, width| sum.saturating_add(GAP).saturating_add((*width).min(COLUMN_WIDTH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["SESSION", "STATUS", "AT", "CHANGED"]);
        let id = "ses_0ac9xrpgb857yq1gabr2yd9qvh";
        table.row(
            [id, "waiting", "a-state-with-a-long-name-of-its-own", "2026-01-05T09:00:00Z"].map(str::to_owned),
        );
        table.row(["ses_1", "blocked\u{1b}[2J", "b\nc", ""].map(str::to_owned));
        table
    }

    fn fit(table: &Table, width: Option<u16>) -> Vec<String> {
        let text = anstream::adapter::strip_str(&table.fit("none", width)).to_string();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let lines = fit(&table(), None);
        assert_eq!(
            lines[0],
            "SESSION                         STATUS       AT                                   CHANGED"
        );
        assert_eq!(lines[2], "ses_1                           blocked\u{fffd}[2J  b c");
        assert_eq!(fit(&Table::new(&["NAME"]), None), ["none"]);
    }

    #[test]
    fn a_narrow_terminal_gets_the_first_columns_and_the_names_whole() {
        for width in [120, 100, 80, 72] {
            let lines = fit(&table(), Some(width));
            assert_eq!(lines.len(), 3, "{width}: {lines:#?}");
            assert!(
                lines.iter().all(|line| line.chars().count() <= usize::from(width)),
                "{width}: {lines:#?}"
            );
            assert!(lines[1].starts_with("ses_0ac9xrpgb857yq1gabr2yd9qvh  waiting"), "{width}: {lines:#?}");
            assert_eq!(lines[0].contains("CHANGED"), width >= 100, "{width}: {lines:#?}");
        }
    }
}
