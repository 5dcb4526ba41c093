//! The pure crates hold no IO, async, clock, randomness, threads, environment or hash order.
//!
//! The first fence is each crate's `clippy.toml`; this one also sees what a macro hides and what a lint was silenced
//! for. Test code is exempt: it may read the corpus.

use crate::checks::arrows::pure_crates;
use crate::finding::Finding;
use crate::scan;
use crate::source::{Source, Token, TokenKind};
use crate::tree::{Tree, inner_path};

const RULE: &str = "purity";
const STD_MODULES: &[&str] = &["env", "fs", "net", "process", "thread"];
const WORDS: &[&str] = &[
    "DefaultHasher",
    "HashMap",
    "HashSet",
    "Instant",
    "RandomState",
    "SystemTime",
    "async",
    "await",
    "thread_local",
];
const ROWS: &[(&str, &str)] = &[
    ("rand : :", "rand::"),
    ("tokio : :", "tokio::"),
    ("Timestamp : : now", "Timestamp::now"),
    ("Zoned : : now", "Zoned::now"),
    ("io : : stdin", "io::stdin"),
    ("io : : stdout", "io::stdout"),
    ("io : : stderr", "io::stderr"),
];
/// Crates in which a floating-point number would reach data that replicas compare.
const WITHOUT_FLOATS: &[&str] = &["machine", "state", "engine"];

/// Scans the product code of every pure crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in pure_crates() {
        let sources_folder = format!("crates/{folder}/src");
        for source in tree.sources.iter().filter(|source| inner_path(&source.path, &sources_folder).is_some())
        {
            let mut impure = impurities(source);
            if WITHOUT_FLOATS.contains(&folder) {
                impure.extend(floats(&source.tokens));
            }
            impure.retain(|(_, line)| !source.is_test(*line));
            findings.extend(impure.into_iter().map(|(what, line)| {
                Finding::new(&source.path, line, RULE, format!("{folder} is pure and must not use `{what}`"))
            }));
        }
    }
    findings
}

fn impurities(source: &Source) -> Vec<(String, usize)> {
    let tokens = &source.tokens;
    let words =
        tokens.iter().filter(|token| token.kind == TokenKind::Word && WORDS.contains(&token.text.as_str()));
    let mut found: Vec<(String, usize)> = words.map(|token| (token.text.clone(), token.line)).collect();
    for (row, name) in ROWS {
        found.extend(scan::lines_of(source, row).map(|line| ((*name).to_owned(), line)));
    }
    for start in scan::find(tokens, "std : :") {
        let modules =
            first_words(tokens, start + 3).filter(|token| STD_MODULES.contains(&token.text.as_str()));
        found.extend(modules.map(|token| (format!("std::{}", token.text), token.line)));
    }
    found
}

/// The next words of a path at `start`: its next word, or in `{a::b, c}` the first word of each entry.
fn first_words(tokens: &[Token], start: usize) -> impl Iterator<Item = &Token> {
    let is_group = tokens.get(start).is_some_and(|token| scan::is_sign(token, &["{"]));
    let range =
        if is_group { start + 1..scan::closing(tokens, start) } else { start..(start + 1).min(tokens.len()) };
    let mut depth = 0_usize;
    let mut at_first = true;
    tokens[range].iter().filter(move |token| {
        let first = at_first && depth == 0 && token.kind == TokenKind::Word;
        if scan::is_sign(token, &["{"]) {
            depth += 1;
        } else if scan::is_sign(token, &["}"]) {
            depth = depth.saturating_sub(1);
        }
        at_first = depth == 0 && scan::is_sign(token, &[","]);
        first
    })
}

fn floats(tokens: &[Token]) -> impl Iterator<Item = (String, usize)> + '_ {
    tokens.iter().enumerate().filter_map(|(index, token)| {
        // `pair.0.1` is tokenized as a word, a point and the number 0.1.
        let is_field = index > 0 && scan::is_sign(&tokens[index - 1], &["."]);
        let is_float = match token.kind {
            TokenKind::Word => matches!(token.text.as_str(), "f32" | "f64"),
            TokenKind::Literal => !is_field && matches!(syn::parse_str(&token.text), Ok(syn::Lit::Float(_))),
            TokenKind::Sign => false,
        };
        is_float.then(|| (token.text.clone(), token.line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<(usize, String)> {
        let found = check(&Tree::of(&[(path, text)]));
        found
            .into_iter()
            .map(|it| (it.line, it.message.split('`').nth(1).unwrap_or_default().to_owned()))
            .collect()
    }

    /// Each line of `text` breaks the rule once and names the token beside it.
    #[track_caller]
    fn check_lines(path: &str, lines: &[(&str, &str)]) {
        let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
        let mut found = findings(path, &text);
        found.sort();
        let expected: Vec<(usize, String)> =
            lines.iter().enumerate().map(|(index, (_, what))| (index + 1, (*what).to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_impurity_is_reported_at_its_line() {
        check_lines(
            "crates/formats/src/lib.rs",
            &[
                ("use std::fs;", "std::fs"),
                ("use std::{fmt, net::{TcpStream}};", "std::net"),
                ("use std::{collections::BTreeMap, env};", "std::env"),
                ("fn a() { ::std::thread::yield_now(); }", "std::thread"),
                ("type B = std::collections::HashMap<u8, u8>;", "HashMap"),
                ("use std::collections::{BTreeMap, HashSet};", "HashSet"),
                ("use std::time::{Duration, SystemTime};", "SystemTime"),
                ("use std::time::Instant;", "Instant"),
                ("async fn c() {}", "async"),
                ("fn d() { e!(f.await); }", "await"),
                ("fn g() -> u8 { rand::random() }", "rand::"),
                ("fn h() { std::process::exit(1) }", "std::process"),
            ],
        );
    }

    #[test]
    fn floats_are_reported_only_where_replicas_compare() {
        let lines = [("fn a(b: f64) {}", "f64"), ("const C: D = D(1.5);", "1.5"), ("fn e(f: f32) {}", "f32")];
        check_lines("crates/engine/src/lib.rs", &lines);
        check_lines("crates/machine/src/lib.rs", &lines);
        assert_eq!(findings("crates/formats/src/lib.rs", "fn a(b: f64) {}"), []);
        assert_eq!(findings("crates/engine/src/lib.rs", "fn a(b: B) -> u8 { b.0.1 }"), []);
    }

    #[test]
    fn what_is_pure_is_not_reported() {
        let text = "//! No std::fs here, no HashMap.\nuse std::collections::BTreeMap;\nuse crate::env;\nuse std::{fmt::{self, env}};\nconst A: &str = \"std::fs\";\n";
        assert_eq!(findings("crates/engine/src/lib.rs", text), []);
        assert_eq!(findings("crates/shard/src/lib.rs", "use std::fs;"), []);
        assert_eq!(findings("crates/engine/src/tests.rs", "use std::fs;"), []);
        assert_eq!(
            findings("crates/engine/src/lib.rs", "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n"),
            []
        );
    }
}
