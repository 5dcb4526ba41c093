//! One word for one idea: the words and phrases that `docs/glossary.md` replaces do not come back.

use crate::finding::Finding;
use crate::source::TokenKind;
use crate::tree::Tree;

const RULE: &str = "words";
/// Words that no name has as a part of it, such as `told` in `told_by` and `ToldBy`.
const WORDS: &[&str] = &[
    "told",
    "tell",
    "teller",
    "errand",
    "errands",
    "letter",
    "letters",
    "door",
    "doors",
    "desk",
    "desks",
    "thing",
    "things",
    "place",
    "places",
    "road",
    "roads",
    "room",
    "rooms",
    "wish",
    "wishes",
    "heard",
    "unheard",
    "remark",
    "remarks",
    "steady",
    "lane",
    "lanes",
    "world",
    "worlds",
    "chance",
    "chances",
    "bearing",
    "bearings",
    "cast",
    "casts",
    "circle",
    "circles",
    "discussed",
    "duties",
    "duty",
    "fate",
    "fates",
    "filed",
    "foreseen",
    "game",
    "games",
    "ink",
    "mailroom",
    "office",
    "offices",
    "parcel",
    "parcels",
    "ruling",
    "rulings",
    "shelf",
    "standing",
    "standings",
    "upkeep",
];
/// Names that may have such a part: terms of the field, and names that a library gives.
const NAMES: &[&str] = &["block_in_place", "cast_possible_truncation", "cast_precision_loss", "cast_signed"];
/// Terms of the field that hold such a word, in lower case with `_`.
const TERMS: &[&str] = &["dead_letter", "dead_letters"];
/// Phrases that nobody writes in comments, messages and documents. Each is written in two parts, so that this file has none.
const PHRASES: &[&str] = &[
    concat!("nothing ", "where"),
    concat!("so ", "many"),
    concat!("so ", "much"),
    concat!("who", "ever"),
    concat!("a", "new"),
    concat!("of no ", "use"),
    concat!("less and ", "less"),
    concat!("asked ", "anything"),
    concat!("where there ", "is one"),
];
/// Files that are read for phrases.
const PROSE: &[&str] = &[".rs", ".proto", ".md", ".html", ".py"];

/// Looks at every name in Rust sources and in the API, and at every line of prose.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let names = source.tokens.iter().filter(|token| token.kind == TokenKind::Word);
        for token in names {
            findings.extend(
                bad_name(&token.text).map(|word| name_finding(&source.path, token.line, &token.text, word)),
            );
        }
    }
    for (path, text) in tree.files().filter(|(path, _)| PROSE.iter().any(|end| path.ends_with(end))) {
        for (line, text) in text.lines().enumerate().map(|(index, text)| (index + 1, text)) {
            if path.ends_with(".proto") {
                findings.extend(
                    proto_names(text)
                        .filter_map(|name| bad_name(name).map(|word| name_finding(path, line, name, word))),
                );
            }
            let phrase = PHRASES.iter().find(|phrase| holds(text, phrase));
            findings.extend(phrase.map(|phrase| {
                Finding::new(path, line, RULE, format!("`{phrase}`: write it plainly, see the glossary"))
            }));
        }
    }
    findings
}

fn name_finding(path: &str, line: usize, name: &str, word: &str) -> Finding {
    Finding::new(path, line, RULE, format!("`{name}` contains `{word}`: use the glossary's word"))
}

/// The word in a name that no name has.
fn bad_name(name: &str) -> Option<&'static str> {
    if NAMES.contains(&name) {
        return None;
    }
    let parts = parts(name);
    let joined = format!("_{}_", parts.join("_"));
    let joined = TERMS.iter().fold(joined, |joined, term| joined.replace(&format!("_{term}_"), "_"));
    joined.split('_').find_map(|part| WORDS.iter().copied().find(|word| *word == part))
}

/// The parts of a name in snake or camel case, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut after_lower = false;
    for character in name.chars() {
        let upper = character.is_uppercase();
        if character == '_' || (upper && after_lower) || parts.is_empty() {
            parts.push(String::new());
        }
        if character != '_'
            && let Some(last) = parts.last_mut()
        {
            last.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    parts
}

/// The names in a line of a schema, without its comment and its strings.
fn proto_names(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    let outside = code.split('"').step_by(2);
    outside.flat_map(|text| text.split(|character: char| !character.is_alphanumeric() && character != '_'))
}

/// Returns true if a line holds a phrase that is not part of longer words, in upper or lower case.
fn holds(line: &str, phrase: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(phrase).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + phrase.len()..]);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_phrases_that_the_glossary_replaces_are_reported_where_they_stand() {
        let rust = ["fn a() {}\nfn is_", "told() {}\nstruct Time", "Road;\n// Who", "ever asks\n"].concat();
        let proto = ["// a place\nmessage Open", "Thing {\n  string x = 1; // a place\n}\n"].concat();
        let page = ["It begins a", "new.\n"].concat();
        let tree =
            Tree::of(&[("crates/x/src/lib.rs", &rust), ("proto/x.proto", &proto), ("README.md", &page)]);
        let mut found: Vec<_> = check(&tree).into_iter().map(|it| (it.path, it.line)).collect();
        found.sort();
        let at = |path: &str, line| (path.to_owned(), line);
        let source = "crates/x/src/lib.rs";
        assert_eq!(
            found,
            [at("README.md", 1), at(source, 2), at(source, 3), at(source, 4), at("proto/x.proto", 2)]
        );
    }

    #[test]
    fn longer_words_terms_of_the_field_and_strings_are_none() {
        let rust = "fn replace() { tokio::task::block_in_place(f) }\nstruct DeadLetter;\nconst DEAD_LETTERS_MAX: u8 = 1;\n\
                    // something renewed\nconst X: &str = \"told\";\n";
        assert_eq!(check(&Tree::of(&[("crates/x/src/lib.rs", rust)])), []);
    }

    #[test]
    fn few_names_are_exempt() {
        assert!(NAMES.len() + TERMS.len() <= 10);
    }
}
