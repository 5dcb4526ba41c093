//! The fields of log lines: those of spans, without what is for traces alone.
//!
//! Each call has a span, whose fields are written once for the lines that may come within it. Most calls log nothing, so
//! less is written for each of them.

use std::fmt;
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing_subscriber::field::{MakeVisitor as _, RecordFields, VisitOutput as _};
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FormatFields, FormattedFields};

/// Fields that only traces have begin with one of these: what OpenTelemetry calls a span, and what is known of a call only
/// when it has ended.
const ONLY_TRACED: [&str; 3] = ["otel.", "rpc.system.", "rpc.response."];

/// Writes fields as the library does, without those that only traces have.
#[derive(Debug, Default)]
pub(super) struct Logged(DefaultFields);

impl<'w> FormatFields<'w> for Logged {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = self.0.make_visitor(writer);
        fields.record(&mut Choosing(&mut line));
        line.finish()
    }

    /// Adds nothing, and no space, for fields that are not logged.
    fn add_fields(&self, line: &'w mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let mut logged = Logs(false);
        fields.record(&mut Choosing(&mut logged));
        if !logged.0 {
            return Ok(());
        }
        if !line.fields.is_empty() {
            line.fields.push(' ');
        }
        self.format_fields(line.as_writer(), fields)
    }
}

/// Whether it was shown a field.
struct Logs(bool);

impl Visit for Logs {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {
        self.0 = true;
    }
}

/// Shows a visitor the fields that are logged.
struct Choosing<'v>(&'v mut dyn Visit);

impl Choosing<'_> {
    fn show(&mut self, field: &Field, show: impl FnOnce(&mut dyn Visit)) {
        if !ONLY_TRACED.iter().any(|begin| field.name().starts_with(begin)) {
            show(self.0);
        }
    }
}

impl Visit for Choosing<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.show(field, |visitor| visitor.record_debug(field, value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.show(field, |visitor| visitor.record_str(field, value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.show(field, |visitor| visitor.record_error(field, value));
    }
}
