//! The entry point of the crate: the files of a definition in, findings and a machine out.

use switchward_machine::Digest;

use crate::codes::FORMAT_UNSUPPORTED;
use crate::definition::{Compiled, Definition, SourceFile};
use crate::document::{Span, Syntax, read};
use crate::{Finding, Format, Report, checkpoint, conversation, detect, has_errors, policy};

/// Compiles the files of one definition. A `format` that is given is not second-guessed.
#[must_use]
pub fn compile(files: &[SourceFile<'_>], format: Option<Format>) -> Compiled {
    let mut report = Report::new(files.first().map_or("", |file| file.path));
    let format = format.or_else(|| detect::is_workspace(files).then_some(Format::ProcessMd));
    let (format, definition) = match format {
        Some(Format::Checkpoint | Format::Conversation | Format::Policy) | None => {
            document(files, format, &mut report)
        }
        Some(known @ (Format::ProcessMd | Format::Native | Format::Kno)) => {
            unsupported(known, Span::START, &mut report);
            (format, None)
        }
    };
    let findings = report.finish();
    let definition = definition.filter(|_| !has_errors(&findings));
    debug_assert!(
        definition.is_some() || has_errors(&findings),
        "without a machine, one of the findings is an error"
    );
    Compiled { format, findings, definition }
}

/// Compiles a definition that is one file.
#[must_use]
pub fn compile_file(path: &str, bytes: &[u8], format: Option<Format>) -> Compiled {
    compile(&[SourceFile { path, bytes }], format)
}

/// A definition that is one JSON or YAML document.
fn document(
    files: &[SourceFile<'_>],
    format: Option<Format>,
    report: &mut Report,
) -> (Option<Format>, Option<Definition>) {
    let Some(file) = detect::single(files, report) else { return (format, None) };
    let Some(root) = read(file.bytes, Syntax::of(file.path, file.bytes), report) else {
        return (format, None);
    };
    let format = format.or_else(|| detect::of_document(&root, report));
    let compiled = match format {
        None => None,
        Some(Format::Checkpoint) => checkpoint::compile(&root, report),
        Some(Format::Conversation) => conversation::compile(&root, file.bytes, report),
        Some(Format::Policy) => policy::compile(&root, report),
        Some(known @ (Format::ProcessMd | Format::Native | Format::Kno)) => {
            unsupported(known, root.span, report);
            None
        }
    };
    let source = Digest::of(file.bytes);
    let calls = match format {
        Some(Format::Conversation) => conversation::calls(&root),
        Some(Format::Checkpoint | Format::ProcessMd | Format::Native | Format::Kno | Format::Policy)
        | None => Vec::new(),
    };
    let definition = compiled.map(|(name, machine)| Definition { name, machine, source, calls });
    (format, definition)
}

fn unsupported(format: Format, span: Span, report: &mut Report) {
    let message = format!("format {} is recognised, but this build does not support it", format.name());
    report.add(
        Finding::new(FORMAT_UNSUPPORTED, span, message)
            .allowed([Format::Checkpoint, Format::Conversation, Format::Policy].map(Format::name)),
    );
}
