//! What declarations of CSS do to words. What is not understood hides them.

use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser,
};

use super::colour::Colours;
use super::font::{self, Size};
use super::harmless::{harmless, without_prefix};
use super::space::Space;
use super::value::{self, Word};

/// Lines closer together than this overlap, in pixels.
const LINE_PX: std::ops::RangeInclusive<f32> = 4.0..=400.0;
/// Letter or word spacing larger than this tears words apart, in pixels.
const SPACING_PX_MAX: f32 = 100.0;
/// Outlines and shadows larger than this overlap other words, in pixels.
const SPREAD_PX_MAX: f32 = 8.0;

/// The boxes that some programs draw in front of the items of every list of tasks.
const LIST_BOXES: &[&str] = &["\u{2610}", "\u{2612}"];

/// What declarations do.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Look {
    /// Whether words are hidden, or it is not known whether they are seen.
    pub(super) hidden: bool,
    /// Whether it is certainly invisible, as with `display: none`.
    pub(super) absent: bool,
    /// Whether a `display` other than `none` is declared, if this counts.
    pub(super) displayed: bool,
    /// Whether it is not known what is seen of the page, or in which order.
    pub(super) doubtful: bool,
    /// Whether the text is struck through.
    pub(super) struck: bool,
    /// Whether a block may be inline.
    pub(super) inline: bool,
    /// Whether blocks in it may be in one line.
    pub(super) row: bool,
    /// Whether a rule is drawn above, as some programs do above what they quote.
    pub(super) ruled: bool,
    /// Whether line breaks in the source are shown; `None` if not declared.
    pub(super) breaks: Option<bool>,
    pub(super) foreground: Colours,
    pub(super) background: Colours,
    /// The opacity of the text, 1.0 for opaque; `None` if not declared.
    opacity: Option<f32>,
    sizes: Vec<Size>,
    pub(super) space: Space,
}

impl Look {
    /// Reads the declarations of a `style` attribute.
    pub(super) fn of(css: &str) -> Self {
        let mut look = Self::default();
        if css.trim_ascii().is_empty() {
            return look;
        }
        let mut input = Parser::new(css);
        let mut declarations = Declarations(&mut look);
        let mut deep = false;
        for item in RuleBodyParser::<_, (), ()>::new(&mut input, &mut declarations) {
            deep |= item.is_err_and(|(error, ..)| value::too_deep(&error));
        }
        look.hidden |= deep;
        look
    }

    /// Adds one declaration from its value.
    pub(super) fn declare(&mut self, name: &str, input: &mut Parser<'_>) -> Result<(), ParseError<()>> {
        let words = value::words(input)?;
        self.add(&name.to_ascii_lowercase(), &words);
        Ok(())
    }

    /// Adds what a rule of a sheet declares, which may count or not.
    pub(super) fn add_rule(&mut self, rule: &Self) {
        self.hidden |= rule.hidden || rule.absent;
        self.displayed |= rule.displayed;
        self.doubtful |= rule.doubtful;
        self.struck |= rule.struck;
        self.inline |= rule.inline;
        self.row |= rule.row;
        // Joining lines is the cautious reading.
        if rule.breaks == Some(false) {
            self.breaks = Some(false);
        }
        self.foreground.add_rule(&rule.foreground);
        self.background.add_rule(&rule.background);
        self.opacity = self.opacity.into_iter().chain(rule.opacity).reduce(f32::min);
        self.sizes.extend(&rule.sizes);
        self.sizes.extend((!rule.sizes.is_empty()).then_some(Size::Times(1.0)));
        self.space.add_rule(&rule.space);
    }

    /// Returns true if this can change which words are seen, apart from their colours.
    pub(super) fn can_hide(&self) -> bool {
        let space = &self.space;
        self.hidden
            || self.absent
            || self.doubtful
            || self.struck
            || space.hidden
            || space.covers
            || space.cuts()
    }

    /// The opacity of the text within a parent of an opacity.
    pub(super) fn opacity(&self, around: f32) -> f32 {
        self.opacity.map_or(around, |opacity| opacity * around)
    }

    /// Adds a font size from HTML, which CSS may override.
    pub(super) fn suggest(&mut self, size: Size) {
        self.sizes.push(size);
    }

    /// The smallest font size that the text may have, in pixels, within a parent of a font size.
    pub(super) fn font_px(&self, around: f32) -> f32 {
        self.sizes.iter().map(|size| size.in_pixels(around)).reduce(f32::min).unwrap_or(around)
    }
}

/// Returns true if all words are among these names.
fn only(words: &[Word], names: &[&str]) -> bool {
    !words.is_empty() && words.iter().all(|word| word.is(names))
}

fn any(words: &[Word], names: &[&str]) -> bool {
    words.iter().any(|word| word.is(names))
}

fn with_reverse(words: &[Word]) -> bool {
    words.iter().any(|word| matches!(word, Word::Ident(name) if name.contains("reverse")))
}

