//! Fonts: how large text is, and whether it consists of symbols.

use super::value::Word;

/// Text smaller than this cannot be read, in pixels.
const FONT_PX_MIN: f32 = 4.0;
/// Text larger than this is unusual in a mail, in pixels; lengths in `em` grow with it.
const FONT_PX_MAX: f32 = 100.0;

/// Prefixes of the names of fonts whose glyphs are symbols, or invisible.
const SYMBOL_FONTS: &[&str] = &[
    "wingdings",
    "webdings",
    "symbol",
    "zapf dingbats",
    "zapfdingbats",
    "itc zapf dingbats",
    "dingbats",
    "marlett",
    "monotype sorts",
    "mt extra",
    "ms outlook",
    "bookshelf symbol",
    "ms reference specialty",
    "adobe blank",
];

/// A font size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    Pixels(f32),
    /// A factor of the parent's size.
    Times(f32),
}

impl Size {
    /// This size within a parent of a font size in pixels.
    pub(super) fn in_pixels(self, around: f32) -> f32 {
        match self {
            Self::Pixels(n) => n,
            Self::Times(n) => n * around,
        }
    }
}

/// Sizes that have names.
const NAMES: &[(&str, Size)] = &[
    ("xx-small", Size::Pixels(9.0)),
    ("x-small", Size::Pixels(10.0)),
    ("small", Size::Pixels(13.0)),
    ("medium", Size::Pixels(16.0)),
    ("initial", Size::Pixels(16.0)),
    ("large", Size::Pixels(18.0)),
    ("x-large", Size::Pixels(24.0)),
    ("xx-large", Size::Pixels(32.0)),
    ("xxx-large", Size::Pixels(48.0)),
    ("smaller", Size::Times(0.8)),
    ("larger", Size::Times(1.2)),
    ("inherit", Size::Times(1.0)),
    ("unset", Size::Times(1.0)),
    ("revert", Size::Times(1.0)),
];

/// Returns true if text of this size can be read.
pub(super) fn readable(font_px: f32) -> bool {
    (FONT_PX_MIN..=FONT_PX_MAX).contains(&font_px)
}

/// Returns true if a font, or one of a list, shows symbols.
pub(super) fn is_symbols(fonts: &str) -> bool {
    let names = fonts.split(',').map(|name| name.trim_matches([' ', '"', '\'']).to_ascii_lowercase());
    names.into_iter().any(|name| {
        SYMBOL_FONTS.iter().any(|known| name.strip_prefix(known).is_some_and(|rest| !rest.starts_with("s")))
    })
}

/// The size that a CSS word names; `None` if it is unknown.
pub(super) fn size_of(word: &Word) -> Option<Size> {
    match word {
        Word::Ident(name) => NAMES.iter().find(|(known, _)| known == name).map(|(_, size)| *size),
        Word::Percent(n) => Some(Size::Times(n / 100.0)),
        Word::Length(n, unit) => match unit.as_str() {
            "em" => Some(Size::Times(*n)),
            "ex" | "ch" => Some(Size::Times(n / 2.0)),
            "rem" => Some(Size::Pixels(n * 16.0)),
            _ => word.pixels().map(Size::Pixels),
        },
        Word::Number(n) => Some(Size::Pixels(*n)),
        Word::Text(_) | Word::Hash(_) | Word::Function(..) | Word::Sign(_) | Word::Other => None,
    }
}

/// Returns true if a value of `font` or `font-family` names a symbol font, or is not understood.
pub(super) fn may_be_symbols(words: &[Word]) -> bool {
    let (mut names, mut unclear) = (String::new(), false);
    for word in words {
        if let Word::Ident(name) | Word::Text(name) = word {
            names.push_str(name);
            names.push(' ');
        } else if matches!(word, Word::Sign(',')) {
            names.push(',');
        } else {
            unclear |= matches!(word, Word::Function(..) | Word::Other) || is_symbols(&names);
            // The part before the first name in `font`.
            names.clear();
        }
    }
    unclear || is_symbols(&names)
}
