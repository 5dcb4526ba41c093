//! The names in a body, with their offsets: what it reads of the data, and unknown names.
//!
//! Names are slices of the source, so that each offset is exact. A local name is known from its assignment to the end
//! of its block.

use std::sync::Arc;

use minijinja::machinery::ast::{self, CallArg, Expr, Spanned, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::meter::Meter;
use super::{JinjaError, JinjaLimits, compile, filters, methods};
use crate::brace;
use crate::limits::{KNOWN_NAME_BYTES_MAX, KNOWN_NAMES_MAX};
use crate::mention::{Mention, Name, NameKind};

/// The keywords of tags.
const TAGS: [&str; 15] = [
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "with",
    "endwith",
    "filter",
    "endfilter",
    "autoescape",
    "endautoescape",
    "raw",
];
/// Tags that are accepted and not documented.
const QUIET_TAGS: [&str; 2] = ["do", "endraw"];
/// The fields of a loop's own variable.
const LOOP: &str = "loop";
const LOOP_FIELDS: [&str; 11] = [
    "index",
    "index0",
    "revindex",
    "revindex0",
    "first",
    "last",
    "length",
    "depth",
    "depth0",
    "previtem",
    "nextitem",
];
const LOOP_METHODS: [&str; 2] = ["cycle", "changed"];

/// What a body mentions; `roots` are the names of the data. If a tag is unknown, only unknown tags are returned.
///
/// # Errors
/// The text is not a valid body; with the line of the first fault.
pub fn mentions(source: &str, roots: &[&str]) -> Result<Vec<Mention>, JinjaError> {
    let plain = compile::plain_line_ends(source);
    let mut found = unknown_tags(&plain);
    if found.is_empty() {
        compile::compile(&plain)?;
        let tree =
            parse(&plain, "body", SyntaxConfig::default()).map_err(|error| compile::jinja_error(&error))?;
        let meter = Arc::new(Meter::new(&JinjaLimits { fuel: 0, depth: 0, bytes: 0 }));
        let environment = filters::environment(&meter);
        let functions = environment.globals().map(|(name, _)| name.to_owned());
        let functions = functions.filter(|name| !name.starts_with('\u{1}')).collect();
        let mut walk = Walk { source: &plain, roots, functions, scopes: vec![Vec::new()], loops: 0, found };
        walk.stmt(&tree);
        found = walk.found;
    }
    if plain.len() != source.len() {
        let offsets = offsets(source);
        let back = |name: &mut Name| name.at = offsets.get(name.at).copied().unwrap_or(name.at);
        for mention in &mut found {
            match mention {
                Mention::Data(names) => names.iter_mut().for_each(back),
                Mention::Unknown { name, .. } | Mention::Literal(name) | Mention::Word(name) => back(name),
            }
        }
    }
    Ok(found)
}

/// For each byte of the text with plain line ends, its offset in the text as written.
fn offsets(source: &str) -> Vec<usize> {
    let bytes = source.as_bytes();
    let follows = |at: usize| at > 0 && bytes[at] == b'\n' && bytes[at - 1] == b'\r';
    (0..bytes.len()).filter(|at| !follows(*at)).collect()
}

fn unknown_tags(source: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut opens = false;
    for token in tokenize(source, false, SyntaxConfig::default()) {
        // The parser reports what cannot be read.
        let Ok((token, _)) = token else { return Vec::new() };
        if let Token::Ident(word) = token
            && opens
            && !TAGS.contains(&word)
            && !QUIET_TAGS.contains(&word)
        {
            let known = TAGS.map(str::to_owned).into();
            found.push(Mention::Unknown { kind: NameKind::Tag, name: named(source, word), known });
        }
        opens = matches!(token, Token::BlockStart);
    }
    found
}

/// A name that is a slice of the source.
fn named(source: &str, part: &str) -> Name {
    let at = part.as_ptr().addr().saturating_sub(source.as_ptr().addr());
    Name { text: part.to_owned(), at }
}

struct Walk<'s> {
    source: &'s str,
    roots: &'s [&'s str],
    functions: Vec<String>,
    /// Local names, from the outside in.
    scopes: Vec<Vec<String>>,
    /// The number of enclosing loops.
    loops: usize,
    found: Vec<Mention>,
}

