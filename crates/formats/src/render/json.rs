//! Findings for programs.

use std::fmt::Write as _;

use crate::{Finding, Format, has_errors};

/// One JSON object on one line: `{"file","format","ok","findings":[{"code","severity","line","column","message",
/// "allowed","nearest","hint"}]}`. `ok` is whether no finding is an error.
#[must_use]
pub fn render_json(file: &str, format: Option<Format>, findings: &[Finding]) -> String {
    let mut out = String::from("{\"file\":");
    string(file, &mut out);
    out.push_str(",\"format\":");
    optional(format.map(Format::name), &mut out);
    out.push_str(if has_errors(findings) { ",\"ok\":false" } else { ",\"ok\":true" });
    out.push_str(",\"findings\":[");
    for (at, finding) in findings.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        object(finding, &mut out);
    }
    out.push_str("]}");
    out
}

fn object(finding: &Finding, out: &mut String) {
    out.push_str("{\"code\":");
    string(finding.code, out);
    out.push_str(",\"severity\":");
    string(finding.severity.word(), out);
    out.push_str(&format!(",\"line\":{},\"column\":{},\"message\":", finding.line, finding.column));
    string(&finding.message, out);
    out.push_str(",\"allowed\":[");
    for (at, name) in finding.allowed.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(name, out);
    }
    out.push_str("],\"nearest\":");
    optional(finding.nearest.as_deref(), out);
    out.push_str(",\"hint\":");
    optional(finding.hint.as_deref(), out);
    out.push('}');
}

fn optional(text: Option<&str>, out: &mut String) {
    match text {
        Some(text) => string(text, out),
        None => out.push_str("null"),
    }
}

/// RFC 8259 §7.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                // Writing into a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
