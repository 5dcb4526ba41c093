//! What CSS does to words: hides them, or does not. What is not understood hides.

use std::collections::HashSet;

use crate::limits::STYLE_NAMES_MAX;

/// A colour: red, green, blue.
pub(super) type Colour = [u8; 3];

pub(super) const WHITE: Colour = [255; 3];
pub(super) const BLACK: Colour = [0; 3];
/// Two colours nearer than this in each channel cannot be told apart.
const NEAR: u8 = 56;
/// Opacity below which nothing is seen.
const OPACITY_MIN: f32 = 0.2;
/// Lengths further left or up than this are off the page.
const OFF_PAGE: f32 = -100.0;

/// What declarations do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) hidden: bool,
    /// The colour of the letters, where it is said.
    pub(super) ink: Option<Colour>,
    /// The colour behind them, where it is said.
    pub(super) paper: Option<Colour>,
    /// Whether a line goes through the letters.
    pub(super) struck: bool,
    /// Whether a block stands in a line.
    pub(super) inline: bool,
    /// Whether a rule is drawn above, as some programs do above what they quote.
    pub(super) ruled: bool,
}

/// Whether letters of one colour on another are seen.
pub(super) fn seen(ink: Colour, paper: Colour) -> bool {
    ink.iter().zip(paper).any(|(ink, paper)| ink.abs_diff(paper) >= NEAR)
}

impl Look {
    /// Reads declarations such as those of a `style` attribute.
    pub(super) fn of(css: &str) -> Self {
        let css = without_comments(css).to_ascii_lowercase();
        let mut look = Self { hidden: css.contains('\\'), ..Self::default() };
        for declaration in css.split(';') {
            if let Some((property, value)) = declaration.split_once(':') {
                look.add(property.trim(), value.replace("!important", "").trim());
            }
        }
        look
    }

    fn add(&mut self, property: &str, value: &str) {
        self.hidden |= match property {
            "display" => {
                self.inline |=
                    value.starts_with("inline") || value.contains("flex") || value.contains("grid");
                value == "none"
            }
            "visibility" => value != "visible" && value != "inherit" && value != "initial",
            "opacity" | "-moz-opacity" => number(value)
                .is_none_or(|(n, unit)| if unit == "%" { n / 100.0 < OPACITY_MIN } else { n < OPACITY_MIN }),
            "font-size" => tiny(value),
            "font" => value.split(['/', ' ']).any(|word| number(word).is_some_and(|(n, _)| n == 0.0)),
            "height" | "max-height" | "width" | "max-width" | "line-height" | "zoom" | "scale" => {
                number(value).is_some_and(|(n, _)| n <= 0.0)
            }
            "position" => value == "absolute" || value == "fixed",
            "clip" | "clip-path" | "mask" | "-webkit-mask" => value != "auto" && value != "none",
            "transform" | "-webkit-transform" | "filter" | "-webkit-filter" => value != "none",
            "letter-spacing" | "word-spacing" => number(value).is_some_and(|(n, _)| n <= -1.0),
            "text-indent" | "left" | "right" | "top" | "bottom" | "margin" | "margin-left" | "margin-top" => {
                value.split_whitespace().any(|word| number(word).is_some_and(|(n, _)| n <= OFF_PAGE))
            }
            "mso-hide" => value == "all",
            "unicode-bidi" => value.contains("override"),
            "content-visibility" | "-webkit-text-security" | "text-security" => true,
            "float" => {
                self.inline |= value != "none";
                false
            }
            "color" | "-webkit-text-fill-color" => self.colour(value),
            "background" | "background-color" => {
                let known = value.split_whitespace().find_map(|word| colour(word).ok().flatten());
                self.paper = known.or(self.paper);
                false
            }
            "text-decoration" | "text-decoration-line" => {
                self.struck |= value.contains("line-through");
                false
            }
            "border" | "border-top" => {
                self.ruled |= property == "border-top" && value.contains("solid");
                false
            }
            _ => false,
        };
    }

    /// Whether letters of this colour are hidden whatever is behind them.
    fn colour(&mut self, value: &str) -> bool {
        match colour(value) {
            Ok(ink) => {
                self.ink = ink.or(self.ink);
                false
            }
            Err(Unseen) => true,
        }
    }
}

/// A size in which nothing can be read.
fn tiny(value: &str) -> bool {
    let Some((n, unit)) = number(value) else { return value.contains('(') };
    match unit {
        "px" => n < 4.0,
        "pt" => n < 3.0,
        "em" | "rem" => n < 0.3,
        "%" => n < 30.0,
        _ => n < 0.5,
    }
}

/// A number and its unit.
fn number(value: &str) -> Option<(f32, &str)> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(value.len());
    let n: f32 = value[..end].parse().ok()?;
    let unit = value[end..].split([' ', ',', ')']).next().unwrap_or_default();
    n.is_finite().then_some((n, unit))
}

/// A colour that is not seen, or not known.
pub(super) struct Unseen;

