//! Compiles a text to instructions, within bounds.

use std::borrow::Cow;
use std::collections::BTreeSet;

use minijinja::machinery::{CodeGenerator, Instruction, Instructions, Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error};

use super::{JinjaError, guard};
use crate::limits::{JINJA_ELIFS_MAX, JINJA_TAG_TOKENS_MAX, TEMPLATE_BYTES_MAX};

const NAME: &str = "body";

/// Parses a body and inserts the guards.
pub(super) fn compile(source: &str) -> Result<Instructions<'_>, JinjaError> {
    if source.len() > TEMPLATE_BYTES_MAX {
        return Err(JinjaError { line: 0, message: format!("is longer than {TEMPLATE_BYTES_MAX} bytes") });
    }
    check_tags(source)?;
    let tree = parse(source, NAME, SyntaxConfig::default()).map_err(|error| jinja_error(&error))?;
    let tree = guard::stmt(&tree);
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&tree);
    Ok(generator.finish().0)
}

/// The source with all line ends as `\n`, as Jinja2 reads it.
pub(super) fn plain_line_ends(source: &str) -> Cow<'_, str> {
    if source.contains('\r') {
        return Cow::Owned(source.replace("\r\n", "\n").replace('\r', "\n"));
    }
    Cow::Borrowed(source)
}

/// Refuses expressions and chains of branches whose tree would be deeper than a thread's stack allows.
fn check_tags(source: &str) -> Result<(), JinjaError> {
    let (mut in_tag, mut elifs) = (0, 0);
    let mut opens = false;
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let (token, span) = token.map_err(|error| jinja_error(&error))?;
        let line = usize::from(span.start_line);
        if opens && matches!(token, Token::Ident("elif")) {
            elifs += 1;
        }
        opens = matches!(token, Token::BlockStart);
        let begins = matches!(token, Token::BlockStart | Token::VariableStart | Token::TemplateData(_));
        in_tag = if begins { 0 } else { in_tag + 1 };
        if in_tag > JINJA_TAG_TOKENS_MAX {
            return Err(JinjaError {
                line,
                message: format!("a tag has more than {JINJA_TAG_TOKENS_MAX} parts"),
            });
        }
        if elifs > JINJA_ELIFS_MAX {
            return Err(JinjaError {
                line,
                message: format!("there are more than {JINJA_ELIFS_MAX} elif branches"),
            });
        }
    }
    Ok(())
}

/// Refuses filters, tests and functions that do not exist.
pub(super) fn check_names(code: &Instructions<'_>, environment: &Environment<'_>) -> Result<(), JinjaError> {
    let known: BTreeSet<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
    let mut assigned = vec!["loop"];
    let mut at = 0;
    while let Some(instruction) = code.get(at) {
        if let Instruction::StoreLocal(name) = instruction {
            assigned.push(name);
        }
        let unknown = unknown_name(instruction).filter(|(what, name)| {
            *what != "function" || !(known.contains(*name) || assigned.contains(name))
        });
        if let Some((what, name)) = unknown {
            let line = code.get_line(at).unwrap_or(0);
            return Err(JinjaError { line, message: format!("there is no {what} `{name}`") });
        }
        at += 1;
    }
    Ok(())
}

/// The name that an instruction uses, if it is no known filter or test; the caller checks functions.
fn unknown_name<'a>(instruction: &Instruction<'a>) -> Option<(&'static str, &'a str)> {
    if let Instruction::ApplyFilter(name, ..) = instruction {
        return (!super::filters::is_filter(name)).then_some(("filter", *name));
    }
    if let Instruction::PerformTest(name, ..) = instruction {
        return (!super::filters::is_test(name)).then_some(("test", *name));
    }
    if let Instruction::CallFunction(name, ..) = instruction {
        return Some(("function", *name));
    }
    None
}

/// Converts an error of minijinja.
pub(super) fn jinja_error(error: &Error) -> JinjaError {
    let message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    JinjaError { line: error.line().unwrap_or(0), message }
}
