//! A format costs its own folder, a row in the table of `crates/formats`, and little else: outside its folder few product
//! files name it, and the core names neither a format nor a key that only a format has.
//!
//! Names in Rust and the words of strings are looked at; comments, documents and test code are left out. A format is a
//! folder of `crates/formats/src` with a row.

use std::collections::BTreeMap;

use super::words::parts;
use crate::finding::Finding;
use crate::scan;
use crate::source::{Source, Token, TokenKind};
use crate::tree::{Tree, inner_path};

const RULE: &str = "formats";
/// The folders of the formats are in this one.
const FORMATS: &str = "crates/formats/src";
/// Product files outside its folder that may name one format.
const FILES_MAX: usize = 4;
/// Sources that know machines, and no format.
const CORE: &[&str] = &["crates/engine/src", "crates/machine/src", "crates/query/src", "crates/state/src"];
/// Crates for developers, which are no part of the product.
const FOR_DEVELOPERS: &[&str] =
    &["crates/bench", "crates/fuzz", "crates/testkit", "crates/testnet", "crates/xtask"];
/// Rows whose name is a word of the product.
const PRODUCT_WORDS: &[(&str, &str)] =
    &[("policy", "a policy holds for definitions of all formats, so every crate knows policies")];
/// Names in snake case that have a format's name as a part and mean something else.
const OTHER_MEANINGS: &[(&str, &str)] = &[
    ("answer_checkpoint", "the call that answers the question of any session"),
    ("answer_checkpoint_request", "a message of that call"),
    ("answer_checkpoint_response", "a message of that call"),
    ("checkpoint", "in the API the question that any session asks; in `shard` what a disk has in full"),
    ("checkpoint_of", "makes the API's message of that question"),
    ("conversation", "modules with the calls and verbs about the messages of any session"),
    ("conversation_message", "the API's message with one of them"),
    ("load_native_certs", "a function of a library"),
    ("rustls_native_certs", "a library"),
    ("with_native_roots", "a function of a library"),
];
/// Keys of a format that the engine knows by itself.
const ENGINE_KEYS: &[(&str, &str)] = &[
    ("cost_usd", "the name of a cap that a caller of the API raises"),
    ("event_key", "a field of an event in the API, and a reserved key of the data"),
];

/// Counts the files that name each format, and looks for formats and their keys in the core.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut keys = BTreeMap::new();
    for format in formats(tree) {
        let naming: Vec<(&Source, &Token)> = product(tree)
            .filter(|source| !is_of(source, format))
            .filter_map(|source| Some((source, naming(source, format)?)))
            .collect();
        let many = naming.len() > FILES_MAX;
        for (source, token) in &naming {
            let path = source.path.as_str();
            if in_core(source) {
                let message =
                    format!("the core names the format {format}: let its row or its machine say it");
                findings.push(Finding::new(path, token.line, RULE, message));
            } else if many {
                let message = format!(
                    "one of {} product files that name the format {format}, and {FILES_MAX} may: ask its row",
                    naming.len()
                );
                findings.push(Finding::new(path, token.line, RULE, message));
            }
        }
        keys.extend(keys_of(tree, format).into_iter().map(|key| (key, format)));
    }
    for source in product(tree).filter(|source| in_core(source)) {
        for (token, word) in
            strings(source).flat_map(|token| words(token).into_iter().map(move |it| (token, it)))
        {
            if let Some(format) = keys.get(&word) {
                let message =
                    format!("`{word}` is a key of the format {format}, which the core does not know");
                findings.push(Finding::new(&source.path, token.line, RULE, message));
            }
        }
    }
    findings
}

/// The formats: each folder whose `mod.rs` has a row.
fn formats(tree: &Tree) -> impl Iterator<Item = &str> {
    let has_row = move |folder: &str| {
        let path = format!("{FORMATS}/{folder}/mod.rs");
        let module = tree.sources.iter().find(|source| source.path == path);
        module.is_some_and(|module| scan::find(&module.tokens, "ROW : Row").next().is_some())
    };
    let is_word = |folder: &str| PRODUCT_WORDS.iter().any(|(word, _)| *word == folder);
    tree.folders_in(FORMATS).into_iter().filter(move |folder| has_row(folder) && !is_word(folder))
}

