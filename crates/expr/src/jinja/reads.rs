//! What a body reads of the data, according to its text.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::compile;
use crate::path::Path;

/// The data's names in a body.
const ROOTS: [&str; 2] = ["gathered_data", "gathered"];

/// What a template reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reads {
    /// Paths below the data, in order and with duplicates.
    pub paths: Vec<Path>,
    /// Whether it also uses the data as a whole, so that it may read anything.
    pub whole: bool,
}

/// The paths that a body reads. A computed name ends the path: `gathered_data.prices[x]` gives `prices`.
/// Covers all that rendering looks at, except below names that the body assigns itself, whose source is listed.
#[must_use]
pub fn reads(source: &str) -> Reads {
    let source = compile::plain_line_ends(source);
    let tokens = tokenize(&source, false, SyntaxConfig::default());
    let tokens: Vec<Token<'_>> = tokens.filter_map(|token| token.ok().map(|(token, _)| token)).collect();
    let mut found = Reads::default();
    for (at, token) in tokens.iter().enumerate() {
        let inside = at.checked_sub(1).is_some_and(|before| matches!(tokens.get(before), Some(Token::Dot)));
        if !inside && matches!(token, Token::Ident(name) if ROOTS.contains(name)) {
            match Path::new(&names(&tokens[at + 1..]).join(".")) {
                Ok(path) => found.paths.push(path),
                Err(_) => found.whole = true,
            }
        }
    }
    found
}

/// The names that follow a root.
fn names(mut rest: &[Token<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let (name, after) = match rest {
            // What follows the call is not followed: it may be the default's.
            [
                Token::Dot,
                Token::Ident("get"),
                Token::ParenOpen,
                key,
                Token::ParenClose | Token::Comma,
                ..,
            ] => match text(key) {
                Some(name) => (name, &rest[rest.len()..]),
                None => return names,
            },
            // A method is called on the value before it.
            [Token::Dot, Token::Ident(_), Token::ParenOpen, ..] => return names,
            [Token::Dot, Token::Ident(name), after @ ..] => ((*name).to_owned(), after),
            [Token::Dot, Token::Int(index), after @ ..] => (index.to_string(), after),
            [Token::BracketOpen, key, Token::BracketClose, after @ ..] => match text(key) {
                Some(name) => (name, after),
                None => return names,
            },
            _ => return names,
        };
        if name.contains('.') || Path::new(&name).is_err() {
            return names;
        }
        names.push(name);
        rest = after;
    }
}

fn text(token: &Token<'_>) -> Option<String> {
    if let Token::Str(text) = token {
        Some((*text).to_owned())
    } else if let Token::String(text) = token {
        Some(text.to_string())
    } else if let Token::Int(index) = token {
        Some(index.to_string())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> String {
        let found = reads(source);
        let mut names: Vec<&str> = found.paths.iter().map(Path::as_str).collect();
        names.extend(found.whole.then_some("*"));
        names.join(" ")
    }

    #[test]
    fn paths_are_found_however_they_are_written() {
        assert_eq!(paths("{{ gathered_data.amount }} of {{ gathered.order.id | upper }}"), "amount order.id");
        assert_eq!(paths(r#"{{ gathered_data["the order"]["id"] }}"#), "the order.id");
        assert_eq!(paths("{{ gathered_data.items[0].price }}"), "items.0.price");
        assert_eq!(paths("{% for part in gathered_data.parts %}{{ part.price }}{% endfor %}"), "parts");
        assert_eq!(paths("{% for k, v in gathered_data.parts.items() %}{{ k }}{% endfor %}"), "parts");
        assert_eq!(paths("{{ gathered_data.get('amount') }}"), "amount");
        assert_eq!(paths("{% if gathered_data.a == gathered_data.b %}x{% endif %}"), "a b");
        assert_eq!(paths("amount {gathered_data.a} {# {{ gathered_data.b }} #}"), "");
        assert_eq!(paths("{{ x.gathered_data.d }}"), "");
    }

    #[test]
    fn what_is_computed_is_read_from_where_it_stands() {
        assert_eq!(paths("{{ gathered_data.prices[x] }}"), "prices");
        assert_eq!(paths(r#"{{ gathered_data.prices["a.b"] }}"#), "prices");
        assert_eq!(paths("{{ gathered_data }}"), "*");
        assert_eq!(paths("{{ gathered_data[x] }}"), "*");
        assert_eq!(paths("{% set d = gathered_data %}{{ d.amount }}"), "*");
        assert_eq!(paths("{{ gathered_data.get('net_' ~ x) }}"), "*");
        assert_eq!(paths("{{ gathered_data.prices.get('a' if x else 'b') }}"), "prices");
        assert_eq!(paths("{{ gathered_data.get('a' | upper, gathered_data.b) }}"), "b *");
    }
}
