//! The entry point of the crate: the files of a definition in, findings and a machine out.

use switchward_machine::Digest;

use crate::codes::FORMAT_UNSUPPORTED;
use crate::definition::{Compiled, Definition, SourceFile};
use crate::document::{Span, Syntax, read};
use crate::{Finding, Format, Report, detect, has_errors};

/// Compiles the files of one definition. A `format` that is given is not second-guessed.
#[must_use]
pub fn compile(files: &[SourceFile<'_>], format: Option<Format>) -> Compiled {
    let mut report = Report::new(files.first().map_or("", |file| file.path));
    let format = format.or_else(|| detect::by_file_names(files));
    let (format, definition) = match format.filter(|format| !format.is_supported()) {
        None => document(files, format, &mut report),
        Some(known) => {
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
    let Some(known) = format else { return (None, None) };
    let Some(compiler) = known.compiler() else {
        unsupported(known, root.span, report);
        return (format, None);
    };
    let compiled = (compiler.compile)(&root, file.bytes, report);
    debug_assert!(
        compiled.as_ref().is_none_or(|(name, _)| compiler.naming.allows(name)),
        "a format reads names by the rule of its row"
    );
    let source = Digest::of(file.bytes);
    let calls = (compiler.calls)(&root);
    let definition = compiled.map(|(name, machine)| Definition { name, machine, source, calls });
    (format, definition)
}

fn unsupported(format: Format, span: Span, report: &mut Report) {
    let message = format!("format {} is recognised, but this build does not support it", format.name());
    let supported = Format::ALL.into_iter().filter(|format| format.is_supported()).map(Format::name);
    report.add(Finding::new(FORMAT_UNSUPPORTED, span, message).allowed(supported));
}
