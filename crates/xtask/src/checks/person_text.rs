//! The words that people read are in `messages`: the crates that decide, that deliver, and that build pages and mails have none.
//!
//! A sentence is a string with three words in a row. It is allowed where only developers and operators read it: in an
//! error, in `let message = ...` beside a rule that refuses, in a panic, in a log, and where the command line proposes a
//! command or asks for a confirmation. Test code is left out.

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::scan::{closing, is_sign};
use crate::source::{Source, Token, TokenKind, flatten};
use crate::tree::{Tree, inner_path};

const RULE: &str = "person-text";
/// The sources without words for people: folders, and files.
const WITHOUT_WORDS: &[&str] = &[
    "crates/engine/src",
    "crates/state/src",
    "crates/query/src",
    "crates/gateway/src",
    "crates/outbound/src",
    "crates/delivery/src",
    "crates/switchward/src",
];
/// Folders and files within them whose sentences are for developers, operators and models: errors that pass through other types
/// than those of [`ERRORS`], help, metrics, logs and prompts.
const FOR_OPERATORS: &[&str] = &[
    // What a caller's request lacks.
    "crates/gateway/src/api.rs",
    "crates/gateway/src/bodies.rs",
    "crates/gateway/src/calls.rs",
    "crates/gateway/src/convert/json.rs",
    "crates/gateway/src/error",
    "crates/gateway/src/mail/http.rs",
    "crates/gateway/src/transcode",
    "crates/gateway/src/webhooks",
    // Errors between servers.
    "crates/gateway/src/mail/others.rs",
    "crates/gateway/src/proxy",
    "crates/switchward/src/member",
    "crates/outbound/src/remote",
    // What the configuration of mail or of an OpenID provider lacks, and why a provider cannot be used.
    "crates/delivery/src/mail.rs",
    "crates/delivery/src/openid",
    "crates/delivery/src/openid.rs",
    // What a model is asked.
    "crates/delivery/src/model/anthropic.rs",
    "crates/delivery/src/model/question.rs",
    // The names of ranges of addresses.
    "crates/delivery/src/guard/ranges.rs",
    // Help of the command line and of metrics, and logs.
    "crates/switchward/src/args",
    "crates/switchward/src/exit.rs",
    "crates/switchward/src/metrics.rs",
    "crates/switchward/src/metrics/replicas.rs",
    "crates/switchward/src/start_checks.rs",
];
/// Errors, and functions that make one.
const ERRORS: &[&str] = &[
    "Rejection",
    "Refusal",
    "Refused",
    "ViewError",
    "FormError",
    "BadArgs",
    "Error",
    "DecodeError",
    "Exit",
    "Status",
    "invalid",
    "absent",
    "bad",
    "broken",
    "internal",
    "unknown_term",
];
/// What ends the process, makes or formats an error, writes a log, proposes a command, or asks for a confirmation. Errors of
/// the command line are for operators, and are written where they arise.
const FOR_DEVELOPERS: &[&str] = &[
    "anyhow",
    "bail",
    "ensure",
    "expect",
    "unreachable",
    "debug_assert",
    "debug_assert_ne",
    "write",
    "write_str",
    "error",
    "warn",
    "info",
    "debug",
    "advice",
    "next",
    "sure",
    "context",
    "with_context",
    "quota",
];
/// How a command begins that people may type.
const COMMAND: &str = "\"switchward ";
/// The name of a local variable that holds the message of an error.
const MESSAGE: &str = "message";

/// Looks at every string of the sources that have no words for people.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let without = |source: &&Source| is_in(source, WITHOUT_WORDS) && !is_in(source, FOR_OPERATORS);
    tree.sources.iter().filter(without).flat_map(findings_in).collect()
}

/// Returns true if a source is one of these files, or in one of these folders.
fn is_in(source: &Source, paths: &[&str]) -> bool {
    paths.iter().any(|path| source.path == *path || inner_path(&source.path, path).is_some())
}

fn findings_in(source: &Source) -> Vec<Finding> {
    let mut sentences = Sentences::default();
    sentences.visit_file(&source.syntax);
    let found = sentences.0.into_iter().filter(|(line, _)| !source.is_test(*line));
    let finding = |(line, text): (usize, String)| {
        let message = format!("{text} is a sentence: let crates/messages render it from facts");
        Finding::new(&source.path, line, RULE, message)
    };
    found.map(finding).collect()
}

/// The sentences that are not for developers, with their lines.
#[derive(Default)]
struct Sentences(Vec<(usize, String)>);

impl Sentences {
    fn look(&mut self, literal: &str, line: usize) {
        if literal.contains('"') && !literal.starts_with(COMMAND) && is_sentence(literal) {
            self.0.push((line, literal.lines().next().unwrap_or_default().to_owned()));
        }
    }
}

