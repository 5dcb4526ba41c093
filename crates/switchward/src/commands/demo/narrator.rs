//! The output of the demo in three columns: the actor, the action and the outcome.

use anstyle::Style;
use switchward_messages::cli::demo as texts;

use crate::args::Output;
use crate::exit::Exit;
use crate::output::{FAINT, GOOD, HELP, STRONG, print};

/// The columns of a line: the indent, the actor and the action.
const INDENT: &str = "   ";
const WHO: usize = 8;
const DID: usize = 34;

/// Prints the demo line by line on the standard output; prints nothing for programs, which get the steps instead.
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

    /// The title and an introduction.
    pub(super) fn title(&self, title: &str, lines: &[&str]) -> Result<(), Exit> {
        self.say(&format!("{STRONG}{title}{STRONG:#}\n\n{}\n", lines.join("\n")))
    }

    /// The next act.
    pub(super) fn act(&mut self, heading: &str) -> Result<(), Exit> {
        self.acts += 1;
        self.say(&format!("\n{STRONG}{}. {heading}{STRONG:#}\n\n", self.acts))
    }

    /// A step and its outcome.
    pub(super) fn line(&self, who: &str, did: &str, style: Style, outcome: &str) -> Result<(), Exit> {
        self.say(&format!("{INDENT}{HELP}{who:<WHO$}{HELP:#}  {did:<DID$}  {style}{outcome}{style:#}\n"))
    }

    /// Details of the previous line.
    pub(super) fn detail(&self, text: &str) -> Result<(), Exit> {
        self.say(&format!("{INDENT}{:<WHO$}  {text}\n", ""))
    }

    /// An explanation of the act.
    pub(super) fn why(&self, lines: &[&str]) -> Result<(), Exit> {
        let lines: Vec<String> =
            lines.iter().map(|line| format!("{INDENT}{FAINT}{line}{FAINT:#}\n")).collect();
        self.say(&format!("\n{}", lines.concat()))
    }

    /// The last line, with the command that a person may run next.
    pub(super) fn end(&self, next: &str) -> Result<(), Exit> {
        let (done, again) = (texts::DONE, texts::TRY);
        self.say(&format!("{GOOD}{done}{GOOD:#} {again} {STRONG}{next}{STRONG:#}\n"))
    }

    /// A separate line.
    pub(super) fn plain(&self, text: &str) -> Result<(), Exit> {
        self.say(&format!("{text}\n"))
    }
}
