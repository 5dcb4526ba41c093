//! A Rust file: its syntax, its tokens, and which of its lines are test code.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;

/// A parsed Rust file.
pub(crate) struct Source {
    /// Relative to the repository's root, with `/`.
    pub(crate) path: String,
    /// Lines in the file.
    pub(crate) lines: usize,
    /// The file's syntax tree.
    pub(crate) syntax: syn::File,
    /// Every word and punctuation character in order, without comments.
    pub(crate) tokens: Vec<Token>,
    test_lines: Vec<(usize, usize)>,
}

/// A word or punctuation character of a source, and its line (from 1).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    /// The token as written.
    pub(crate) text: String,
    /// Whether it is a name, punctuation or a literal.
    pub(crate) kind: TokenKind,
    /// From 1.
    pub(crate) line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or a keyword.
    Word,
    /// One punctuation character, or one end of a pair of brackets.
    Sign,
    /// A string, a number, a character.
    Literal,
}

impl Source {
    /// Parses a file; the error is a finding at the position of the syntax error.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, Finding> {
        let unreadable = |line, error: &dyn std::fmt::Display| {
            Finding::new(path, line, "parse", format!("cannot be read as Rust: {error}"))
        };
        let syntax = syn::parse_file(text).map_err(|error| unreadable(error.span().start().line, &error))?;
        // The text and not `syntax` again: printing would lose nothing, but it would need one more feature.
        let stream: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| unreadable(error.span().start().line, &error))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut regions = TestRegions::default();
        regions.visit_file(&syntax);
        Ok(Self {
            path: path.to_owned(),
            lines: text.lines().count(),
            syntax,
            tokens,
            test_lines: regions.lines,
        })
    }

    /// Returns true if a line is test code: by the file's path, or because it is in a test item.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        is_test_path(&self.path)
            || self.test_lines.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }
}

/// Returns true if a whole file is test code, by its name, its folder or its crate.
pub(crate) fn is_test_path(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    folder.split('/').any(|part| matches!(part, "tests" | "benches" | "examples"))
        || path.starts_with("crates/testkit/")
        || path.starts_with("crates/testnet/")
        || name == "tests.rs"
        || name.ends_with("_test.rs")
        || name.ends_with("_tests.rs")
}

/// Returns true if a path is among the tests that start real servers and may wait for them.
pub(crate) fn is_end_to_end_path(path: &str) -> bool {
    path.starts_with("tests/it/") || path.contains("/tests/it/")
}

/// Flattens a stream: a pair of brackets becomes two tokens around its contents.
pub(crate) fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Ident(word) => {
                into.push(Token { text: word.to_string(), kind: TokenKind::Word, line })
            }
            TokenTree::Punct(sign) => {
                into.push(Token { text: sign.to_string(), kind: TokenKind::Sign, line })
            }
            TokenTree::Literal(it) => {
                into.push(Token { text: it.to_string(), kind: TokenKind::Literal, line })
            }
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                into.push(Token { text: open.to_owned(), kind: TokenKind::Sign, line });
                flatten(group.stream(), into);
                let line = group.span_close().end().line;
                into.push(Token { text: close.to_owned(), kind: TokenKind::Sign, line });
            }
        }
    }
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// Collects the lines of items and methods under `#[cfg(test)]`, and of functions under `#[test]` or `#[tokio::test]`.
#[derive(Default)]
struct TestRegions {
    lines: Vec<(usize, usize)>,
}

impl<'ast> Visit<'ast> for TestRegions {
    fn visit_file(&mut self, file: &'ast syn::File) {
        if file.attrs.iter().any(marks_test) {
            self.lines.push((1, usize::MAX));
        } else {
            visit::visit_file(self, file);
        }
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if attributes_of(item).iter().any(marks_test) {
            self.lines.push((item.span().start().line, item.span().end().line));
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.attrs.iter().any(marks_test) {
            self.lines.push((item.span().start().line, item.span().end().line));
        } else {
            visit::visit_impl_item_fn(self, item);
        }
    }
}

fn marks_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("cfg") {
        let mut tokens = Vec::new();
        if let syn::Meta::List(list) = &attribute.meta {
            flatten(list.tokens.clone(), &mut tokens);
        }
        let has = |word: &str| tokens.iter().any(|token| token.kind == TokenKind::Word && token.text == word);
        return has("test") && !has("not");
    }
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

/// The attributes of the items that can be test code.
#[expect(clippy::wildcard_enum_match_arm, reason = "syn's list of items grows with the language")]
fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_test_items_are_test_code_and_others_are_not() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[tokio::test]\nasync fn c() {\n}\n#[cfg(not(test))]\nfn d() {}\n";
        let source = Source::parse("crates/x/src/lib.rs", text).expect("the text is Rust");
        let test_lines: Vec<usize> = (1..=10).filter(|line| source.is_test(*line)).collect();
        assert_eq!(test_lines, [2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_method_and_a_whole_file_can_be_test_code() {
        let method = "impl A {\n    fn a() {}\n    #[cfg(test)]\n    fn b() {}\n}\n";
        let source = Source::parse("crates/x/src/lib.rs", method).expect("the text is Rust");
        assert_eq!((1..=5).filter(|line| source.is_test(*line)).collect::<Vec<_>>(), [3, 4]);
        let file =
            Source::parse("crates/x/src/made.rs", "#![cfg(test)]\nfn a() {}\n").expect("the text is Rust");
        assert!(file.is_test(2));
    }

    #[test]
    fn a_path_identifies_test_files() {
        for path in [
            "crates/x/tests/it/main.rs",
            "crates/x/src/y/tests.rs",
            "crates/x/src/y_test.rs",
            "crates/testkit/src/rng.rs",
            "crates/testnet/src/network.rs",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in ["crates/x/src/lib.rs", "crates/x/src/latest.rs", "crates/tests.d/lib.rs"] {
            assert!(!is_test_path(path), "{path}");
        }
        assert!(is_end_to_end_path("crates/x/tests/it/main.rs"));
        assert!(!is_end_to_end_path("crates/x/tests/other/main.rs"));
    }
}
