//! Puts guards into a template's syntax tree.
//!
//! Fuel counts steps, and one step may be as large as its values: a text doubled forty times is forty steps. So
//! every step that makes a value larger hands it to a guard, which charges its size; every comparison charges one
//! side; repetition is done by a guard alone, as it would otherwise be done while the template is compiled; and what
//! is written between the tags is emitted as a value, so that it passes the one place where output is counted.

use minijinja::Value;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Spanned, Stmt};

/// Charges a value's size and returns it unchanged, lazy sequences as lists. A template cannot spell this name.
pub(super) const PLAIN: &str = "\u{1}plain";
/// Charges a text's length, because its characters are counted from its beginning, and returns it.
pub(super) const TOUCHED: &str = "\u{1}touched";
/// The slice of a value: `value[start:stop:step]`.
pub(super) const SLICED: &str = "\u{1}sliced";
/// The operator `*`.
pub(super) const TIMES: &str = "\u{1}times";

/// The same statement with guards in it.
pub(super) fn stmt<'a>(it: &Stmt<'a>) -> Stmt<'a> {
    match it {
        Stmt::Template(node) => {
            Stmt::Template(Spanned::new(ast::Template { children: stmts(&node.children) }, node.span()))
        }
        Stmt::EmitExpr(node) => {
            Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: expr(&node.expr) }, node.span()))
        }
        Stmt::EmitRaw(node) => {
            let value = Value::from_safe_string(node.raw.to_owned());
            let raw = Expr::Const(Spanned::new(ast::Const { value }, node.span()));
            Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: raw }, node.span()))
        }
        Stmt::ForLoop(node) => Stmt::ForLoop(Spanned::new(for_loop(node), node.span())),
        Stmt::IfCond(node) => {
            let (true_body, false_body) = (stmts(&node.true_body), stmts(&node.false_body));
            Stmt::IfCond(Spanned::new(
                ast::IfCond { expr: expr(&node.expr), true_body, false_body },
                node.span(),
            ))
        }
        Stmt::WithBlock(node) => {
            let assignments = node.assignments.iter().map(|(to, from)| (target(to), expr(from))).collect();
            Stmt::WithBlock(Spanned::new(
                ast::WithBlock { assignments, body: stmts(&node.body) },
                node.span(),
            ))
        }
        Stmt::Set(node) => {
            let set = ast::Set { target: target(&node.target), expr: expr(&node.expr) };
            Stmt::Set(Spanned::new(set, node.span()))
        }
        Stmt::SetBlock(node) => {
            let filter = node.filter.as_ref().map(expr);
            let set = ast::SetBlock { target: target(&node.target), filter, body: stmts(&node.body) };
            Stmt::SetBlock(Spanned::new(set, node.span()))
        }
        Stmt::AutoEscape(node) => {
            let block = ast::AutoEscape { enabled: expr(&node.enabled), body: stmts(&node.body) };
            Stmt::AutoEscape(Spanned::new(block, node.span()))
        }
        Stmt::FilterBlock(node) => {
            let block = ast::FilterBlock { filter: expr(&node.filter), body: stmts(&node.body) };
            Stmt::FilterBlock(Spanned::new(block, node.span()))
        }
        Stmt::Do(node) => Stmt::Do(Spanned::new(ast::Do { call: call(&node.call) }, node.span())),
    }
}

fn stmts<'a>(all: &[Stmt<'a>]) -> Vec<Stmt<'a>> {
    all.iter().map(stmt).collect()
}

fn for_loop<'a>(node: &ast::ForLoop<'a>) -> ast::ForLoop<'a> {
    ast::ForLoop {
        target: target(&node.target),
        iter: expr(&node.iter),
        filter_expr: node.filter_expr.as_ref().map(expr),
        recursive: node.recursive,
        body: stmts(&node.body),
        else_body: stmts(&node.else_body),
    }
}

