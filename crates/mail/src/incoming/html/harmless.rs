//! CSS properties that do not affect words.

use super::value::Word;

/// Properties that do not change which words are seen and in which order.
const HARMLESS: &[&str] = &[
    "accent-color",
    "appearance",
    "aspect-ratio",
    "behavior",
    "box-sizing",
    "clear",
    "cursor",
    "empty-cells",
    "gap",
    "hyphens",
    "interpolation-mode",
    "isolation",
    "language",
    "nbsp-mode",
    "orphans",
    "outline-color",
    "outline-style",
    "osx-font-smoothing",
    "pointer-events",
    "resize",
    "row-gap",
    "size",
    "tap-highlight-color",
    "text-align",
    "text-align-last",
    "text-autospace",
    "text-decoration-color",
    "text-decoration-skip",
    "text-decoration-skip-ink",
    "text-decoration-style",
    "text-decorations-in-effect",
    "text-effect",
    "text-emphasis",
    "text-fit",
    "text-indent-alt",
    "text-justify",
    "text-justify-trim",
    "text-kashida-space",
    "text-line-through",
    "text-overflow",
    "text-rendering",
    "text-size-adjust",
    "text-spacing",
    "text-transform",
    "text-underline",
    "text-underline-position",
    "text-underline-style",
    "text-wrap",
    "text-wrap-mode",
    "text-wrap-style",
    "unicode-range",
    "widows",
    "will-change",
];

/// Beginnings of the names of more such properties.
const HARMLESS_BEGINNINGS: &[&str] = &[
    "align-",
    "break-",
    "caret-",
    "color-",
    "column-",
    "composition-",
    "counter-",
    "flex",
    "font-",
    "forced-color",
    "hyphenate-",
    "image-",
    "justify-",
    "layout-grid",
    "line-",
    "min-",
    "mso-",
    "ms-",
    "object-",
    "overflow-",
    "overscroll-",
    "page",
    "panose-",
    "place-",
    "print-color",
    "punctuation-",
    "ruby-",
    "scroll",
    "so-",
    "speak",
    "tab-",
    "table-",
    "touch-",
    "transition",
    "user-",
    "vnd.",
    "word-",
];

/// Prefixes of properties that programs had before they were standard.
const PREFIXES: &[&str] = &["-webkit-", "-moz-", "-ms-", "-o-", "-khtml-", "-apple-", "-epub-"];

/// The name of a property as it became standard.
pub(super) fn without_prefix(name: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// Returns true if a property does not affect words. Only some of them may hold quoted text, as they do not show it.
pub(super) fn harmless(name: &str, words: &[Word]) -> bool {
    let texts = ["font-", "mso-", "ms-", "vnd.", "so-", "tab-"];
    let known = HARMLESS.contains(&name) || HARMLESS_BEGINNINGS.iter().any(|it| name.starts_with(it));
    known && (!words.iter().any(|word| word.text().is_some()) || texts.iter().any(|it| name.starts_with(it)))
}