impl<'ast> Visit<'ast> for Sentences {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.look(&literal.token().to_string(), literal.span().start().line);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !binds_message(&local.pat) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let is_error = matches!(&*call.func, syn::Expr::Path(path) if names(&path.path, ERRORS));
        if !is_error {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if FOR_DEVELOPERS.iter().any(|name| call.method == name) {
            self.visit_expr(&call.receiver);
        } else {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if names(&call.path, FOR_DEVELOPERS) {
            return;
        }
        let mut tokens: Vec<Token> = Vec::new();
        flatten(call.tokens.clone(), &mut tokens);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            // Attributes, and with them documentation.
            if is_sign(token, &["#"]) && tokens.get(at + 1).is_some_and(|next| is_sign(next, &["["])) {
                at = closing(&tokens, at + 1);
            } else if FOR_DEVELOPERS.contains(&token.text.as_str())
                && tokens.get(at + 1).is_some_and(|next| is_sign(next, &["!"]))
            {
                // A macro within a macro.
                at = closing(&tokens, at + 2);
            } else if token.kind == TokenKind::Literal {
                self.look(&token.text, token.line);
            }
            at += 1;
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        // What a definition of a macro writes is Rust of any kind; its uses are looked at.
        if !item.mac.path.is_ident("macro_rules") {
            self.visit_macro(&item.mac);
        }
    }
}

/// Returns true if a path has one of these names.
fn names(path: &syn::Path, known: &[&str]) -> bool {
    path.segments.iter().any(|segment| known.iter().any(|name| segment.ident == name))
}

/// Returns true for `message`, also with a type.
fn binds_message(pattern: &syn::Pat) -> bool {
    if let syn::Pat::Type(typed) = pattern {
        return binds_message(&typed.pat);
    }
    matches!(pattern, syn::Pat::Ident(name) if name.ident == MESSAGE)
}

/// Returns true if a string has three words in a row. What stands in braces is no word.
fn is_sentence(literal: &str) -> bool {
    let mut words = 0_usize;
    // The end of a line that goes on in the next one is white space.
    for part in literal.replace("\\\n", " ").split_whitespace() {
        let word = part.trim_matches(['"', '\'', ',', ';', ':', '.', '?', '!']);
        let is_word = !word.is_empty() && word.chars().all(|sign| sign.is_alphabetic() || sign == '\'');
        words = if is_word { words + 1 } else { 0 };
        if words == 3 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn sentences_for_people_are_reported() {
        let text = "const A: &str = \"the session was paused\";\n\
                    fn b(by: &str) -> String {\n    format!(\"a reply vouched by {by}\")\n}\n\
                    fn c() -> Notice {\n    Notice { subject: \"Re: the request\".into(), body: \"Your decision is recorded.\".into() }\n}\n\
                    fn d() {\n    odd.push(format!(\"{name} leads to no address\"));\n    let text = \"it is still open\";\n}\n";
        assert_eq!(lines("crates/engine/src/approval/a.rs", text), [1, 3, 6, 6, 9, 10]);
        assert_eq!(lines("crates/state/src/catalogue/a.rs", text).len(), 6);
        let page = "fn a() -> Markup {\n    html! { p { \"This page does not know you yet.\" } }\n}\n";
        assert_eq!(lines("crates/gateway/src/decision.rs", page), [2]);
        assert_eq!(lines("crates/gateway/src/decision/page.rs", page), [2]);
        assert_eq!(lines("crates/switchward/src/commands/doctor.rs", page), [2]);
        assert_eq!(lines("crates/switchward/src/home.rs", page), [2]);
        let failed =
            "fn a() -> Failed {\n    Failed::new(DeliveryReason::Timeout, \"the server took too long\")\n}\n";
        assert_eq!(lines("crates/delivery/src/channels/mail.rs", failed), [2]);
        assert_eq!(lines("crates/outbound/src/ping.rs", failed), [2]);
        let question = "fn a(call: &str) -> String {\n    format!(\"may the agent call {call}?\")\n}\n";
        assert_eq!(lines("crates/gateway/src/convert/gates.rs", question), [2]);
    }

    #[test]
    fn what_developers_and_operators_read_is_not_reported() {
        let text = "//! What this is about.\n/// What is done here.\n#[expect(dead_code, reason = \"it is used later\")]\n\
                    fn a() -> Result<(), Stop> {\n    let none = || Rejection::new(Reason::NotFound, \"there is no such gate\");\n    \
                    let message = if b { format!(\"more than {c} effects in one go\") } else { \"there are too many\".into() };\n    \
                    d.ok_or_else(|| ViewError(format!(\"the machine has no {e:?}\")))?;\n    \
                    Err(switchward_state::ViewError(\"the run stands nowhere\".into()))?;\n    \
                    f.expect(\"every node has one\");\n    tracing::warn!(\"a page could not be read\");\n    \
                    anyhow::ensure!(b, \"the folder is in use\");\n    let e = anyhow!(\"the server has ended\");\n    \
                    g.with(\"two words\").with(\"a {b} c {d} e\")\n}\n\
                    fn h() -> Result<(), Stop> {\n    tokio::select! { () = stop => tracing::debug!(\"the call was cut off\") }\n    \
                    i.ok_or_else(|| Refusal::field(\"id\", \"must be a number\"))\n}\n\
                    reasons! {\n    /// The session is paused.\n    Paused = \"PAUSED\",\n}\n\
                    #[cfg(test)]\nmod tests {\n    const H: &str = \"what a test says\";\n}\n";
        assert_eq!(lines("crates/engine/src/a.rs", text), []);
        let operators = "fn a() -> String { \"the server has no quarantine\".into() }\n";
        assert_eq!(lines("crates/gateway/src/proxy/links.rs", operators), []);
        assert_eq!(lines("crates/switchward/src/exit.rs", operators), []);
        assert_eq!(lines("crates/outbound/src/remote/form.rs", operators), []);
        assert_eq!(lines("crates/delivery/src/model/question.rs", operators), []);
        assert_eq!(lines("crates/switchward/src/exit/refused.rs", operators), [1]);
        let message = "fn a() -> String { \"your answer is recorded\".into() }\n";
        assert_eq!(lines("crates/messages/src/en/a.rs", message), []);
        assert_eq!(lines("crates/engine/tests/a.rs", message), []);
    }

    #[test]
    fn a_finding_says_what_to_do() {
        let found =
            check(&Tree::of(&[("crates/engine/src/a.rs", "const A: &str = \"your answer is recorded\";\n")]));
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "crates/engine/src/a.rs:1: person-text: \"your answer is recorded\" is a sentence: let crates/messages render it from facts"
            ]
        );
    }
}
