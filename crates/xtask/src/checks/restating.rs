//! The comment of a field or a variant says more than its name and its type do.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::{Tree, inner_path};

const RULE: &str = "restating-comment";
/// The folder whose comments are not checked: they are help texts, printed beside the names.
const LEFT_OUT: &str = "crates/switchward/src/args";
/// Words that say nothing about a field by themselves: articles, pronouns, and what connects them.
const LITTLE: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "he", "her", "his", "how", "in", "is",
    "it", "its", "of", "on", "one", "or", "own", "she", "that", "the", "their", "them", "these", "they",
    "this", "those", "to", "was", "were", "what", "which", "who", "whom", "whose", "with",
];
/// A word of a comment counts as one of the name if they begin alike and differ by at most this many letters at the end.
const ENDING_MAX: usize = 3;
/// The letters at which two words must begin alike.
const STEM_MIN: usize = 3;

/// Looks at the comments of all fields and variants outside tests.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let checked = |source: &&Source| inner_path(&source.path, LEFT_OUT).is_none();
    tree.sources.iter().filter(checked).flat_map(findings_in).collect()
}

fn findings_in(source: &Source) -> Vec<Finding> {
    let mut comments = Comments::default();
    comments.visit_file(&source.syntax);
    let found = comments.0.into_iter().filter(|(line, _)| !source.is_test(*line));
    let finding = |(line, name): (usize, String)| {
        let message = format!(
            "the comment of `{name}` only repeats it; say whose it is, its unit, range or order, or when there is none"
        );
        Finding::new(&source.path, line, RULE, message)
    };
    found.map(finding).collect()
}

/// The comments that only repeat a name, with their lines and the names.
#[derive(Default)]
struct Comments(Vec<(usize, String)>);

impl Comments {
    fn look(&mut self, attributes: &[syn::Attribute], name: &str, types: Names) {
        let Names(mut known) = types;
        split(name, &mut known);
        let comment: Vec<(usize, String)> = attributes.iter().filter_map(line_of_comment).collect();
        let mut words = Vec::new();
        for (_, text) in &comment {
            split(text, &mut words);
        }
        let says_more = |word: &String| {
            !LITTLE.contains(&word.as_str()) && !known.iter().any(|known| are_alike(word, known))
        };
        if let Some((line, _)) = comment.first()
            && !words.is_empty()
            && !words.iter().any(says_more)
        {
            self.0.push((*line, name.to_owned()));
        }
    }
}

impl<'ast> Visit<'ast> for Comments {
    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            let mut types = Names::default();
            types.visit_type(&field.ty);
            self.look(&field.attrs, &name.to_string(), types);
        }
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        let mut types = Names::default();
        if let syn::Fields::Unnamed(fields) = &variant.fields {
            fields.unnamed.iter().for_each(|field| types.visit_type(&field.ty));
        }
        self.look(&variant.attrs, &variant.ident.to_string(), types);
        visit::visit_variant(self, variant);
    }
}

/// The words of the names in a type.
#[derive(Default)]
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, name: &'ast proc_macro2::Ident) {
        split(&name.to_string(), &mut self.0);
    }
}

/// The text of an attribute that is a line of a comment, and its line in the file.
fn line_of_comment(attribute: &syn::Attribute) -> Option<(usize, String)> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| (attribute.span().start().line, text.value()))
}

/// Appends the words of a text or a name, in lower case: a capital letter after a small one begins another word.
fn split(text: &str, words: &mut Vec<String>) {
    let mut word = String::new();
    let mut small = false;
    for c in text.chars().chain([' ']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && small) {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
}

/// Returns true for forms of one word, such as `gate` and `gates`.
fn are_alike(word: &str, name: &str) -> bool {
    let (short, long) = if word.len() <= name.len() { (word, name) } else { (name, word) };
    let ending = long.strip_prefix(short).map(str::len);
    word == name || (short.len() >= STEM_MIN && ending.is_some_and(|ending| ending <= ENDING_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_comment_that_only_repeats_the_name_or_the_type_is_reported() {
        let text = "struct A {\n    /// The session.\n    pub session: SessionId,\n    /// Who.\n    by: String,\n    \
                    /// Its open gates.\n    #[n(1)]\n    pub(crate) open: Vec<Gate>,\n}\n\
                    enum B {\n    /// The other server.\n    OtherServer(u64),\n    /// It is an API key.\n    Stored(ApiKey),\n    \
                    C {\n        /// The run\n        /// of it.\n        run: u64,\n    },\n}\n";
        assert_eq!(lines("crates/state/src/a.rs", text), [2, 4, 6, 11, 13, 16]);
        assert_eq!(lines("crates/state/tests/it/a.rs", text), [], "tests are not looked at");
        assert_eq!(lines("crates/switchward/src/args/a.rs", text), []);
    }

    #[test]
    fn a_comment_that_says_more_is_not_reported() {
        let text = "struct A {\n    /// The session that the gate is of.\n    session: SessionId,\n    /// From 1.\n    line: u32,\n    \
                    none: u8,\n    /// Milliseconds.\n    wait: u64,\n    /// The words of it, in order.\n    words: Vec<String>,\n}\n\
                    enum B {\n    /// `<=`\n    LessOrEqual,\n    /// No request came in time.\n    Late(Request),\n}\n\
                    #[cfg(test)]\nmod tests {\n    struct C {\n        /// The run.\n        run: u64,\n    }\n}\n";
        assert_eq!(lines("crates/state/src/a.rs", text), []);
    }

    #[test]
    fn a_finding_says_what_to_write() {
        let found = check(&Tree::of(&[(
            "crates/engine/src/a.rs",
            "struct A {\n    /// The run.\n    run: u64,\n}\n",
        )]));
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "crates/engine/src/a.rs:2: restating-comment: the comment of `run` only repeats it; say whose it is, its unit, range or order, or when there is none"
            ]
        );
    }
}
