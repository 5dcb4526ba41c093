//! Searching for words and punctuation in a source.

use crate::source::{Source, Token, TokenKind};

/// Finds a sequence of words and punctuation, outside strings and comments: the index of its first token, each time.
///
/// The sequence is written with spaces: `". unwrap ( )"`.
pub(crate) fn find<'a>(tokens: &'a [Token], row: &'a str) -> impl Iterator<Item = usize> + 'a {
    let row: Vec<&str> = row.split(' ').collect();
    (0..tokens.len()).filter(move |start| {
        row.iter().enumerate().all(|(offset, wanted)| {
            tokens
                .get(start + offset)
                .is_some_and(|token| token.kind != TokenKind::Literal && token.text == *wanted)
        })
    })
}

/// The lines of a source at which the sequence is found.
pub(crate) fn lines_of<'a>(source: &'a Source, row: &'a str) -> impl Iterator<Item = usize> + 'a {
    find(&source.tokens, row).map(|index| source.tokens[index].line)
}

/// The index of the token that closes the bracket at `open`; the last token if none closes it.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if is_sign(token, &["(", "[", "{"]) {
            depth += 1;
        } else if is_sign(token, &[")", "]", "}"]) {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len().saturating_sub(1)
}

/// Returns true if a token is one of these punctuation characters.
pub(crate) fn is_sign(token: &Token, signs: &[&str]) -> bool {
    token.kind == TokenKind::Sign && signs.contains(&token.text.as_str())
}

/// The text of every string literal in test code.
pub(crate) fn test_literals(source: &Source) -> impl Iterator<Item = &str> {
    let literals = source.tokens.iter().filter(|token| token.kind == TokenKind::Literal);
    literals.filter(|token| source.is_test(token.line)).map(|token| token.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_code_and_not_in_strings_or_comments() {
        let text = "fn a() {\n    // b.c()\n    let d = \"b.c()\";\n    b.c();\n}\n";
        let source = Source::parse("x.rs", text).expect("the text is Rust");
        assert_eq!(lines_of(&source, ". c (").collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn brackets_close_at_their_own_level() {
        let source = Source::parse("x.rs", "fn a(b: [u8; 2]) { { } }").expect("the text is Rust");
        let open = source.tokens.iter().position(|token| token.text == "{").expect("there is a brace");
        assert_eq!(closing(&source.tokens, open), source.tokens.len() - 1);
    }
}