/// Returns true if a length exceeds this many pixels, or is not known.
fn beyond(words: &[Word], pixels: f32) -> bool {
    let lengths = words.iter().filter(|word| !word.is_colour() && !matches!(word, Word::Sign(_)));
    lengths.into_iter().any(|word| word.pixels().is_none_or(|n| n.abs() > pixels))
}

impl Look {
    fn add(&mut self, name: &str, words: &[Word]) {
        let bare = without_prefix(name);
        if bare.starts_with('-') {
            // No browser knows these.
            return;
        }
        let known = self.show(bare, words)
            || self.order(bare, words)
            || self.text_style(bare, words)
            || self.space.add(bare, words)
            || harmless(bare, words);
        self.hidden |= !known;
    }

    /// Handles the properties that decide whether something is shown. Like all below, returns true if the property is one of
    /// them.
    fn show(&mut self, name: &str, words: &[Word]) -> bool {
        match name {
            "display" => self.display(words),
            "visibility" => {
                self.hidden |= !only(words, &["visible", "inherit", "initial", "unset", "revert"])
            }
            "opacity" => match words {
                [Word::Number(n)] => self.fade(*n),
                [Word::Percent(n)] => self.fade(n / 100.0),
                _ => self.hidden |= !only(words, &["initial", "inherit", "unset", "revert"]),
            },
            "clip" | "clip-path" | "filter" | "backdrop-filter" | "transform" | "translate" | "rotate"
            | "perspective" | "animation" | "animation-name" | "box-reflect" => {
                self.hidden |= !only(words, &["none", "auto", "initial", "unset", "revert"]);
            }
            "zoom" | "scale" => {
                let whole = words == [Word::Number(1.0)] || words == [Word::Percent(100.0)];
                self.hidden |= !whole && !only(words, &["none", "normal", "reset", "initial"]);
            }
            "mix-blend-mode" => self.hidden |= !only(words, &["normal", "initial"]),
            "content-visibility" | "text-security" => self.hidden |= !only(words, &["visible", "none"]),
            "mso-hide" => self.hidden |= !only(words, &["none", "screen"]),
            "content" => {
                let nothing = |word: &Word| match word.text() {
                    Some(text) => LIST_BOXES.contains(&text) || text.trim().is_empty(),
                    None => word.is(&["none", "normal", "initial"]),
                };
                self.doubtful |= !words.iter().all(nothing);
            }
            "quotes" => {
                self.doubtful |= words.iter().any(|word| match word.text() {
                    Some(text) => text.chars().nth(1).is_some(),
                    None => !word.is(&["none", "auto", "initial", "inherit"]),
                });
            }
            "list-style" | "list-style-type" => {
                let picture = |word: &Word| matches!(word, Word::Function(name, _) if name == "url");
                self.doubtful |= !words.iter().all(|word| picture(word) || matches!(word, Word::Ident(_)));
            }
            "caption-side" => self.doubtful |= !only(words, &["top", "initial", "inherit"]),
            "list-style-image" | "list-style-position" => {}
            _ if name.starts_with("mask") => self.hidden |= !only(words, &["none", "initial"]),
            _ => return false,
        }
        true
    }

    fn display(&mut self, words: &[Word]) {
        if matches!(words, [word] if word.is(&["none"])) {
            self.absent = true;
            return;
        }
        self.hidden |= any(words, &["none"]);
        self.displayed = true;
        let line = |name: &str| !matches!(name, "block" | "table" | "list-item" | "flow-root");
        for word in words {
            let Word::Ident(name) = word else {
                self.hidden = true;
                return;
            };
            // These are shown above or below the rest of their table.
            let groups = ["table-header-group", "table-footer-group", "table-caption"];
            self.doubtful |= groups.contains(&name.as_str());
            let row = ["flex", "grid", "box"].iter().any(|kind| name.contains(kind));
            self.row |= row;
            self.inline |= !row && line(name);
        }
    }

    fn fade(&mut self, opacity: f32) {
        let opacity = if (0.0..1.0).contains(&opacity) { opacity } else { f32::from(opacity >= 1.0) };
        self.opacity = Some(self.opacity.map_or(opacity, |known| known.min(opacity)));
    }

    /// Handles the properties that change the order in which words are read.
    fn order(&mut self, name: &str, words: &[Word]) -> bool {
        let usual = ["initial", "inherit", "unset", "revert", "auto", "normal", "none"];
        match name {
            "flex-direction" | "flex-flow" | "flex-wrap" | "box-direction" => {
                self.doubtful |= with_reverse(words);
            }
            "order" | "box-ordinal-group" | "flex-order" => {
                let first = matches!(words, [Word::Number(n)] if *n == 0.0 || (*n == 1.0 && name != "order"));
                self.doubtful |= !first && !only(words, &usual);
            }
            "direction" => self.doubtful |= !only(words, &["ltr", "initial", "inherit", "unset", "revert"]),
            "writing-mode" | "layout-flow" => {
                self.doubtful |=
                    !only(words, &["horizontal-tb", "lr-tb", "lr", "horizontal", "initial", "inherit"]);
            }
            "unicode-bidi" => {
                self.hidden |=
                    !only(words, &["normal", "embed", "isolate", "plaintext", "initial", "inherit"]);
            }
            "columns" | "column-count" | "column-width" => {
                let one = matches!(words, [Word::Number(n)] if *n == 1.0);
                self.doubtful |= !one && !only(words, &usual);
            }
            _ if name.starts_with("grid-") && !name.ends_with("gap") => self.doubtful = true,
            _ => return false,
        }
        true
    }

