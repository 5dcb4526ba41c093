//! A comment says more than the names beside it: those of the item, field or variant, of its type, and of a function's
//! arguments, result and own type; for a file, its name and its folder's.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::{Tree, inner_path};

const RULE: &str = "restating-comment";
/// The folder whose fields and variants are not checked: their comments are help texts, printed beside the names.
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

/// Words that say nothing about a function by themselves.
const LITTLE_OF_FUNCTIONS: &[&str] = &["does", "gets", "given", "makes", "returns", "this"];

/// Looks at the comments of all items, fields and variants outside tests.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(findings_in).collect()
}

fn findings_in(source: &Source) -> Vec<Finding> {
    let help = inner_path(&source.path, LEFT_OUT).is_some();
    let mut comments = Comments { help, ..Comments::default() };
    comments.look(&source.syntax.attrs, &module_name(&source.path), Names::default(), &[]);
    comments.visit_file(&source.syntax);
    let found = comments.found.into_iter().filter(|(line, _)| !source.is_test(*line));
    let finding = |(line, name): (usize, String)| {
        let message = format!(
            "the comment of `{name}` only repeats it; say whose it is, its unit, range or order, or when there is none"
        );
        Finding::new(&source.path, line, RULE, message)
    };
    found.map(finding).collect()
}

/// The name that a file has as a module: that of the file, or of its folder or its crate, with the folder around it.
fn module_name(path: &str) -> String {
    let parts = path.trim_end_matches(".rs").split('/');
    let named: Vec<&str> = parts.filter(|part| !matches!(*part, "src" | "lib" | "main" | "mod")).collect();
    named[named.len().saturating_sub(2)..].join("::")
}

/// The comments that only repeat a name, with their lines and the names.
#[derive(Default)]
struct Comments {
    found: Vec<(usize, String)>,
    /// The names of the type that the visited block implements, or of the visited trait.
    owner: Names,
    /// True if comments of fields and variants are help texts.
    help: bool,
}

impl Comments {
    fn look(&mut self, attributes: &[syn::Attribute], name: &str, types: Names, little: &[&str]) {
        let Names(mut known) = types;
        split(name, &mut known);
        let comment: Vec<(usize, String)> = attributes.iter().filter_map(line_of_comment).collect();
        let mut words = Vec::new();
        for (_, text) in &comment {
            split(text, &mut words);
        }
        let says_more = |word: &String| {
            let word = word.as_str();
            !LITTLE.contains(&word)
                && !little.contains(&word)
                && !known.iter().any(|known| are_alike(word, known))
        };
        if let Some((line, _)) = comment.first()
            && !words.is_empty()
            && !words.iter().any(says_more)
        {
            self.found.push((*line, name.to_owned()));
        }
    }

    /// Looks at the comment of a function, whose arguments, result and type it may repeat, too.
    fn look_at_function(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature) {
        let mut types = self.owner.clone();
        types.visit_signature(signature);
        self.look(attributes, &signature.ident.to_string(), types, LITTLE_OF_FUNCTIONS);
    }
}