/// An assignment target: names, or names in brackets. Nothing is computed there.
fn target<'a>(it: &Expr<'a>) -> Expr<'a> {
    match it {
        Expr::List(node) => Expr::List(Spanned::new(
            ast::List { items: node.items.iter().map(target).collect() },
            node.span(),
        )),
        Expr::Tuple(node) => {
            let items = node.items.iter().map(target).collect();
            Expr::Tuple(Spanned::new(ast::Tuple { items }, node.span()))
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
        | Expr::GetAttr(_)
        | Expr::GetItem(_)
        | Expr::Call(_)
        | Expr::Map(_) => expr(it),
    }
}

fn exprs<'a>(all: &[Expr<'a>]) -> Vec<Expr<'a>> {
    all.iter().map(expr).collect()
}

/// A call of a guard.
fn guarded<'a>(guard: &'a str, args: Vec<Expr<'a>>, span: minijinja::machinery::Span) -> Expr<'a> {
    let name = Expr::Var(Spanned::new(ast::Var { id: guard }, span));
    let args = args.into_iter().map(CallArg::Pos).collect();
    Expr::Call(Spanned::new(ast::Call { expr: name, args }, span))
}

fn expr<'a>(it: &Expr<'a>) -> Expr<'a> {
    match it {
        Expr::Var(node) => Expr::Var(Spanned::new(ast::Var { id: node.id }, node.span())),
        Expr::Const(node) => Expr::Const(Spanned::new(ast::Const { value: node.value.clone() }, node.span())),
        Expr::Slice(node) => slice(node),
        Expr::UnaryOp(node) => unary(node),
        Expr::BinOp(node) => binary(node),
        Expr::Compare(node) => comparison(node),
        Expr::IfExpr(node) => choice(node),
        Expr::Filter(node) => filter(node),
        Expr::Test(node) => test(node),
        Expr::GetAttr(node) => attribute(node),
        Expr::GetItem(node) => item(node),
        Expr::Call(node) => Expr::Call(call(node)),
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => literal(it),
    }
}

/// A literal of several values: the same large value twice in it costs twice its size.
fn literal<'a>(it: &Expr<'a>) -> Expr<'a> {
    let built = match it {
        Expr::List(node) => Expr::List(Spanned::new(ast::List { items: exprs(&node.items) }, node.span())),
        Expr::Tuple(node) => Expr::Tuple(Spanned::new(ast::Tuple { items: exprs(&node.items) }, node.span())),
        Expr::Map(node) => {
            let map = ast::Map { keys: exprs(&node.keys), values: exprs(&node.values) };
            Expr::Map(Spanned::new(map, node.span()))
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
        | Expr::GetAttr(_)
        | Expr::GetItem(_)
        | Expr::Call(_) => expr(it),
    };
    guarded(PLAIN, vec![built], it.span())
}

fn charged<'a>(it: &Expr<'a>) -> Expr<'a> {
    guarded(PLAIN, vec![expr(it)], it.span())
}

// One function each: what recurs for every part of an expression must use little stack.

fn slice<'a>(node: &Spanned<ast::Slice<'a>>) -> Expr<'a> {
    let none = || Expr::Const(Spanned::new(ast::Const { value: Value::from(()) }, node.span()));
    let part = |part: &Option<Expr<'a>>| part.as_ref().map_or_else(none, expr);
    let (start, stop, step) = (part(&node.start), part(&node.stop), part(&node.step));
    let sliced = guarded(SLICED, vec![touched(&node.expr), start, stop, step], node.span());
    guarded(PLAIN, vec![sliced], node.span())
}

fn unary<'a>(node: &Spanned<ast::UnaryOp<'a>>) -> Expr<'a> {
    let negates = matches!(node.op, ast::UnaryOpKind::Not);
    let op = if negates { ast::UnaryOpKind::Not } else { ast::UnaryOpKind::Neg };
    Expr::UnaryOp(Spanned::new(ast::UnaryOp { op, expr: expr(&node.expr) }, node.span()))
}

