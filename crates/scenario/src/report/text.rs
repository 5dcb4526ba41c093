//! The report for a person.

use std::fmt::Write as _;

use super::{Miss, REFUSAL, Report, StepReport};

impl Report {
    /// One line for a scenario that holds; else one paragraph for each expectation that does not, each with the file,
    /// the line, the step, what was expected and what was seen.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.ok() {
            let count = self.steps.len().saturating_sub(1);
            let steps = if count == 1 { "step" } else { "steps" };
            append(&mut out, format_args!("{}: ok, {count} {steps}\n", self.file));
            return out;
        }
        for step in &self.steps {
            for miss in &step.misses {
                append(&mut out, format_args!("{}", MissText { file: &self.file, step, miss }));
            }
        }
        out
    }
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing into a string cannot fail");
}

struct MissText<'a> {
    file: &'a str,
    step: &'a StepReport,
    miss: &'a Miss,
}

impl std::fmt::Display for MissText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, step, miss } = self;
        let (line, column) = (miss.span.line, miss.span.column);
        write!(f, "{file}:{line}:{column}: ")?;
        match step.index {
            0 => write!(f, "start")?,
            index => write!(f, "step {index} ({}, line {})", step.verb, step.span.line)?,
        }
        writeln!(f, ": {} does not hold", miss.what)?;
        writeln!(f, "  expected  {}", Value { miss, of: &miss.expected })?;
        writeln!(f, "  seen      {}", Value { miss, of: &miss.seen })?;
        if !miss.note.is_empty() {
            writeln!(f, "            {}", miss.note)?;
        }
        Ok(())
    }
}

struct Value<'a> {
    miss: &'a Miss,
    of: &'a serde_json::Value,
}

impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.miss.what == REFUSAL && self.of.is_null() {
            return f.write_str("no refusal");
        }
        write!(f, "{}", self.of)
    }
}