impl<'ast> Visit<'ast> for Comments {
    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = field.ident.as_ref().filter(|_| !self.help) {
            self.look(&field.attrs, &name.to_string(), Names::of_type(&field.ty), &[]);
        }
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        let mut types = Names::default();
        if let syn::Fields::Unnamed(fields) = &variant.fields {
            fields.unnamed.iter().for_each(|field| types.visit_type(&field.ty));
        }
        if !self.help {
            self.look(&variant.attrs, &variant.ident.to_string(), types, &[]);
        }
        visit::visit_variant(self, variant);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "syn's list of items grows with the language")]
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let none = Names::default();
        match item {
            syn::Item::Const(it) => self.look(&it.attrs, &it.ident.to_string(), Names::of_type(&it.ty), &[]),
            syn::Item::Enum(it) => self.look(&it.attrs, &it.ident.to_string(), none, &[]),
            syn::Item::Fn(it) => self.look_at_function(&it.attrs, &it.sig),
            syn::Item::Mod(it) => self.look(&it.attrs, &it.ident.to_string(), none, &[]),
            syn::Item::Static(it) => self.look(&it.attrs, &it.ident.to_string(), Names::of_type(&it.ty), &[]),
            syn::Item::Struct(it) => self.look(&it.attrs, &it.ident.to_string(), none, &[]),
            syn::Item::Trait(it) => self.look(&it.attrs, &it.ident.to_string(), none, &[]),
            syn::Item::Type(it) => self.look(&it.attrs, &it.ident.to_string(), Names::of_type(&it.ty), &[]),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let before = std::mem::replace(&mut self.owner, Names::of_type(&item.self_ty));
        visit::visit_item_impl(self, item);
        self.owner = before;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let mut names = Names::default();
        names.visit_ident(&item.ident);
        let before = std::mem::replace(&mut self.owner, names);
        visit::visit_item_trait(self, item);
        self.owner = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look_at_function(&item.attrs, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.look_at_function(&item.attrs, &item.sig);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.look(&item.attrs, &item.ident.to_string(), Names::of_type(&item.ty), &[]);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.look(&item.attrs, &item.ident.to_string(), Names::of_type(&item.ty), &[]);
        visit::visit_trait_item_const(self, item);
    }
}

/// The words of the names in a type or a signature.
#[derive(Default, Clone)]
struct Names(Vec<String>);

impl Names {
    fn of_type(form: &syn::Type) -> Self {
        let mut names = Self::default();
        names.visit_type(form);
        names
    }
}

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
    fn comments_of_items_that_only_repeat_names_are_reported() {
        let text = "/// The limit, bytes.\nconst LIMIT_BYTES: usize = 1;\n\
                    /// A permit.\nstruct Permit;\n/// The kinds.\nenum Kind {}\n/// A gate.\ntype Open = Gate;\n\
                    /// The row of this key.\nfn get(key: &Key) -> Row {}\n\
                    impl Batch {\n    /// Encodes the batch.\n    fn encode(&self) {}\n    /// Its size.\n    const SIZE: u8 = 1;\n}\n\
                    trait Log {\n    /// Returns the log.\n    fn it(&self);\n}\n/// The tools.\nmod tools {}\n";
        assert_eq!(lines("crates/state/src/a.rs", text), [1, 3, 5, 7, 9, 12, 14, 18, 21]);
        assert_eq!(lines("crates/switchward/src/args/a.rs", text), [1, 3, 5, 7, 9, 12, 14, 18, 21]);
        assert_eq!(lines("crates/testkit/src/a.rs", text), [], "tests are not looked at");
    }

    #[test]
    fn comments_of_items_that_say_more_are_not_reported() {
        let text = "/// The longest message.\nconst LIMIT_BYTES: usize = 1;\n/// A guard.\nstruct Permit;\n\
                    /// The row of this key.\nfn get(at: u8) -> u8 {}\nfn none() {}\n\
                    impl Batch {\n    /// Encodes the batch.\n    ///\n    /// # Errors\n    /// It is empty.\n    fn encode(&self) {}\n}\n\
                    impl Other {\n    /// Encodes the batch.\n    fn encode(&self) {}\n}\n";
        assert_eq!(lines("crates/state/src/a.rs", text), []);
    }

    #[test]
    fn the_comment_of_a_file_that_only_repeats_its_path_is_reported() {
        let tenants = "//! The tenants of the service.\n\nfn a() {}\n";
        assert_eq!(lines("crates/gateway/src/services/tenants.rs", tenants), [1]);
        assert_eq!(lines("crates/gateway/src/services/tenants/mod.rs", tenants), [1]);
        assert_eq!(lines("crates/gateway/src/tenants.rs", tenants), [], "its folder is another one");
        assert_eq!(lines("crates/bus/src/lib.rs", "//! The bus.\n"), [1]);
        assert_eq!(lines("crates/bus/src/lib.rs", "//! The bus that carries jobs.\n"), []);
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
