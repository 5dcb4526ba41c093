//! Bodies of messages: a subset of Jinja2 over gathered data. See
//! `docs/formats-conversation-operations.md#templates`.
//!
//! The subset: `{{ … }}` with dotted and bracketed access, slices, literals, arithmetic, `~`, comparisons, `in`,
//! `and or not`, `x if y else z`; `{% if elif else %}`, `{% for … if … recursive else %}` with `loop`, `{% set %}`
//! also as a block, `{% with %}`, `{% filter %}`, `{% autoescape %}`, `{% raw %}`, comments, `-` at a tag's ends; the
//! functions `range` and `dict`; methods `items keys values get` of dictionaries and `upper lower title capitalize
//! strip replace split startswith endswith join` of texts; the filters
//! `abs attr batch capitalize center count d default dictsort e escape first float groupby indent int items join last
//! length list lower map max min reject rejectattr replace reverse round safe select selectattr slice sort split string
//! sum title tojson trim truncate unique upper wordcount`; the tests `boolean defined divisibleby eq equalto escaped
//! even false float ge greaterthan gt in integer iterable le lessthan lower lt mapping ne none number odd sameas
//! sequence string true undefined upper` and the comparison signs. There is no `include`, `extends`, `import`, `block`,
//! `macro`, `call` or `namespace`, and nothing that accesses a file, an address, a clock or a random number.
//!
//! An absent value is empty, and so is every lookup in it: workflows are lenient. Values print as Jinja2
//! prints them: `True`, `False`, `None`, `['a', 1]`; the keys of a dictionary are sorted. Results that differ from
//! Jinja2's are listed with the reason in `crates/expr/tests/fixtures/differences.tsv`; `jinja2_tests` renders what
//! Jinja2's own suite renders.
//!
//! # Limits
//!
//! Chosen: minijinja, with guards that `guard` puts into its syntax tree. The tree is behind the feature
//! `unstable_machinery`, so the version is exact. It was compared with stock minijinja, fuel, an output cap and a smaller
//! subset, and kept:
//!
//! - Fuel charges 1 for an instruction, whatever the size of its values: forty `{% set s = s ~ s %}` are 160 units of
//!   fuel and a terabyte. The output cap does not see it, because nothing is written.
//! - Constants are folded while a text is compiled, before there is fuel: `{{ 'x' * 10**9 }}` makes its text there.
//! - A slice with a negative step over an empty value panics, and a user's text must not do that.
//! - Filters and functions can be wrapped, operators, literals, slices and comparisons cannot. A subset without them
//!   would have no `~`, `+`, `*`, lists or `set` blocks, which workflows use, and only the same tree could refuse them.
//! - The findings of `check` ([`mentions`]) and of data flow ([`reads`]) need the tree and the tokens in any case. So
//!   the feature would stay, and only `guard`, a fifth of this module, would go.
//! - Our own parser and interpreter would be more code to keep correct than the guards.
//!
//! # Updates
//!
//! `minijinja_tests` fails when the version changes. Before it gets the new version:
//!
//! 1. Read the changes in minijinja's `compiler/ast.rs`, `compiler/codegen.rs` and `vm`. A new kind of statement,
//!    expression or instruction does not compile here. Look for what does compile: an instruction that does more work
//!    than before, a constant that is folded earlier.
//! 2. Look at each filter and test in `filters` whose function changed: may its result grow in another way than its
//!    `Price` says?
//! 3. Run this crate's tests. Add to `SAMPLES` what the new version can do, and to
//!    `crates/expr/tests/fixtures/differences.tsv` what differs now.

mod compile;
mod filters;
mod guard;
mod meter;
mod methods;
mod names;
mod own;
mod reads;
mod slices;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{eval, make_string_output};
use minijinja::value::{Serde, Value as Made};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use serde_json::Value;

use crate::fuel::Fuel;
use crate::limits::{DATA_DEPTH_MAX, JINJA_SOURCE_FUEL, JINJA_STEP_FUEL, JINJA_WORK_FUEL};
use meter::{Meter, Over};
pub use names::mentions;
pub use reads::{Reads, reads};

/// The limits of one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JinjaLimits {
    /// Steps; a loop's body counts each time. Work that grows with values is bounded by
    /// [`JINJA_WORK_PER_FUEL`](crate::limits::JINJA_WORK_PER_FUEL) units for each.
    pub fuel: u64,
    /// Blocks and recursive loops open at once, at most 500.
    pub depth: usize,
    /// The result, bytes.
    pub bytes: usize,
}

/// How characters with a meaning in HTML are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Values are written as they are: content types `text` and `markdown`.
    None,
    /// `& < > ' "` of values are escaped, unless they are marked `safe`: content type `html`.
    Html,
}

/// Why a text is not a valid body or could not be rendered, and at which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct JinjaError {
    /// From 1; 0 if the line is not known.
    pub line: usize,
    /// What is wrong, without the source's text.
    pub message: String,
}

