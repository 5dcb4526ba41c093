//! Reads bytes as a document, or reports why not.

use super::line_index::LineIndex;
use super::{Node, Span, json, yaml};
use crate::codes::{NOT_UTF8, SOURCE_TOO_LARGE};
use crate::limits::SOURCE_BYTES_MAX;
use crate::{Finding, Report};

/// The syntax of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// RFC 8259, strictly.
    Json,
    /// YAML 1.2 with its core schema, one document.
    Yaml,
}

impl Syntax {
    /// By the file's extension; if that is unknown, a text that begins with `{` or `[` is JSON.
    #[must_use]
    pub fn of(file: &str, bytes: &[u8]) -> Self {
        let ending = file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match ending.as_deref() {
            Some("json") => Self::Json,
            Some("yaml" | "yml" | "kno") => Self::Yaml,
            Some(_) | None => {
                let text = bytes.strip_prefix(BOM.as_bytes()).unwrap_or(bytes);
                let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
                if matches!(first, Some(b'{' | b'[')) { Self::Json } else { Self::Yaml }
            }
        }
    }
}

/// A byte order mark.
pub(super) const BOM: &str = "\u{feff}";

/// Reads one document. Returns `None` if there is no tree at all. A tree may be returned together with errors, without
/// the faulty parts, so that the rest can be checked too. A byte order mark at the start is skipped and has no column.
#[must_use]
pub fn read(bytes: &[u8], syntax: Syntax, report: &mut Report) -> Option<Node> {
    if bytes.len() > SOURCE_BYTES_MAX {
        let message = format!("the file has {} bytes, and at most {SOURCE_BYTES_MAX} are read", bytes.len());
        report.add(Finding::new(SOURCE_TOO_LARGE, Span::START, message));
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix(BOM).unwrap_or(text),
        Err(error) => {
            let before = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let before = before.strip_prefix(BOM).unwrap_or(before);
            let span = LineIndex::new(before).span(before.len(), before.len());
            report.add(Finding::new(NOT_UTF8, span, "the bytes here are not UTF-8"));
            return None;
        }
    };
    let line_index = LineIndex::new(text);
    match syntax {
        Syntax::Json => json::read(text, &line_index, report),
        Syntax::Yaml => yaml::read(text, &line_index, report),
    }
}
