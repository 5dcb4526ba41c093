//! One word for one idea: the words and phrases that `docs/glossary.md` replaces do not come back.

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::scan;
use crate::source::{Token, TokenKind};
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
/// Words that no type, variant, module, attribute's name or name of the API has as a part of it. Functions and variables may:
/// names of tests are sentences.
const TYPE_WORDS: &[&str] =
    &["asked", "found", "kept", "said", "taken", "verdict", "verdicts", "way", "ways"];
/// Types that may have such a part: one of a public event, one that says *to found*, a status of gRPC, and what is *under way*.
const TYPES: &[&str] = &["CallAsked", "FoundCluster", "NotFound", "UnderWay"];
/// Names that may have a part of [`WORDS`]: terms of the field, and names that a library gives.
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
/// Attributes whose strings are names: of the command line, and of what is stored or sent.
const ATTRIBUTES: &[&str] = &["arg", "clap", "command", "group", "serde", "value"];
/// What such a string is given to.
const GIVEN_TO: &[&str] = &["alias", "long", "name", "rename", "value_name", "visible_alias"];
/// Files that are read for phrases: code, documents, and scenarios and tables of sentences, which say what must hold.
const PROSE: &[&str] =
    &[".rs", ".proto", ".md", ".html", ".py", ".yaml", ".yml", ".tsv", ".toml", ".sh", ".json"];

