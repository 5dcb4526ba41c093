//! A function fits on a screen.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::scan;
use crate::source::{Source, Token, TokenKind, flatten};
use crate::tree::Tree;

const RULE: &str = "function-length";
/// Lines of a function, tests too, from its signature to its closing brace.
const LINES_MAX: usize = 70;

/// Measures every function, also those inside a macro's brackets.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for function in of(source) {
            let lines = function.lines();
            if lines > LINES_MAX {
                let message = format!("`{}` has {lines} lines, {LINES_MAX} are allowed", function.name);
                findings.push(Finding::new(&source.path, function.first_line, RULE, message));
            }
        }
    }
    findings
}

/// A function with a body.
#[derive(Debug)]
pub(crate) struct Function {
    /// The name without its module and its type.
    pub(crate) name: String,
    /// The line of its signature, from 1.
    pub(crate) first_line: usize,
    last_line: usize,
}

impl Function {
    /// Lines from the signature to the closing brace.
    pub(crate) fn lines(&self) -> usize {
        self.last_line - self.first_line + 1
    }
}

/// Every function of a source with its body, also those inside a macro's brackets.
pub(crate) fn of(source: &Source) -> Vec<Function> {
    let mut functions = Functions::default();
    functions.visit_file(&source.syntax);
    functions.found
}

#[derive(Default)]
struct Functions {
    found: Vec<Function>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        self.found.push(Function {
            name: signature.ident.to_string(),
            first_line: signature.span().start().line,
            last_line: block.span().end().line,
        });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let mut tokens = Vec::new();
        flatten(called.tokens.clone(), &mut tokens);
        self.found.extend((0..tokens.len()).filter_map(|start| function_at(&tokens, start)));
    }
}

/// The function whose `fn` stands at `start` in a macro's brackets.
fn function_at(tokens: &[Token], start: usize) -> Option<Function> {
    let is_word = |token: &Token| token.kind == TokenKind::Word;
    let keyword = &tokens[start];
    let name = tokens.get(start + 1).filter(|token| is_word(token))?;
    if !is_word(keyword) || keyword.text != "fn" {
        return None;
    }
    let mut index = start;
    while !scan::is_sign(tokens.get(index)?, &["{", ";"]) {
        let opens = scan::is_sign(&tokens[index], &["(", "["]);
        index = if opens { scan::closing(tokens, index) + 1 } else { index + 1 };
    }
    if tokens[index].text == ";" {
        return None;
    }
    let last = scan::closing(tokens, index);
    Some(Function { name: name.text.clone(), first_line: keyword.line, last_line: tokens[last].line })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of `lines` lines, signature and brace counted.
    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    fn findings(text: &str) -> Vec<String> {
        check(&Tree::of(&[("crates/x/src/lib.rs", text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn seventy_lines_are_allowed_and_attributes_are_not_counted() {
        assert_eq!(findings(&format!("/// Docs.\n#[inline]\n{}", function(70))), Vec::<String>::new());
    }

    #[test]
    fn a_longer_function_is_reported_at_its_signature() {
        assert_eq!(
            findings(&format!("/// Docs.\n{}", function(71))),
            ["crates/x/src/lib.rs:2: function-length: `f` has 71 lines, 70 are allowed"]
        );
    }

    #[test]
    fn methods_and_functions_in_modules_functions_and_macros_are_found() {
        let long = function(71);
        for text in [
            format!("impl A {{\n{long}}}\n"),
            format!("trait A {{\n{long}}}\n"),
            format!("mod a {{\n{long}}}\n"),
            format!("proptest! {{\n{long}}}\n"),
        ] {
            assert_eq!(
                findings(&text),
                ["crates/x/src/lib.rs:2: function-length: `f` has 71 lines, 70 are allowed"]
            );
        }
        let nested = findings(&format!("fn outer() {{\n{long}}}\n"));
        assert_eq!(nested.len(), 2, "the outer function is as long as what it holds: {nested:?}");
    }
}