/// The colours that are called by name in mail, and white.
const NAMES: &[(&str, Colour)] = &[
    ("black", [0, 0, 0]),
    ("white", [255, 255, 255]),
    ("red", [255, 0, 0]),
    ("green", [0, 128, 0]),
    ("blue", [0, 0, 255]),
    ("navy", [0, 0, 128]),
    ("gray", [128, 128, 128]),
    ("grey", [128, 128, 128]),
    ("dimgray", [105, 105, 105]),
    ("dimgrey", [105, 105, 105]),
    ("darkgray", [169, 169, 169]),
    ("darkgrey", [169, 169, 169]),
    ("silver", [192, 192, 192]),
    ("lightgray", [211, 211, 211]),
    ("lightgrey", [211, 211, 211]),
    ("maroon", [128, 0, 0]),
    ("purple", [128, 0, 128]),
    ("teal", [0, 128, 128]),
    ("olive", [128, 128, 0]),
    ("orange", [255, 165, 0]),
    ("yellow", [255, 255, 0]),
    ("darkblue", [0, 0, 139]),
    ("darkred", [139, 0, 0]),
    ("darkgreen", [0, 100, 0]),
    ("brown", [165, 42, 42]),
    ("fuchsia", [255, 0, 255]),
    ("magenta", [255, 0, 255]),
    ("aqua", [0, 255, 255]),
    ("cyan", [0, 255, 255]),
    ("lime", [0, 255, 0]),
];

/// Words for the colour that is there anyway.
const SAME: &[&str] =
    &["inherit", "initial", "unset", "revert", "currentcolor", "windowtext", "auto", "black"];

/// A colour; nothing where it stays what it is.
pub(super) fn colour(value: &str) -> Result<Option<Colour>, Unseen> {
    let value = value.trim().to_ascii_lowercase();
    if let Some((_, known)) = NAMES.iter().find(|(name, _)| *name == value) {
        return Ok(Some(*known));
    }
    if SAME.contains(&value.as_str()) {
        return Ok(None);
    }
    if let Some(hex) = value.strip_prefix('#') {
        return of_hex(hex).map(Some).ok_or(Unseen);
    }
    let inside = value.strip_prefix("rgba(").or_else(|| value.strip_prefix("rgb("));
    let inside = inside.and_then(|rest| rest.strip_suffix(')')).ok_or(Unseen)?;
    let numbers: Vec<f32> =
        inside.split([',', ' ', '/']).filter_map(|word| number(word).map(|(n, _)| n)).collect();
    match numbers[..] {
        [r, g, b] => Ok(Some([r, g, b].map(|n| n as u8))),
        [r, g, b, a] if a >= OPACITY_MIN => Ok(Some([r, g, b].map(|n| n as u8))),
        _ => Err(Unseen),
    }
}

fn of_hex(hex: &str) -> Option<Colour> {
    let digits: Vec<u8> =
        hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
    match digits[..] {
        [r, g, b] => Some([r * 17, g * 17, b * 17]),
        [a, b, c, d, e, f] => Some([a * 16 + b, c * 16 + d, e * 16 + f]),
        _ => None,
    }
}

fn without_comments(css: &str) -> String {
    let mut bare = String::new();
    let mut rest = css;
    while let Some((before, behind)) = rest.split_once("/*") {
        bare.push_str(before);
        rest = behind.split_once("*/").map_or("", |(_, rest)| rest);
    }
    bare + rest
}

/// Names that style sheets hide: of classes with a dot, of ids with a `#`, of elements.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sheet {
    hidden: HashSet<String>,
    struck: HashSet<String>,
    /// Whether something is hidden that cannot be told from the rest.
    pub(super) doubtful: bool,
}

impl Sheet {
    /// Reads one more style sheet.
    pub(super) fn add(&mut self, css: &str) {
        let css = css.replace("<!--", "").replace("-->", "");
        let css = without_comments(&css);
        let mut rest = css.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let selector = before.rsplit(['}', ';']).next().unwrap_or_default().trim();
            if selector.starts_with("@media") || selector.starts_with("@supports") {
                rest = behind;
                continue;
            }
            let (declarations, behind) = behind.split_once('}').unwrap_or((behind, ""));
            self.rule(selector, &Look::of(declarations));
            rest = behind;
        }
    }

    fn rule(&mut self, selector: &str, look: &Look) {
        let ink = look.ink.is_some_and(|ink| !seen(ink, look.paper.unwrap_or(WHITE)));
        if !(look.hidden || ink || look.struck) || selector.starts_with('@') {
            return;
        }
        for one in selector.split(',') {
            let last = one.split([' ', '>', '+', '~']).rfind(|part| !part.is_empty()).unwrap_or_default();
            let names = names_of(last);
            self.doubtful |= names.is_empty() || self.hidden.len() >= STYLE_NAMES_MAX;
            if look.hidden || ink {
                self.hidden.extend(names);
            } else {
                self.struck.extend(names);
            }
        }
    }

    /// Whether an element of these names is hidden, and whether it is struck through.
    pub(super) fn look(&self, element: &str, id: &str, classes: &str) -> (bool, bool) {
        let names: Vec<String> = [element.to_owned(), format!("#{}", id.to_ascii_lowercase())]
            .into_iter()
            .chain(classes.split_ascii_whitespace().map(|class| format!(".{}", class.to_ascii_lowercase())))
            .collect();
        let any = |set: &HashSet<String>| names.iter().any(|name| set.contains(name));
        (any(&self.hidden), any(&self.struck))
    }
}

/// The classes and ids of the last part of a selector, else its element; none where it means any.
fn names_of(part: &str) -> Vec<String> {
    let part = part.to_ascii_lowercase();
    let part = part.split([':', '[']).next().unwrap_or_default();
    let mut names = Vec::new();
    let mut name = String::new();
    for c in part.chars().chain(['.']) {
        if (c == '.' || c == '#') && !name.is_empty() {
            names.push(std::mem::take(&mut name));
        }
        name.push(c);
    }
    let special: Vec<String> = names.iter().filter(|name| name.starts_with(['.', '#'])).cloned().collect();
    let names = if special.is_empty() { names } else { special };
    names.into_iter().filter(|name| name != "*" && !name.is_empty()).collect()
}
