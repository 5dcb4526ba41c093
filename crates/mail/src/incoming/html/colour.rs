//! Colours of CSS and of HTML, and whether one is seen on another.

use cssparser::color::{parse_hash_color, parse_named_color};

use super::value::Word;
use crate::limits::COLOURS_MAX;

/// Two colours that differ less than this in each channel are indistinguishable.
const NEAR: f32 = 56.0;

/// Names of the default text colour.
const USUAL: &[&str] = &["initial", "auto", "windowtext", "canvastext", "text", "revert", "revert-layer"];
/// Names of the inherited colour.
const INHERITED: &[&str] = &["inherit", "currentcolor", "unset", "revert", "revert-layer"];
/// Names that a value for backgrounds may hold beside a colour.
const BACKGROUND_NAMES: &[&str] = &[
    "none",
    "transparent",
    "initial",
    "inherit",
    "unset",
    "revert",
    "repeat",
    "repeat-x",
    "repeat-y",
    "no-repeat",
    "space",
    "round",
    "scroll",
    "fixed",
    "local",
    "center",
    "top",
    "bottom",
    "left",
    "right",
    "auto",
    "cover",
    "contain",
    "border-box",
    "padding-box",
    "content-box",
    "text",
];

/// A colour of CSS in sRGB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Colour {
    rgb: [f32; 3],
    /// 0 for a transparent colour, 1 for an opaque one.
    alpha: f32,
}

pub(super) const BLACK: Colour = Colour { rgb: [0.0; 3], alpha: 1.0 };
pub(super) const WHITE: Colour = Colour { rgb: [255.0; 3], alpha: 1.0 };

impl Colour {
    fn new(rgb: [f32; 3], alpha: f32) -> Self {
        Self { rgb: rgb.map(|n| n.clamp(0.0, 255.0)), alpha: alpha.clamp(0.0, 1.0) }
    }

    /// This colour on another, opaque one.
    fn on(self, behind: Self) -> Self {
        let channel = |at: usize| self.rgb[at] * self.alpha + behind.rgb[at] * (1.0 - self.alpha);
        Self { rgb: [0, 1, 2].map(channel), alpha: 1.0 }
    }

    fn is_seen_on(self, background: Self, opacity: f32) -> bool {
        let channels = self.rgb.iter().zip(background.rgb);
        channels.into_iter().any(|(a, b)| (a - b).abs() * self.alpha * opacity >= NEAR)
    }
}

/// Returns true if text is visible in every combination of these foreground and background colours.
pub(super) fn seen(foregrounds: &[Colour], backgrounds: &[Colour], opacity: f32) -> bool {
    let few = foregrounds.len().max(backgrounds.len()) <= COLOURS_MAX;
    few && foregrounds
        .iter()
        .all(|foreground| backgrounds.iter().all(|behind| foreground.is_seen_on(*behind, opacity)))
}

fn unique(all: impl IntoIterator<Item = Colour>) -> Vec<Colour> {
    let mut unique = Vec::new();
    for colour in all {
        if !unique.contains(&colour) {
            unique.push(colour);
        }
    }
    unique
}

/// The colours that something may have: which declaration wins is not computed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Colours {
    declared: Vec<Colour>,
    /// Whether it may also have the colour that it would have without these.
    inherits: bool,
    /// Whether an unknown colour is declared.
    pub(super) unknown: bool,
}

impl Colours {
    /// Returns true if nothing is declared.
    pub(super) fn is_empty(&self) -> bool {
        self.declared.is_empty() && !self.unknown
    }

    fn push(&mut self, colour: Colour) {
        if !self.declared.contains(&colour) {
            self.declared.push(colour);
        }
        self.unknown |= self.declared.len() > COLOURS_MAX;
    }

    /// Adds colours that are known.
    pub(super) fn extend(&mut self, colours: impl IntoIterator<Item = Colour>) {
        colours.into_iter().for_each(|colour| self.push(colour));
    }

    /// Adds a value of `color`.
    pub(super) fn add_foreground(&mut self, words: &[Word]) {
        let [word] = words else {
            self.unknown = true;
            return;
        };
        self.inherits |= word.is(INHERITED);
        match colour_of(word) {
            _ if word.is(USUAL) => self.push(BLACK),
            _ if word.is(INHERITED) => {}
            Some(colour) => self.push(colour),
            None => self.unknown = true,
        }
    }

    /// Adds a value of `background` or a part of it. What is visible on a picture or a gradient is not known.
    pub(super) fn add_background(&mut self, words: &[Word]) {
        let colours: Vec<Colour> = words.iter().filter_map(colour_of).collect();
        self.inherits |= colours.is_empty();
        self.unknown |= words.iter().any(|word| match word {
            Word::Ident(_) => !word.is(BACKGROUND_NAMES) && colour_of(word).is_none(),
            Word::Function(..) | Word::Hash(_) => colour_of(word).is_none(),
            Word::Text(_) | Word::Other => true,
            Word::Number(n) => *n != 0.0,
            Word::Percent(_) | Word::Length(..) | Word::Sign(_) => false,
        });
        self.extend(colours);
    }

    /// Adds the colours of a rule of a sheet, which may count or not.
    pub(super) fn add_rule(&mut self, rule: &Self) {
        self.inherits |= self.declared.is_empty();
        self.extend(rule.declared.iter().copied());
        self.unknown |= rule.unknown;
    }