/// Looks at every name in Rust sources, on the command line, in stored forms and in the API, and at every line of prose.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let names = source.tokens.iter().filter(|token| token.kind == TokenKind::Word);
        for token in names {
            findings.extend(
                bad_name(&token.text).map(|word| name_finding(&source.path, token.line, &token.text, word)),
            );
        }
        let mut types = Types::default();
        types.visit_file(&source.syntax);
        for (line, name) in &types.names {
            findings.extend(bad_type(name).map(|word| name_finding(&source.path, *line, name, word)));
        }
        for token in given_names(&source.tokens) {
            let words = token.text.split(|character: char| !is_of_name(character) && character != '-');
            findings.extend(words.filter_map(|name| {
                let plain = name.replace('-', "_");
                let word = bad_name(&plain).or_else(|| bad_type(&plain));
                word.map(|word| name_finding(&source.path, token.line, name, word))
            }));
        }
    }
    for (path, text) in tree.files().filter(|(path, _)| PROSE.iter().any(|end| path.ends_with(end))) {
        for (line, text) in text.lines().enumerate().map(|(index, text)| (index + 1, text)) {
            if path.ends_with(".proto") {
                findings.extend(proto_names(text).filter_map(|name| {
                    let word = bad_name(name).or_else(|| bad_type(name));
                    word.map(|word| name_finding(path, line, name, word))
                }));
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

/// The word in the name of a type that no such name has.
fn bad_type(name: &str) -> Option<&'static str> {
    if TYPES.contains(&name) {
        return None;
    }
    let parts = parts(name);
    TYPE_WORDS.iter().copied().find(|word| parts.iter().any(|part| part == word))
}

/// Collects the names of types, variants and modules, each with its line.
#[derive(Default)]
struct Types {
    names: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "syn's list of items grows with the language")]
        let name = match item {
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Mod(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.names.extend(name.map(|name| (name.span().start().line, name.to_string())));
        visit::visit_item(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.names.push((variant.ident.span().start().line, variant.ident.to_string()));
        visit::visit_variant(self, variant);
    }
}

/// The parts of a name in snake or camel case, in lower case.
pub(super) fn parts(name: &str) -> Vec<String> {
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

/// The strings that attributes of clap and serde use as names.
fn given_names(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    scan::find(tokens, "# [").flat_map(move |start| {
        let attribute = &tokens[start..=scan::closing(tokens, start + 1)];
        let is_one = attribute.get(2).is_some_and(|name| ATTRIBUTES.contains(&name.text.as_str()));
        let triples = attribute.windows(3).filter(move |_| is_one);
        triples.filter_map(|triple| match triple {
            [name, equals, string]
                if GIVEN_TO.contains(&name.text.as_str())
                    && scan::is_sign(equals, &["="])
                    && string.kind == TokenKind::Literal =>
            {
                Some(string)
            }
            _ => None,
        })
    })
}

/// The names in a line of a schema, without its comment and its strings.
fn proto_names(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    let outside = code.split('"').step_by(2);
    outside.flat_map(|text| text.split(|character: char| !is_of_name(character)))
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
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
    fn phrases_are_reported_in_scenarios_tables_scripts_and_manifests() {
        let text = ["a\n# Who", "ever asks\n"].concat();
        for path in ["tests/x.yaml", "x.yml", "tests/x.tsv", "Cargo.toml", "tests/x.sh", "tests/x.json"] {
            let found: Vec<_> = check(&Tree::of(&[(path, &text)])).into_iter().map(|it| it.line).collect();
            assert_eq!(found, [2], "{path}");
        }
        assert_eq!(check(&Tree::of(&[("tests/x.expected", &text)])), [], "output of a program is no prose");
    }

    #[test]
    fn options_and_stored_names_that_the_glossary_replaces_are_reported() {
        let rust = "#[derive(Args)]\nstruct A {\n    #[arg(long = \"tell\", value_name = \"WHO\")]\n    a: u8,\n    \
                    #[arg(long, value_name = \"OPEN-THING\")]\n    b: u8,\n}\n\
                    #[serde(rename = \"told_by\")]\nstruct B;\n\
                    #[command(name = \"letters\")]\nstruct C;\n";
        let found: Vec<_> = check(&Tree::of(&[("crates/x/src/lib.rs", rust)]))
            .into_iter()
            .map(|it| (it.line, it.message.split('`').nth(1).unwrap_or_default().to_owned()))
            .collect();
        let of = |line, name: &str| (line, name.to_owned());
        assert_eq!(found, [of(3, "tell"), of(5, "OPEN-THING"), of(8, "told_by"), of(10, "letters")]);
    }

    #[test]
    fn types_variants_modules_and_names_of_the_api_that_the_glossary_replaces_are_reported() {
        let rust = "struct AskedCall;\nenum Reply {\n    Later,\n    NotTaken(u8),\n}\ntrait Said {}\ntype Kept = u8;\n\
                    mod verdict {\n    union FoundRow { a: u8 }\n}\nfn a() {\n    struct Verdicts;\n}\n\
                    #[serde(rename = \"verdict\")]\nstruct B;\n#[arg(long = \"if-taken\")]\nstruct C;\n";
        let proto =
            "message LayerVerdict {\n  string kept_by = 1; // it is kept\n}\nenum A {\n  A_TAKEN = 1;\n}\n";
        let tree = Tree::of(&[("crates/x/src/lib.rs", rust), ("proto/x.proto", proto)]);
        let mut found: Vec<_> = check(&tree)
            .into_iter()
            .map(|it| (it.line, it.message.split('`').nth(1).unwrap_or_default().to_owned()))
            .collect();
        found.sort();
        let of = |line, name: &str| (line, name.to_owned());
        assert_eq!(
            found,
            [
                of(1, "AskedCall"),
                of(1, "LayerVerdict"),
                of(2, "kept_by"),
                of(4, "NotTaken"),
                of(5, "A_TAKEN"),
                of(6, "Said"),
                of(7, "Kept"),
                of(8, "verdict"),
                of(9, "FoundRow"),
                of(12, "Verdicts"),
                of(14, "verdict"),
                of(16, "if-taken"),
            ]
        );
    }

    #[test]
    fn ways_are_no_types_unless_something_is_under_way() {
        let rust = "enum Way {\n    OneWay,\n    UnderWay,\n}\nstruct Gateway { way: u8 }\nstruct Ways;\n";
        let found = check(&Tree::of(&[("crates/x/src/lib.rs", rust)]));
        assert_eq!(found.into_iter().map(|it| it.line).collect::<Vec<_>>(), [1, 2, 6]);
    }

    #[test]
    fn functions_and_variables_may_have_words_that_types_have_not() {
        let rust = "fn who_is_asked(said: u8) -> u8 { let kept = said; kept }\nstruct FoundCluster;\nstruct Mistaken;\n\
                    mod tests {\n    fn what_was_said_is_kept() {}\n}\n";
        assert_eq!(check(&Tree::of(&[("crates/x/src/lib.rs", rust)])), []);
    }

    #[test]
    fn strings_in_other_attributes_and_terms_in_these_are_none() {
        let rust = "#[doc(alias = \"told\")]\nfn a() {}\n#[arg(long = \"dead-letter\", help = \"what is told\")]\nfn b() {}\n\
                    fn c() { let name = \"told\"; }\n";
        assert_eq!(check(&Tree::of(&[("crates/x/src/lib.rs", rust)])), []);
    }

    #[test]
    fn longer_words_terms_of_the_field_and_strings_are_none() {
        let rust = "fn replace() { tokio::task::block_in_place(f) }\nstruct DeadLetter;\nconst DEAD_LETTERS_MAX: u8 = 1;\n\
                    // something renewed\nconst X: &str = \"told\";\n";
        assert_eq!(check(&Tree::of(&[("crates/x/src/lib.rs", rust)])), []);
    }

    #[test]
    fn few_names_are_exempt() {
        assert!(NAMES.len() + TERMS.len() + TYPES.len() <= 10);
    }
}