fn product(tree: &Tree) -> impl Iterator<Item = &Source> {
    let for_developers = |path: &str| FOR_DEVELOPERS.iter().any(|folder| inner_path(path, folder).is_some());
    tree.sources.iter().filter(move |source| !for_developers(&source.path))
}

fn in_core(source: &Source) -> bool {
    CORE.iter().any(|folder| inner_path(&source.path, folder).is_some())
}

/// Returns true for a file in the format's own folder.
fn is_of(source: &Source, format: &str) -> bool {
    inner_path(&source.path, FORMATS).is_some_and(|path| inner_path(path, format).is_some())
}

/// The first token of a file that names a format.
fn naming<'a>(source: &'a Source, format: &str) -> Option<&'a Token> {
    let tokens = &source.tokens;
    let named = |(at, token): &(usize, &Token)| {
        let names = words(token);
        let mut names = names.iter().filter(|name| names_format(name, format));
        !source.is_test(token.line)
            && !is_comment(tokens, *at)
            && names.any(|name| !has_other_meaning(source, *at, name))
    };
    tokens.iter().enumerate().find(named).map(|(_, token)| token)
}

/// Returns true if the format's name is a part of a name, also in the plural.
fn names_format(name: &str, format: &str) -> bool {
    let (parts, wanted) = (parts(name), parts(format));
    parts.windows(wanted.len()).any(|window| {
        window == wanted
            || (window.last().and_then(|last| last.strip_suffix('s')) == wanted.last().map(String::as_str)
                && window[..window.len() - 1] == wanted[..wanted.len() - 1])
    })
}

/// Returns true for a name of [`OTHER_MEANINGS`], unless it can only be the format: in `crates/formats`, as a value of
/// `Format`, or as a word alone in a string.
fn has_other_meaning(source: &Source, at: usize, name: &str) -> bool {
    let tokens = &source.tokens;
    let is_value = matches!(&tokens[..at], [.., owner, first, second]
        if owner.text == "Format" && first.text == ":" && second.text == ":");
    let snake = parts(name).join("_");
    let is_word = tokens[at].kind == TokenKind::Literal && !snake.contains('_');
    inner_path(&source.path, FORMATS).is_none()
        && !is_value
        && !is_word
        && OTHER_MEANINGS.iter().any(|(other, _)| *other == snake)
}

/// Returns true for the text of a doc comment, which is a string in an attribute to the parser.
fn is_comment(tokens: &[Token], at: usize) -> bool {
    matches!(&tokens[..at], [.., name, equals] if name.text == "doc" && equals.text == "=")
}