    /// The colours that text may have, if these are declared within an element with the `inherited` ones.
    pub(super) fn foregrounds(&self, inherited: &[Colour]) -> Vec<Colour> {
        let inherits = self.declared.is_empty() || self.inherits;
        unique(self.declared.iter().chain(inherited.iter().filter(|_| inherits)).copied())
    }

    /// The colours that may be behind text, if these are declared within an element with the inherited ones.
    pub(super) fn backgrounds(&self, inherited: &[Colour]) -> Vec<Colour> {
        let inherits = self.declared.is_empty() || self.inherits;
        let declared =
            self.declared.iter().flat_map(|colour| inherited.iter().map(|behind| colour.on(*behind)));
        unique(declared.chain(inherited.iter().filter(|_| inherits).copied()))
    }
}

/// The colour that a CSS word names; `None` if it is unknown.
fn colour_of(word: &Word) -> Option<Colour> {
    match word {
        Word::Ident(name) if name == "transparent" => Some(Colour { alpha: 0.0, ..BLACK }),
        Word::Ident(name) => named(name),
        Word::Hash(digits) => {
            let (r, g, b, alpha) = parse_hash_color(digits.as_bytes()).ok()?;
            Some(Colour::new([r, g, b].map(f32::from), alpha))
        }
        Word::Function(name, inside) if name == "rgb" || name == "rgba" => of_channels(inside),
        Word::Function(..)
        | Word::Text(_)
        | Word::Number(_)
        | Word::Percent(_)
        | Word::Length(..)
        | Word::Sign(_)
        | Word::Other => None,
    }
}

fn named(name: &str) -> Option<Colour> {
    let (r, g, b) = parse_named_color(name).ok()?;
    Some(Colour::new([r, g, b].map(f32::from), 1.0))
}

/// A colour from the parameters of `rgb()`: all numbers or all percentages, and perhaps an alpha.
fn of_channels(inside: &[Word]) -> Option<Colour> {
    let words: Vec<&Word> = inside.iter().filter(|word| !matches!(word, Word::Sign(',' | '/'))).collect();
    let (channels, alpha) = words.split_at_checked(3)?;
    let alpha = match alpha {
        [] => 1.0,
        [Word::Number(n)] => *n,
        [Word::Percent(n)] => n / 100.0,
        _ => return None,
    };
    match channels {
        [Word::Number(r), Word::Number(g), Word::Number(b)] => Some(Colour::new([*r, *g, *b], alpha)),
        [Word::Percent(r), Word::Percent(g), Word::Percent(b)] => {
            Some(Colour::new([r * 2.55, g * 2.55, b * 2.55], alpha))
        }
        _ => None,
    }
}

/// The colour of an attribute such as `bgcolor`, as the HTML standard reads it ("rules for parsing a legacy color
/// value"): nearly any text is one.
pub(super) fn of_attribute(text: &str) -> Option<Colour> {
    let text = text.trim_ascii().to_ascii_lowercase();
    if text.is_empty() || text == "transparent" {
        return None;
    }
    if let Some(colour) = named(&text) {
        return Some(colour);
    }
    let bare = text.strip_prefix('#').unwrap_or(&text);
    if text.len() == 4
        && let Ok((r, g, b, _)) = parse_hash_color(bare.as_bytes())
        && bare.len() == 3
    {
        return Some(Colour::new([r, g, b].map(f32::from), 1.0));
    }
    let digit = |c: char| c.to_digit(16).map_or(0.0, |n| n as f32);
    let mut digits: Vec<f32> = bare.chars().take(128).map(digit).collect();
    while digits.is_empty() || !digits.len().is_multiple_of(3) {
        digits.push(0.0);
    }
    let length = digits.len() / 3;
    let mut channels: Vec<&[f32]> = digits.chunks(length).map(|it| &it[length.saturating_sub(8)..]).collect();
    while channels.iter().all(|channel| channel.len() > 2 && channel[0] == 0.0) {
        channels.iter_mut().for_each(|channel| *channel = &channel[1..]);
    }
    let value = |channel: &&[f32]| channel.iter().take(2).fold(0.0, |sum, digit| sum * 16.0 + digit);
    match channels.iter().map(value).collect::<Vec<f32>>()[..] {
        [r, g, b] => Some(Colour::new([r, g, b], 1.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_colours_as_browsers_read_them() {
        let cases = [
            ("#fff", Some([255.0; 3])),
            ("ffffff", Some([255.0; 3])),
            ("White", Some([255.0; 3])),
            ("#000000", Some([0.0; 3])),
            ("0", Some([0.0; 3])),
            ("chucknorris", Some([192.0, 0.0, 0.0])),
            ("#12", Some([1.0, 2.0, 0.0])),
            ("transparent", None),
            (" ", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of_attribute(text).map(|colour| colour.rgb), expected, "{text}");
        }
    }

    #[test]
    fn what_is_half_transparent_is_seen_less() {
        let half = Colour { alpha: 0.3, ..BLACK };
        assert!(seen(&[half], &[WHITE], 1.0));
        assert!(!seen(&[half], &[WHITE], 0.5));
        assert!(!seen(&[BLACK, WHITE], &[WHITE], 1.0));
        let dark = Colours { declared: vec![Colour { alpha: 0.9, ..BLACK }], ..Colours::default() };
        assert!(!seen(&[BLACK], &dark.backgrounds(&[WHITE]), 1.0));
    }
}
