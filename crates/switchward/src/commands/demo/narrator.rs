//! The output of the demo: who did what, and the outcome, in three columns.

use anstyle::Style;

use crate::args::Output;
use crate::exit::Exit;
use crate::output::{FAINT, HELP, STRONG, print};

/// Columns of a line: the indent, who, and what was done.
const INDENT: &str = "   ";
const WHO: usize = 8;
const DID: usize = 34;

/// Prints the demo on the standard output, line by line. Prints nothing for a program, which reads the steps instead.
pub(super) struct Narrator {
    acts: usize,
    silent: bool,
}

impl Narrator {
    pub(super) fn new(output: Output) -> Self {
        Self { acts: 0, silent: output.json() }
    }

    fn say(&self, text: &str) -> Result<(), Exit> {
        if self.silent { Ok(()) } else { print(text) }
    }

    /// The title and what is to be seen.
    pub(super) fn title(&self, title: &str, lines: &[&str]) -> Result<(), Exit> {
        self.say(&format!("{STRONG}{title}{STRONG:#}\n\n{}\n", lines.join("\n")))
    }

    /// The next act.
    pub(super) fn act(&mut self, heading: &str) -> Result<(), Exit> {
        self.acts += 1;
        self.say(&format!("\n{STRONG}{}. {heading}{STRONG:#}\n\n", self.acts))
    }

    /// One step, and its outcome.
    pub(super) fn line(&self, who: &str, did: &str, style: Style, outcome: &str) -> Result<(), Exit> {
        self.say(&format!("{INDENT}{HELP}{who:<WHO$}{HELP:#}  {did:<DID$}  {style}{outcome}{style:#}\n"))
    }

    /// Details of the line before.
    pub(super) fn detail(&self, text: &str) -> Result<(), Exit> {
        self.say(&format!("{INDENT}{:<WHO$}  {text}\n", ""))
    }

    /// Why what was just seen matters.
    pub(super) fn why(&self, lines: &[&str]) -> Result<(), Exit> {
        let lines: Vec<String> =
            lines.iter().map(|line| format!("{INDENT}{FAINT}{line}{FAINT:#}\n")).collect();
        self.say(&format!("\n{}", lines.concat()))
    }

    /// A line of its own.
    pub(super) fn plain(&self, text: &str) -> Result<(), Exit> {
        self.say(&format!("{text}\n"))
    }
}