/// Why a rendering failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// It takes more steps, or makes more values, than [`JinjaLimits::fuel`] allows.
    #[error("takes too many steps")]
    Fuel,
    /// Blocks, recursion or values nest too deep.
    #[error("is nested too deep")]
    Depth,
    /// The result is longer than [`JinjaLimits::bytes`].
    #[error("produces too long a text")]
    TooLong,
    /// The text is not a valid body, or does what its values do not allow.
    #[error(transparent)]
    Bad(#[from] JinjaError),
}

/// Checks at definition time that a body can be rendered: its syntax, and that every filter, test and function exists.
/// [`render`] checks the same again.
///
/// # Errors
/// The first fault, with its line.
pub fn check(source: &str) -> Result<(), JinjaError> {
    let source = compile::plain_line_ends(source);
    let code = compile::compile(&source)?;
    let meter = Arc::new(Meter::new(&JinjaLimits { fuel: 0, depth: 0, bytes: 0 }));
    compile::check_names(&code, &filters::environment(&meter))
}

/// Renders a body over gathered data, available as `gathered_data` and as `gathered`; the keys of the data are
/// not top-level names.
///
/// # Errors
/// As [`RenderError`] says.
pub fn render(
    source: &str,
    context: &Value,
    escape: Escape,
    limits: &JinjaLimits,
) -> Result<String, RenderError> {
    render_within(source, context, escape, limits, &Fuel::unlimited())
}

/// The same, with work that is taken from `fuel`; what it lacks is for the caller to notice. A rendering that fails may
/// cost as much as the longest.
///
/// # Errors
/// As [`RenderError`] says.
pub fn render_within(
    source: &str,
    context: &Value,
    escape: Escape,
    limits: &JinjaLimits,
    fuel: &Fuel,
) -> Result<String, RenderError> {
    fuel.spend_bytes(source.len(), JINJA_SOURCE_FUEL);
    fuel.spend_reads(context, 3);
    if nests_deeper(context, DATA_DEPTH_MAX) {
        return Err(RenderError::Depth);
    }
    let data = Made::from(Serde(context));
    let names = [("gathered_data", data.clone()), ("gathered", data)];
    run(source, Made::from_pairs(names), escape, limits, fuel)
}

/// Renders a body whose top-level names are the keys of `root`, which is a dictionary.
fn run(
    source: &str,
    root: Made,
    escape: Escape,
    limits: &JinjaLimits,
    fuel: &Fuel,
) -> Result<String, RenderError> {
    let source = compile::plain_line_ends(source);
    let code = compile::compile(&source)?;
    let meter = Arc::new(Meter::new(limits));
    let mut environment = filters::environment(&meter);
    compile::check_names(&code, &environment)?;
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    let called = Arc::clone(&meter);
    environment.set_unknown_method_callback(
        move |state: &mut State<'_, '_>, value: &Made, method: &str, args: &[Made]| {
            methods::call(&called, state, value, method, args)
        },
    );
    environment.set_fuel(Some(limits.fuel));
    environment.set_recursion_limit(limits.depth);
    let counted = Arc::clone(&meter);
    environment.set_formatter(move |out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Made| {
        text::emit(&counted, out, state.auto_escape(), value)
    });
    let escaping = match escape {
        Escape::None => AutoEscape::None,
        Escape::Html => AutoEscape::Html,
    };
    let mut result = String::new();
    let done = execute(&environment, &code, root, escaping, &mut result);
    let steps = done.as_ref().map_or(limits.fuel, |steps| *steps);
    fuel.spend(steps.saturating_mul(JINJA_STEP_FUEL));
    fuel.spend(meter.used(limits).saturating_mul(JINJA_WORK_FUEL));
    match done {
        Ok(_) if result.len() > limits.bytes => Err(RenderError::TooLong),
        Ok(_) => Ok(result),
        Err(error) => Err(reason(&error, &meter)),
    }
}

/// Returns how many steps it took.
fn execute(
    environment: &Environment<'_>,
    code: &minijinja::machinery::Instructions<'_>,
    root: Made,
    escaping: AutoEscape,
    result: &mut String,
) -> Result<u64, Error> {
    let blocks = BTreeMap::new();
    let mut out = make_string_output(result);
    let (_, state) = eval(environment, code, root, &blocks, &mut out, escaping)?;
    Ok(state.fuel_levels().map_or(0, |(used, _)| used))
}

/// Maps an error of minijinja.
fn reason(error: &Error, meter: &Meter) -> RenderError {
    match meter.over() {
        Some(Over::Work) => return RenderError::Fuel,
        Some(Over::Depth) => return RenderError::Depth,
        Some(Over::Written) => return RenderError::TooLong,
        None => {}
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return RenderError::Fuel;
    }
    if error.detail() == Some("recursion limit exceeded") {
        return RenderError::Depth;
    }
    RenderError::Bad(compile::jinja_error(error))
}

/// Returns true if lists and dictionaries nest deeper than `depth`.
fn nests_deeper(value: &Value, depth: usize) -> bool {
    let inside = |it: &Value| depth == 0 || nests_deeper(it, depth - 1);
    match value {
        Value::Array(items) => items.iter().any(inside),
        Value::Object(map) => map.values().any(inside),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod jinja2_tests;
#[cfg(test)]
mod minijinja_tests;
#[cfg(test)]
mod tests;
