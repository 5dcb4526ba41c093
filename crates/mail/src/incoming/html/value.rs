//! Values of CSS, as far as they matter for whether words are seen.

use cssparser::{BasicParseErrorKind, CowRcStr, ParseError, ParseErrorKind, Parser, Token};

/// Pixels of one percent: of a page of 800 pixels.
const PERCENT_PX: f32 = 8.0;
/// Pixels of an `em`: more than the usual font size, as the actual one is not known here.
const EM_PX: f32 = 48.0;

/// A part of a value. Names and units are in lower case.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A name without quotes.
    Ident(String),
    /// A text in quotes.
    Text(String),
    /// A number without a unit.
    Number(f32),
    /// A percentage, 100.0 for all.
    Percent(f32),
    /// A number with its unit.
    Length(f32, String),
    /// What follows a `#`.
    Hash(String),
    /// A function with its parameters, those of functions in it left out; an address as `url`.
    Function(String, Vec<Word>),
    /// One character, such as a comma.
    Sign(char),
    /// Anything else.
    Other,
}

impl Word {
    /// Returns true if this is one of these names.
    pub(super) fn is(&self, names: &[&str]) -> bool {
        matches!(self, Self::Ident(name) if names.contains(&name.as_str()))
    }

    /// The text, if this is one in quotes.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns true if this is a number, which is not a length or a percentage, and as wanted.
    pub(super) fn is_number(&self, wanted: impl Fn(f32) -> bool) -> bool {
        matches!(self, Self::Number(n) if wanted(*n))
    }

    /// Returns true if this is a colour that cannot be taken for anything else.
    pub(super) fn is_colour(&self) -> bool {
        match self {
            Self::Hash(_) => true,
            Self::Function(name, _) => name == "rgb" || name == "rgba",
            Self::Ident(_)
            | Self::Text(_)
            | Self::Number(_)
            | Self::Percent(_)
            | Self::Length(..)
            | Self::Sign(_)
            | Self::Other => false,
        }
    }

    /// The length in pixels, roughly; 0 for names such as `auto`, `None` if it is unknown.
    pub(super) fn pixels(&self) -> Option<f32> {
        match self {
            Self::Ident(_) => Some(0.0),
            Self::Number(n) => Some(*n),
            Self::Percent(n) => Some(n * PERCENT_PX),
            Self::Length(n, unit) => Some(n * pixels_of(unit)?),
            Self::Text(_) | Self::Hash(_) | Self::Function(..) | Self::Sign(_) | Self::Other => None,
        }
    }
}

/// The pixels of a unit of length.
fn pixels_of(unit: &str) -> Option<f32> {
    Some(match unit {
        "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "pc" => 16.0,
        "in" => 96.0,
        "cm" => 96.0 / 2.54,
        "mm" => 9.6 / 2.54,
        "q" => 2.4 / 2.54,
        "em" | "rem" | "lh" | "rlh" => EM_PX,
        "ex" | "ch" => EM_PX / 2.0,
        "vw" | "vh" | "vmin" | "vmax" => PERCENT_PX,
        _ => return None,
    })
}

/// Reads the value of a declaration, without `!important` at its end.
pub(super) fn words(input: &mut Parser<'_>) -> Result<Vec<Word>, ParseError<()>> {
    let mut words = flat(input, true)?;
    let important = |words: &[Word]| words.last().is_some_and(|word| word.is(&["important"]));
    if let Some(sign) = words.iter().position(|word| *word == Word::Sign('!')) {
        // Browsers differ in what they do with anything else after this character.
        let fine = sign + 2 == words.len() && important(&words);
        words.truncate(sign);
        if !fine {
            words.push(Word::Other);
        }
    }
    Ok(words)
}

/// Reads words to the end of the input; functions with their parameters only if requested.
fn flat(input: &mut Parser<'_>, functions: bool) -> Result<Vec<Word>, ParseError<()>> {
    let mut words = Vec::new();
    while let Ok(token) = input.next() {
        let token = token.clone();
        words.push(match token {
            Token::Function(name) if functions => {
                Word::Function(lower(&name), input.parse_nested_block(|input| flat(input, false))?)
            }
            Token::CurlyBracketBlock => return Err(ParseError::unexpected_token()),
            Token::Ident(name) => Word::Ident(lower(&name)),
            Token::QuotedString(text) => Word::Text(lower(&text)),
            Token::Number { value, .. } => Word::Number(value),
            Token::Percentage { unit_value, .. } => Word::Percent(unit_value * 100.0),
            Token::Dimension { value, unit, .. } => Word::Length(value, lower(&unit)),
            Token::Hash(name) | Token::IDHash(name) => Word::Hash(lower(&name)),
            Token::UnquotedUrl(_) | Token::BadUrl(_) => Word::Function("url".to_owned(), Vec::new()),
            Token::Delim(sign) => Word::Sign(sign),
            Token::Comma => Word::Sign(','),
            Token::Function(_)
            | Token::AtKeyword(_)
            | Token::WhiteSpace(_)
            | Token::Comment(_)
            | Token::Colon
            | Token::Semicolon
            | Token::IncludeMatch
            | Token::DashMatch
            | Token::PrefixMatch
            | Token::SuffixMatch
            | Token::SubstringMatch
            | Token::CDO
            | Token::CDC
            | Token::ParenthesisBlock
            | Token::SquareBracketBlock
            | Token::BadString(_)
            | Token::CloseParenthesis
            | Token::CloseSquareBracket
            | Token::CloseCurlyBracket => Word::Other,
        });
    }
    Ok(words)
}

fn lower(name: &CowRcStr<'_>) -> String {
    name.to_ascii_lowercase()
}

/// Returns true if blocks are nested too deeply to be read.
pub(super) fn too_deep(error: &ParseError<()>) -> bool {
    matches!(error.kind, ParseErrorKind::Basic(BasicParseErrorKind::TooManyNestedBlocks))
}