    /// Handles the properties that change how text looks.
    fn text_style(&mut self, name: &str, words: &[Word]) -> bool {
        match name {
            "color" | "text-fill-color" => self.foreground.add_foreground(words),
            "background" | "background-image" => self.background.add_background(words),
            "background-color" => {
                self.background.add_background(words);
                self.background.unknown |=
                    !matches!(words, [Word::Ident(_) | Word::Hash(_) | Word::Function(..)]);
            }
            "font-size" => match words {
                [word] => self.font_size(word),
                _ => self.hidden = true,
            },
            "font" => {
                let size = words.iter().find(|word| {
                    let size = matches!(word, Word::Percent(_) | Word::Length(..) | Word::Function(..));
                    size || word.is_number(|n| n == 0.0)
                });
                size.into_iter().for_each(|size| self.font_size(size));
                self.hidden |= font::may_be_symbols(words);
            }
            "font-family" => self.hidden |= font::may_be_symbols(words),
            "font-size-adjust" => {
                self.hidden |= !only(words, &["none", "initial", "inherit"]);
            }
            "line-height" => {
                let fine = |word: &Word| {
                    matches!(word, Word::Ident(_))
                        || matches!(word, Word::Percent(n) if (50.0..1000.0).contains(n))
                        || word.is_number(|n| (0.5..10.0).contains(&n))
                        || (matches!(word, Word::Length(..))
                            && word.pixels().is_some_and(|n| LINE_PX.contains(&n)))
                };
                self.hidden |= !words.iter().all(fine);
            }
            "letter-spacing" | "word-spacing" => {
                let far = |word: &Word| word.pixels().is_none_or(|n| n <= -1.0 || n > SPACING_PX_MAX);
                self.hidden |= words.iter().any(far);
            }
            "text-stroke" | "text-stroke-width" => {
                self.hidden |= words
                    .iter()
                    .any(|word| matches!(word, Word::Number(n) | Word::Length(n, _) if *n != 0.0));
            }
            "text-decoration" | "text-decoration-line" => {
                self.struck |= any(words, &["line-through"]) || beyond_lines(words);
            }
            "text-decoration-thickness" | "text-underline-offset" => self.struck |= beyond_lines(words),
            "text-shadow" | "box-shadow" | "outline" | "outline-width" | "outline-offset" => {
                self.doubtful |= beyond(words, SPREAD_PX_MAX);
            }
            "white-space" | "white-space-collapse" => {
                let kept = ["pre", "pre-wrap", "pre-line", "break-spaces", "preserve", "preserve-breaks"];
                let kept = any(words, &kept) && self.breaks != Some(false);
                self.breaks = Some(kept);
            }
            "border" | "border-top" => {
                self.ruled |= name == "border-top" && any(words, &["solid"]);
            }
            _ if name.starts_with("border") || name.starts_with("background-") => {}
            _ => return false,
        }
        true
    }

    fn font_size(&mut self, word: &Word) {
        match font::size_of(word) {
            Some(size) => self.sizes.push(size),
            None => self.hidden = true,
        }
    }
}

/// Returns true if lines of a decoration may go through the text.
fn beyond_lines(words: &[Word]) -> bool {
    let far = |n: f32| !(-0.5..=SPREAD_PX_MAX).contains(&n);
    let unclear = |word: &Word| matches!(word, Word::Function(..) | Word::Percent(_));
    words.iter().any(|word| !word.is_colour() && (unclear(word) || word.pixels().is_some_and(far)))
}

/// The declarations of a `style` attribute, which holds nothing else.
struct Declarations<'l>(&'l mut Look);

impl<'i> DeclarationParser<'i> for Declarations<'_> {
    type Declaration = ();
    type Error = ();

    fn parse_value(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
        _: &ParserState,
    ) -> Result<(), ParseError<()>> {
        self.0.declare(&name, input)
    }
}

impl AtRuleParser<'_> for Declarations<'_> {
    type Prelude = ();
    type AtRule = ();
    type Error = ();
}

impl QualifiedRuleParser<'_> for Declarations<'_> {
    type Prelude = ();
    type QualifiedRule = ();
    type Error = ();
}

impl RuleBodyItemParser<'_, (), ()> for Declarations<'_> {
    fn parse_declarations(&self) -> bool {
        true
    }

    fn parse_qualified(&self) -> bool {
        false
    }
}