/// A name itself, and the words of a string.
fn words(token: &Token) -> Vec<String> {
    match token.kind {
        TokenKind::Sign => Vec::new(),
        TokenKind::Word => vec![token.text.clone()],
        TokenKind::Literal => {
            let text = token.text.replace("\\n", " ");
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
    }
}

/// The strings of a file outside comments and test code.
fn strings(source: &Source) -> impl Iterator<Item = &Token> {
    let tokens = source.tokens.iter().enumerate();
    let strings = tokens.filter(move |(at, token)| {
        token.kind == TokenKind::Literal && !is_comment(&source.tokens, *at) && !source.is_test(token.line)
    });
    strings.map(|(_, token)| token)
}

/// Strings of a format's folder that are a key or a word of the format: several words in lower case with `_`, because a
/// single one such as `name` is nobody's own.
fn keys_of(tree: &Tree, format: &str) -> Vec<String> {
    let is_key = |text: &str| {
        let lower = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        lower && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.contains('_')
    };
    let is_known = |key: &str| ENGINE_KEYS.iter().any(|(known, _)| *known == key);
    let own = tree.sources.iter().filter(|source| is_of(source, format));
    let texts = own.flat_map(strings);
    let texts = texts.filter_map(|token| token.text.strip_prefix('"')?.strip_suffix('"'));
    texts.filter(|text| is_key(text) && !is_known(text)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: (&str, &str) =
        ("crates/formats/src/recipe/mod.rs", "const ROW: Row = Row { name: \"recipe\" };\n");

    /// The paths with a finding, when these files are beside the format `recipe`.
    fn found(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<(&str, &str)> = [ROW].into_iter().chain(files.iter().copied()).collect();
        check(&Tree::of(&files)).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn four_files_may_name_a_format_and_five_may_not() {
        let texts = [
            ("crates/formats/src/format.rs", "enum Format { Recipe }\n"),
            ("crates/formats/src/lib.rs", "mod recipe;\n"),
            ("crates/switchward/src/a.rs", "const PAGE: &str = \"formats-recipe\";\n"),
            ("crates/gateway/src/b.rs", "fn a() {}\nfn read_recipes() {}\n"),
            ("crates/outbound/src/c.rs", "const A: &str = \"many\\nrecipes\";\n"),
        ];
        assert_eq!(found(&texts[..4]), []);
        let last_line = |(path, text): &(&str, &str)| ((*path).to_owned(), text.lines().count());
        let mut wanted: Vec<(String, usize)> = texts.iter().map(last_line).collect();
        wanted.sort();
        let mut all = found(&texts);
        all.sort();
        assert_eq!(all, wanted);
    }

    #[test]
    fn comments_tests_tools_longer_words_and_its_own_folder_do_not_count() {
        let others: Vec<String> = (0..9).map(|at| format!("crates/gateway/src/a{at}.rs")).collect();
        let text = "//! A recipe.\n/// A recipe.\nfn precipes() {} // recipe\n#[cfg(test)]\nmod tests {\n    \
                    fn recipe() {}\n}\n";
        let mut files: Vec<(&str, &str)> = others.iter().map(|path| (path.as_str(), text)).collect();
        files.extend([
            ("crates/formats/src/recipe/a.rs", "fn recipe() {}\n"),
            ("crates/gateway/tests/recipe.rs", "fn recipe() {}\n"),
            ("crates/bench/src/a.rs", "fn recipe() {}\n"),
            ("crates/xtask/src/a.rs", "fn recipe() {}\n"),
            ("crates/fuzz/src/a.rs", "fn recipe() {}\n"),
        ]);
        assert_eq!(found(&files), []);
    }

    #[test]
    fn the_core_names_no_format_and_no_key_that_only_a_format_has() {
        let key =
            ("crates/formats/src/recipe/read.rs", "const KEYS: &[&str] = &[\"name\", \"oven_heat\"];\n");
        for core in CORE {
            let path = format!("{core}/a.rs");
            let at = |line| vec![(path.clone(), line)];
            assert_eq!(found(&[key, (path.as_str(), "fn a() {}\nstruct Recipe;\n")]), at(2));
            assert_eq!(found(&[key, (path.as_str(), "const A: &str = \"no recipe\";\n")]), at(1));
            assert_eq!(found(&[key, (path.as_str(), "const A: &str = \"{oven_heat} is set\";\n")]), at(1));
            assert_eq!(found(&[key, (path.as_str(), "const A: &str = \"name\"; // oven_heat\n")]), []);
        }
        assert_eq!(found(&[key, ("crates/gateway/src/a.rs", "const A: &str = \"oven_heat\";\n")]), []);
    }

    #[test]
    fn a_name_with_another_meaning_counts_where_it_can_only_be_the_format() {
        let row = ("crates/formats/src/checkpoint/mod.rs", "const ROW: Row = Row {};\n");
        let count = |text: &str| {
            let paths: Vec<String> = (0..5).map(|at| format!("crates/gateway/src/a{at}.rs")).collect();
            let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), text)).collect();
            found(&[vec![row], files].concat()).len()
        };
        assert_eq!(count("fn a() { v1::Checkpoint::default(); b.checkpoint; answer_checkpoint(); }\n"), 0);
        assert_eq!(count("const A: &str = \"AnswerCheckpointResponse\";\n"), 0);
        assert_eq!(count("fn a() { v1::Format::Checkpoint; }\n"), 5);
        assert_eq!(count("const A: &str = \"--format checkpoint\";\n"), 5);
        assert_eq!(count("fn a() { check_checkpoints(); }\n"), 5);
        let texts = ["a", "b", "c", "d", "e"].map(|name| format!("crates/formats/src/{name}.rs"));
        let inside: Vec<(&str, &str)> =
            texts.iter().map(|path| (path.as_str(), "use crate::checkpoint;\n")).collect();
        assert_eq!(found(&[vec![row], inside].concat()).len(), 5);
    }

    #[test]
    fn few_names_are_exempt_and_each_has_a_reason() {
        let all = [PRODUCT_WORDS, OTHER_MEANINGS, ENGINE_KEYS].concat();
        assert!(all.len() <= 14);
        assert!(all.iter().all(|(name, reason)| !name.is_empty() && !reason.is_empty()));
    }
}