impl Walk<'_> {
    fn stmts(&mut self, all: &[Stmt<'_>]) {
        all.iter().for_each(|it| self.stmt(it));
    }

    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        inside(self);
        self.scopes.pop();
    }

    fn stmt(&mut self, it: &Stmt<'_>) {
        match it {
            Stmt::Template(node) => self.stmts(&node.children),
            Stmt::EmitExpr(node) => self.expr(&node.expr),
            Stmt::EmitRaw(node) => self.raw(node.raw),
            Stmt::ForLoop(node) => self.for_loop(node),
            Stmt::IfCond(node) => {
                self.expr(&node.expr);
                self.stmts(&node.true_body);
                self.stmts(&node.false_body);
            }
            Stmt::WithBlock(node) => self.scoped(|walk| {
                for (to, from) in &node.assignments {
                    walk.expr(from);
                    walk.assign(to);
                }
                walk.stmts(&node.body);
            }),
            Stmt::Set(node) => {
                self.expr(&node.expr);
                self.assign(&node.target);
            }
            Stmt::SetBlock(node) => {
                node.filter.iter().for_each(|filter| self.expr(filter));
                self.stmts(&node.body);
                self.assign(&node.target);
            }
            Stmt::AutoEscape(node) => {
                self.expr(&node.enabled);
                self.stmts(&node.body);
            }
            Stmt::FilterBlock(node) => {
                self.expr(&node.filter);
                self.stmts(&node.body);
            }
            Stmt::Do(node) => self.call(&node.call),
        }
    }

    fn for_loop(&mut self, node: &ast::ForLoop<'_>) {
        self.expr(&node.iter);
        self.scoped(|walk| {
            walk.assign(&node.target);
            walk.loops += 1;
            node.filter_expr.iter().for_each(|filter| walk.expr(filter));
            walk.stmts(&node.body);
            walk.loops -= 1;
        });
        self.scoped(|walk| walk.stmts(&node.else_body));
    }

    /// Text between tags: single braces hold no references here.
    fn raw(&mut self, text: &str) {
        let start = named(self.source, text).at;
        for (at, reference) in brace::written(text) {
            self.found.push(Mention::Literal(Name { text: reference.to_owned(), at: start + at }));
        }
    }

    fn assign(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(node) => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.push(node.id.to_owned());
                }
            }
            Expr::List(node) => node.items.iter().for_each(|item| self.assign(item)),
            Expr::Tuple(node) => node.items.iter().for_each(|item| self.assign(item)),
            Expr::Const(_)
            | Expr::Slice(_)
            | Expr::UnaryOp(_)
            | Expr::BinOp(_)
            | Expr::Compare(_)
            | Expr::IfExpr(_)
            | Expr::Filter(_)
            | Expr::Test(_)
            | Expr::GetAttr(_)
            | Expr::GetItem(_)
            | Expr::Call(_)
            | Expr::Map(_) => self.expr(target),
        }
    }

    fn expr(&mut self, it: &Expr<'_>) {
        if let Some(names) = self.data(it) {
            if !names.is_empty() {
                self.found.push(Mention::Data(names));
            }
            self.defaults(it);
            return;
        }
        match it {
            Expr::Var(node) => self.variable(node.id),
            Expr::Const(_) => {}
            Expr::Slice(node) => {
                self.expr(&node.expr);
                [&node.start, &node.stop, &node.step].into_iter().flatten().for_each(|part| self.expr(part));
            }
            Expr::UnaryOp(node) => self.expr(&node.expr),
            Expr::BinOp(node) => [&node.left, &node.right].into_iter().for_each(|side| self.expr(side)),
            Expr::Compare(node) => {
                self.expr(&node.expr);
                node.ops.iter().for_each(|op| self.expr(&op.expr));
            }
            Expr::IfExpr(node) => {
                self.expr(&node.test_expr);
                self.expr(&node.true_expr);
                node.false_expr.iter().for_each(|other| self.expr(other));
            }
            Expr::Filter(node) => self.filter(node),
            Expr::Test(node) => {
                self.expr(&node.expr);
                self.offered(NameKind::Test, named(self.source, node.name));
                self.args(&node.args);
            }
            Expr::GetAttr(node) => self.attribute(node),
            Expr::GetItem(node) => {
                self.expr(&node.expr);
                self.expr(&node.subscript_expr);
            }
            Expr::Call(node) => self.call(node),
            Expr::List(node) => node.items.iter().for_each(|item| self.expr(item)),
            Expr::Tuple(node) => node.items.iter().for_each(|item| self.expr(item)),
            Expr::Map(node) => node.keys.iter().chain(&node.values).for_each(|part| self.expr(part)),
        }
    }

    /// The names below a root of the data, if the expression is only such a path.
    fn data(&self, it: &Expr<'_>) -> Option<Vec<Name>> {
        let (inner, name) = match it {
            Expr::Var(node) => {
                let is_root = self.roots.contains(&node.id) && !self.is_local(node.id);
                return is_root.then(Vec::new);
            }
            Expr::GetAttr(node) => (&node.expr, named(self.source, node.name)),
            Expr::GetItem(node) => (&node.expr, constant(&node.subscript_expr)?),
            Expr::Call(node) => match (&node.expr, node.args.first()) {
                (Expr::GetAttr(callee), Some(CallArg::Pos(key))) if callee.name == "get" => {
                    (&callee.expr, constant(key)?)
                }
                _ => return None,
            },
            Expr::Const(_)
            | Expr::Slice(_)
            | Expr::UnaryOp(_)
            | Expr::BinOp(_)
            | Expr::Compare(_)
            | Expr::IfExpr(_)
            | Expr::Filter(_)
            | Expr::Test(_)
            | Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Map(_) => return None,
        };
        let mut names = self.data(inner)?;
        names.push(name);
        Some(names)
    }

    /// What a path of the data falls back to: the arguments of each `get` after the name.
    fn defaults(&mut self, path: &Expr<'_>) {
        match path {
            Expr::GetAttr(node) => self.defaults(&node.expr),
            Expr::GetItem(node) => self.defaults(&node.expr),
            Expr::Call(node) => {
                self.args(node.args.get(1..).unwrap_or_default());
                if let Expr::GetAttr(callee) = &node.expr {
                    self.defaults(&callee.expr);
                }
            }
            Expr::Var(_)
            | Expr::Const(_)
            | Expr::Slice(_)
            | Expr::UnaryOp(_)
            | Expr::BinOp(_)
            | Expr::Compare(_)
            | Expr::IfExpr(_)
            | Expr::Filter(_)
            | Expr::Test(_)
            | Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Map(_) => {}
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.scopes.iter().flatten().any(|known| known == name)
    }

    fn variable(&mut self, id: &str) {
        let in_loop = id == LOOP && self.loops > 0;
        if self.is_local(id) || in_loop || self.functions.iter().any(|known| known == id) {
            return;
        }
        let short = |name: &&String| name.len() <= KNOWN_NAME_BYTES_MAX;
        let locals = self.scopes.iter().flatten().rev().filter(short).cloned();
        let known = self.roots.iter().map(|root| (*root).to_owned()).chain(locals);
        let known = known.chain((self.loops > 0).then(|| LOOP.to_owned()));
        self.unknown(NameKind::Variable, named(self.source, id), known.take(KNOWN_NAMES_MAX).collect());
    }

    fn unknown(&mut self, kind: NameKind, name: Name, mut known: Vec<String>) {
        known.truncate(KNOWN_NAMES_MAX);
        self.found.push(Mention::Unknown { kind, name, known });
    }

    /// Reports a filter or a test that does not exist.
    fn offered(&mut self, kind: NameKind, name: Name) {
        let known: Vec<&str> = match kind {
            NameKind::Filter => filters::filters().collect(),
            NameKind::Test => filters::tests().collect(),
            NameKind::Variable
            | NameKind::LoopField
            | NameKind::Function
            | NameKind::Method
            | NameKind::Tag => return,
        };
        if !known.contains(&name.text.as_str()) {
            self.unknown(kind, name, known.into_iter().map(str::to_owned).collect());
        }
    }

    fn is_loop(&self, it: &Expr<'_>) -> bool {
        matches!(it, Expr::Var(node) if node.id == LOOP) && self.loops > 0 && !self.is_local(LOOP)
    }

    fn attribute(&mut self, node: &ast::GetAttr<'_>) {
        if self.is_loop(&node.expr) {
            if !LOOP_FIELDS.contains(&node.name) {
                let known = LOOP_FIELDS.map(str::to_owned).into();
                self.unknown(NameKind::LoopField, named(self.source, node.name), known);
            }
            return;
        }
        self.expr(&node.expr);
    }

    fn filter(&mut self, node: &ast::Filter<'_>) {
        node.expr.iter().for_each(|inner| self.expr(inner));
        self.offered(NameKind::Filter, named(self.source, node.name));
        self.args(&node.args);
        // Filters that take the name of another filter or of a test.
        let (at, kind) = match node.name {
            "map" => (0, NameKind::Filter),
            "select" | "reject" => (0, NameKind::Test),
            "selectattr" | "rejectattr" => (1, NameKind::Test),
            _ => return,
        };
        if let Some(CallArg::Pos(argument)) = node.args.get(at)
            && let Some(name) = constant(argument)
        {
            self.offered(kind, name);
        }
    }

    fn call(&mut self, node: &Spanned<ast::Call<'_>>) {
        match &node.expr {
            Expr::Var(callee) => {
                let known = self.functions.iter().any(|known| known == callee.id);
                let in_loop = callee.id == LOOP && self.loops > 0;
                if !known && !in_loop && !self.is_local(callee.id) {
                    let known = self.functions.clone();
                    self.unknown(NameKind::Function, named(self.source, callee.id), known);
                }
            }
            Expr::GetAttr(callee) => {
                let of_loop = self.is_loop(&callee.expr);
                let known: &[&str] = if of_loop { &LOOP_METHODS } else { &methods::NAMES };
                if !known.contains(&callee.name) {
                    let known = known.iter().map(|name| (*name).to_owned()).collect();
                    self.unknown(NameKind::Method, named(self.source, callee.name), known);
                }
                if !of_loop {
                    self.expr(&callee.expr);
                }
            }
            other @ (Expr::Const(_)
            | Expr::Slice(_)
            | Expr::UnaryOp(_)
            | Expr::BinOp(_)
            | Expr::Compare(_)
            | Expr::IfExpr(_)
            | Expr::Filter(_)
            | Expr::Test(_)
            | Expr::GetItem(_)
            | Expr::Call(_)
            | Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Map(_)) => self.expr(other),
        }
        self.args(&node.args);
    }

    fn args(&mut self, all: &[CallArg<'_>]) {
        for arg in all {
            match arg {
                CallArg::Pos(it)
                | CallArg::Kwarg(_, it)
                | CallArg::PosSplat(it)
                | CallArg::KwargSplat(it) => self.expr(it),
            }
        }
    }
}

/// A constant as the name of a value inside another: a quoted text, or a position.
fn constant(it: &Expr<'_>) -> Option<Name> {
    let Expr::Const(node) = it else { return None };
    let at = usize::try_from(node.span().start_offset).ok()?;
    if let Some(text) = node.value.as_str() {
        return Some(Name { text: text.to_owned(), at: at + 1 });
    }
    node.value.is_integer().then(|| Name { text: node.value.to_string(), at })
}

#[cfg(test)]
mod tests;
