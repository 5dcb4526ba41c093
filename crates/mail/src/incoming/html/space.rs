//! Where CSS puts words: whether they are still on the page, and whether they overlap others.

use super::value::Word;

/// Words further left than this are off the page, in pixels.
const LEFT_PX_MAX: f32 = 25.0;
/// A first line is not further left than this of the others, in pixels, as with the items of lists.
const HANGING_PX_MAX: f32 = 50.0;
/// Words further right or down than this are off the page, in pixels.
const OFF_PAGE_PX_MIN: f32 = 400.0;
/// What is moved further up or down than this lies over other lines, in pixels.
const RAISED_PX_MAX: f32 = 10.0;
/// Boxes lower than this do not hold a line, in pixels.
const HEIGHT_PX_MIN: f32 = 8.0;
/// A line is not moved further than this against its neighbours, in pixels.
const ALIGNED_PX_MAX: f32 = 50.0;

/// Names of values that change nothing.
const USUAL: &[&str] = &["auto", "none", "initial", "inherit", "unset", "revert"];

/// How boxes are placed and how large they are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Space {
    /// Whether words are off the page, or it is not known where they are.
    pub(super) hidden: bool,
    /// Whether something may lie over other words.
    pub(super) covers: bool,
    /// How far words are moved to the right, in pixels.
    right: f32,
    /// How far words are moved to the left, in pixels.
    left: f32,
    /// How far words are moved to the right at least, other than the first line, in pixels.
    inset: f32,
    /// How far words are moved up or down over others, in pixels.
    raised: f32,
    cut: bool,
    low: bool,
    narrow: bool,
}

impl Space {
    /// Adds what a rule of a sheet declares, which may count or not.
    pub(super) fn add_rule(&mut self, other: &Self) {
        self.hidden |= other.hidden;
        self.covers |= other.covers;
        self.cut |= other.cut;
        self.low |= other.low;
        self.narrow |= other.narrow;
        self.right = self.right.max(other.right);
        self.left = self.left.max(other.left);
        self.raised = self.raised.max(other.raised);
    }

    /// The space of something in this one.
    pub(super) fn within(&self, around: &Self) -> Self {
        let left = if self.left > self.inset { self.left } else { 0.0 };
        Self {
            right: around.right + self.right,
            left: around.left + left,
            raised: around.raised + self.raised,
            ..*self
        }
    }

    /// Returns true if boxes may be too small for what they hold and cut off the rest.
    pub(super) fn cuts(&self) -> bool {
        self.cut && (self.low || self.narrow)
    }

    /// Returns true if words are hidden here.
    pub(super) fn hides(&self) -> bool {
        let on_page = self.right <= OFF_PAGE_PX_MIN && self.left <= LEFT_PX_MAX;
        self.hidden || self.cuts() || !on_page
    }

    /// Returns true if words elsewhere may be hidden.
    pub(super) fn overlays(&self) -> bool {
        self.covers || self.raised > RAISED_PX_MAX
    }

    /// Adds a declaration; returns true if it is about space.
    pub(super) fn add(&mut self, name: &str, words: &[Word]) -> bool {
        let only = |names: &[&str]| !words.is_empty() && words.iter().all(|word| word.is(names));
        match name {
            "position" => {
                self.hidden |= !only(&["static", "relative", "initial", "inherit", "unset", "revert"])
            }
            "float" => self.hidden |= !only(USUAL),
            "z-index" => self.hidden |= !only(USUAL) && words != [Word::Number(0.0)],
            "margin" | "padding" => self.sides(words),
            "margin-top" | "margin-bottom" | "padding-top" | "padding-bottom" => self.lines(words),
            "margin-block"
            | "margin-block-start"
            | "margin-block-end"
            | "padding-block"
            | "padding-block-start"
            | "padding-block-end" => self.lines(words),
            "text-indent" => self.beginning(words),
            "left"
            | "margin-left"
            | "padding-left"
            | "margin-inline"
            | "margin-inline-start"
            | "padding-inline"
            | "padding-inline-start"
            | "margin-start"
            | "padding-start" => self.inset(words),
            "right" | "margin-right" | "padding-right" | "margin-inline-end" | "padding-inline-end"
            | "margin-end" | "padding-end" => self.end(words),
            "margin-before" | "margin-after" | "padding-before" | "padding-after" => self.lines(words),
            "top" | "bottom" => {
                for word in words {
                    match word.pixels() {
                        Some(n) => self.raised += n.abs(),
                        None => self.covers = true,
                    }
                }
            }
            "vertical-align" => {
                let far = |word: &Word| word.pixels().is_none_or(|n| n.abs() > ALIGNED_PX_MAX);
                self.hidden |= words.iter().any(far);
            }
            "height" | "max-height" | "block-size" | "max-block-size" => self.height(words),
            "width" | "max-width" | "inline-size" | "max-inline-size" => self.width(words),
            "overflow" | "overflow-x" | "overflow-y" | "overflow-block" | "overflow-inline" => {
                self.cut |= !only(&["visible", "initial", "inherit", "unset", "revert"]);
            }
            _ => return false,
        }
        true
    }

    /// One to four lengths: above, right, below, left.
    fn sides(&mut self, words: &[Word]) {
        let (above, right, below, left) = match words {
            [all] => (all, all, all, all),
            [lines, sides] => (lines, sides, lines, sides),
            [above, sides, below] => (above, sides, below, sides),
            [above, right, below, left] => (above, right, below, left),
            _ => {
                self.hidden = true;
                return;
            }
        };
        self.lines(std::slice::from_ref(above));
        self.lines(std::slice::from_ref(below));
        self.inset(std::slice::from_ref(left));
        self.end(std::slice::from_ref(right));
    }

    /// Space above or below.
    fn lines(&mut self, words: &[Word]) {
        for word in words {
            let Some(n) = word.pixels() else {
                (self.hidden, self.covers) = (true, true);
                continue;
            };
            self.covers |= n < -0.5;
            self.hidden |= n > OFF_PAGE_PX_MIN;
        }
    }

    /// Space in front of words.
    fn beginning(&mut self, words: &[Word]) {
        self.end(words);
        for n in words.iter().filter_map(Word::pixels) {
            self.right += n.max(0.0);
            self.left -= n.min(0.0);
        }
    }

    /// Space in front of all lines.
    fn inset(&mut self, words: &[Word]) {
        self.beginning(words);
        // If there are several such declarations, it is not worked out what they come to.
        self.inset = words.iter().filter_map(Word::pixels).reduce(f32::min).unwrap_or_default();
    }

    /// Space behind words.
    fn end(&mut self, words: &[Word]) {
        let far = |n: f32| !(-HANGING_PX_MAX..=OFF_PAGE_PX_MIN).contains(&n);
        self.hidden |= words.iter().any(|word| word.pixels().is_none_or(far));
    }

    fn height(&mut self, words: &[Word]) {
        for word in words.iter().filter(|word| !matches!(word, Word::Ident(_))) {
            let Some(n) = word.pixels() else {
                self.low = true;
                continue;
            };
            let part = matches!(word, Word::Percent(_));
            self.hidden |= if part { n <= 0.0 } else { n < HEIGHT_PX_MIN };
            self.low |= n < OFF_PAGE_PX_MIN;
        }
    }

    fn width(&mut self, words: &[Word]) {
        for word in words.iter().filter(|word| !matches!(word, Word::Ident(_))) {
            let n = word.pixels();
            self.hidden |= n.is_some_and(|n| n <= 0.0);
            self.narrow |= n.is_none_or(|n| n < OFF_PAGE_PX_MIN);
        }
    }
}