fn comparison<'a>(node: &Spanned<ast::Compare<'a>>) -> Expr<'a> {
    let op = |it: &ast::CompareOp<'a>| ast::CompareOp { op: it.op, expr: charged(&it.expr) };
    let compare = ast::Compare { expr: expr(&node.expr), ops: node.ops.iter().map(op).collect() };
    Expr::Compare(Spanned::new(compare, node.span()))
}

fn choice<'a>(node: &Spanned<ast::IfExpr<'a>>) -> Expr<'a> {
    let (test_expr, true_expr) = (expr(&node.test_expr), expr(&node.true_expr));
    let false_expr = node.false_expr.as_ref().map(expr);
    Expr::IfExpr(Spanned::new(ast::IfExpr { test_expr, true_expr, false_expr }, node.span()))
}

fn filter<'a>(node: &Spanned<ast::Filter<'a>>) -> Expr<'a> {
    let (expr, args) = (node.expr.as_ref().map(expr), args(&node.args));
    Expr::Filter(Spanned::new(ast::Filter { name: node.name, expr, args }, node.span()))
}

fn test<'a>(node: &Spanned<ast::Test<'a>>) -> Expr<'a> {
    let test = ast::Test { name: node.name, expr: expr(&node.expr), args: args(&node.args) };
    Expr::Test(Spanned::new(test, node.span()))
}

fn attribute<'a>(node: &Spanned<ast::GetAttr<'a>>) -> Expr<'a> {
    Expr::GetAttr(Spanned::new(ast::GetAttr { expr: expr(&node.expr), name: node.name }, node.span()))
}

fn item<'a>(node: &Spanned<ast::GetItem<'a>>) -> Expr<'a> {
    let item = ast::GetItem { expr: touched(&node.expr), subscript_expr: expr(&node.subscript_expr) };
    Expr::GetItem(Spanned::new(item, node.span()))
}

fn touched<'a>(it: &Expr<'a>) -> Expr<'a> {
    guarded(TOUCHED, vec![expr(it)], it.span())
}

fn binary<'a>(node: &Spanned<ast::BinOp<'a>>) -> Expr<'a> {
    let span = node.span();
    let built = |right| {
        let op = ast::BinOp { op: node.op, left: expr(&node.left), right };
        Expr::BinOp(Spanned::new(op, span))
    };
    match node.op {
        BinOpKind::Mul => guarded(TIMES, vec![expr(&node.left), expr(&node.right)], span),
        BinOpKind::Add | BinOpKind::Concat => guarded(PLAIN, vec![built(expr(&node.right))], span),
        BinOpKind::Eq
        | BinOpKind::Ne
        | BinOpKind::Lt
        | BinOpKind::Lte
        | BinOpKind::Gt
        | BinOpKind::Gte
        | BinOpKind::In => built(charged(&node.right)),
        BinOpKind::ScAnd
        | BinOpKind::ScOr
        | BinOpKind::Sub
        | BinOpKind::Div
        | BinOpKind::FloorDiv
        | BinOpKind::Rem
        | BinOpKind::Pow => built(expr(&node.right)),
    }
}

fn call<'a>(node: &Spanned<ast::Call<'a>>) -> Spanned<ast::Call<'a>> {
    Spanned::new(ast::Call { expr: expr(&node.expr), args: args(&node.args) }, node.span())
}

fn args<'a>(all: &[CallArg<'a>]) -> Vec<CallArg<'a>> {
    let arg = |arg: &CallArg<'a>| match arg {
        CallArg::Pos(it) => CallArg::Pos(expr(it)),
        CallArg::Kwarg(name, it) => CallArg::Kwarg(name, expr(it)),
        CallArg::PosSplat(it) => CallArg::PosSplat(expr(it)),
        CallArg::KwargSplat(it) => CallArg::KwargSplat(expr(it)),
    };
    all.iter().map(arg).collect()
}
