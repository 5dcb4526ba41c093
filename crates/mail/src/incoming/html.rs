//! The words of HTML that a person sees, line by line, without what programs mark as quoted.
//!
//! The tree is the one that browsers make. Styles are evaluated only as far as needed to distinguish visible words from
//! possibly hidden ones; which of several declarations wins is not computed. So words are left out if in doubt, and if a
//! style can change the order of words or cover others, the whole page is refused.

mod colour;
mod font;
mod harmless;
mod look;
mod sheet;
mod space;
mod tags;
#[cfg(test)]
mod tests;
mod tree;
mod value;

use self::colour::{BLACK, Colour, Colours, WHITE, of_attribute, seen};
use self::font::{Size, is_symbols, readable};
use self::look::Look;
use self::sheet::Sheet;
use self::space::Space;
use self::tree::{Element, Step, Tree};
use super::clients::{CUT_IDS, QUOTE_CLASSES, QUOTE_IDS};
use super::own::Own;

/// A mark for visible content other than words, such as a picture, and for words that may be hidden.
const NO_WORD: char = '\u{fffc}';

/// Elements that hold no words of the page.
const SILENT: &[&str] = &["head", "script", "style", "title", "noembed", "noframes"];

/// Elements that are never shown.
const ABSENT: &[&str] = &["template", "datalist", "rp"];

/// Elements that show something other than their content, or not as words in a line.
const UNCLEAR: &[&str] = &[
    "select",
    "button",
    "object",
    "applet",
    "audio",
    "video",
    "canvas",
    "svg",
    "math",
    "map",
    "details",
    "dialog",
    "marquee",
    "frameset",
    "iframe",
    "textarea",
    "xmp",
    "plaintext",
    "bdo",
    "meter",
    "progress",
    "fieldset",
    "tfoot",
];

/// Empty elements that are shown as something other than words.
const PICTURES: &[&str] = &["img", "input", "embed", "frame"];

/// Elements that begin and end a line; all others are inline.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "dir",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "li",
    "listing",
    "main",
    "menu",
    "nav",
    "ol",
    "optgroup",
    "option",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
];

/// Parts of tables that are shown above others regardless of their order, and the parts below them.
const TABLE_TOPS: &[&str] = &["caption", "thead"];
const TABLE_ROWS: &[&str] = &["tbody", "tr"];

/// Elements that may have a background by an attribute.
const COLOURED: &[&str] = &["body", "table", "tbody", "thead", "tfoot", "tr", "td", "th"];

/// Font sizes of elements, relative to their parents.
const SIZES: &[(&str, f32)] = &[
    ("small", 0.8),
    ("sub", 0.8),
    ("sup", 0.8),
    ("rt", 0.5),
    ("big", 1.2),
    ("h1", 2.0),
    ("h2", 1.5),
    ("h3", 1.2),
    ("h5", 0.8),
    ("h6", 0.7),
];

/// How the words in an element are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Chosen,
    /// A program has marked them as quoted.
    Quoted,
    /// They are hidden, and leave no gap.
    Absent,
    /// It is not known whether they are visible.
    Unclear,
}

/// An element that is open.
struct Frame<'t> {
    name: &'t str,
    words: Words,
    /// Whether the text is struck through.
    struck: bool,
    /// Whether line breaks in the source are shown.
    breaks: bool,
    /// Whether it is inline.
    inline: bool,
    /// Whether its children may be in one line.
    row: bool,
    /// Whether this is a table with a row that was read.
    rows: bool,
    foregrounds: Vec<Colour>,
    backgrounds: Vec<Colour>,
    opacity: f32,
    font_px: f32,
    space: Space,
}

impl Frame<'_> {
    /// The window of the page.
    fn window() -> Self {
        Self {
            name: "",
            words: Words::Chosen,
            struck: false,
            breaks: false,
            inline: true,
            row: false,
            rows: false,
            foregrounds: vec![BLACK],
            backgrounds: vec![WHITE],
            opacity: 1.0,
            font_px: 16.0,
            space: Space::default(),
        }
    }
}

/// The page as far as it was read.
struct Page<'t> {
    frames: Vec<Frame<'t>>,
    sheet: Sheet,
    /// The colours of links, if the page says so.
    links: Colours,
    text: String,
    suspicious: bool,
    ended: bool,
    doubtful: bool,
}

/// Returns the visible words, line by line, with a line `>` in place of quoted text. `suspicious` is true if something was
/// hidden; the text is then empty if it is not clear what is visible.
pub(super) fn shown(html: &str) -> Own {
    let unclear = Own { text: String::new(), suspicious: true };
    let Some(tree) = Tree::parse(html) else { return unclear };
    let sheet = Sheet::of(&tree);
    let mut page = Page {
        doubtful: sheet.doubtful,
        sheet,
        frames: vec![Frame::window()],
        links: Colours::default(),
        text: String::new(),
        suspicious: false,
        ended: false,
    };
    for step in tree.steps() {
        match step {
            Step::Open(element) => page.open(element),
            Step::Text(text) => page.text(text),
            Step::Close => page.close(),
        }
        if page.ended || page.doubtful {
            break;
        }
    }
    if page.doubtful { unclear } else { Own { text: page.text, suspicious: page.suspicious } }
}

impl<'t> Page<'t> {
    fn takes(&self) -> bool {
        self.frames.last().is_none_or(|frame| frame.words == Words::Chosen)
    }

    fn line(&mut self) {
        if self.takes() && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn space(&mut self) {
        if self.takes() && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn mark(&mut self) {
        if !self.text.ends_with(NO_WORD) {
            self.text.push(NO_WORD);
        }
    }

    fn text(&mut self, text: &str) {
        let Some(frame) = self.frames.last() else { return };
        let blank = text.trim().is_empty();
        match frame.words {
            Words::Quoted | Words::Absent => {}
            Words::Unclear if blank => {}
            Words::Unclear => self.mark(),
            Words::Chosen if frame.struck && !blank => self.mark(),
            Words::Chosen if frame.breaks => self.text.push_str(text),
            Words::Chosen => {
                for c in text.chars() {
                    if c.is_ascii_whitespace() { self.space() } else { self.text.push(c) }
                }
            }
        }
    }

    fn open(&mut self, element: &'t Element) {
        let name = element.name();
        let id = element.attribute("id").to_ascii_lowercase();
        let quotes = quotes(element, &id);
        let Some(around) = self.frames.last() else { return };
        self.doubtful |= around.words == Words::Chosen && around.rows && TABLE_TOPS.contains(&name);
        let mut frame = match around.words {
            Words::Chosen => {
                let look = self.look(element);
                self.doubtful |= look.doubtful;
                self.ended |= look.ruled && name == "div";
                self.frame(element, &look, quotes)
            }
            words @ (Words::Quoted | Words::Absent | Words::Unclear) => {
                self.ended |= name == "div" && Look::of(element.attribute("style")).ruled;
                Frame { name, words, ..Frame::window() }
            }
        };
        self.ended |= CUT_IDS.iter().any(|known| id.ends_with(known));
        if self.ended || self.doubtful {
            return;
        }
        if let Some(around) = self.frames.last_mut() {
            around.rows |= around.name == "table" && TABLE_ROWS.contains(&name);
        }
        if frame.words == Words::Chosen && (name == "br" || name == "hr" || PICTURES.contains(&name)) {
            self.void(element);
            frame.inline = true;
        } else if name == "hr" {
            self.ended |= cuts(element);
        } else if name == "br" {
            self.space();
        }
        if !frame.inline {
            self.line();
        } else if matches!(name, "td" | "th") || self.frames.last().is_some_and(|around| around.row) {
            self.space();
        }
        if self.takes() && frame.words == Words::Quoted {
            self.line();
            self.text.push_str(">\n");
        }
        if self.takes() && frame.words == Words::Unclear && UNCLEAR.contains(&name) {
            self.mark();
        }
        if frame.words == Words::Chosen && name == "q" {
            self.text.push('"');
        }
        self.frames.push(frame);
    }

    /// Adds the text for an empty element.
    fn void(&mut self, element: &Element) {
        let dot = |name| matches!(element.attribute(name).trim_end_matches("px"), "0" | "1");
        match element.name() {
            "br" => self.text.push('\n'),
            "hr" => {
                self.ended |= cuts(element);
                self.line();
            }
            "input" if element.attribute("type").eq_ignore_ascii_case("hidden") => {}
            "img" if dot("width") || dot("height") => {}
            _ => self.text.push(NO_WORD),
        }
    }

    /// Returns the look of an element by CSS and HTML.
    fn look(&mut self, element: &Element) -> Look {
        let name = element.name();
        let mut look = Look::of(element.attribute("style"));
        let mut hint = Colours::default();
        hint.extend(["color", "text"].iter().find_map(|it| of_attribute(element.attribute(it))));
        match (look.foreground.is_empty(), name) {
            (true, "font" | "body") if !hint.is_empty() => look.foreground = hint,
            (true, "a") => look.foreground.add_rule(&self.links),
            (true, _) => look.foreground.add_rule(&hint),
            (false, _) => {}
        }
        let mut hint = Colours::default();
        hint.extend(of_attribute(element.attribute("bgcolor")));
        if look.background.is_empty() && COLOURED.contains(&name) {
            look.background = hint;
        } else if look.background.is_empty() {
            look.background.add_rule(&hint);
        }
        look.background.unknown |= !element.attribute("background").is_empty();
        if let Some((_, times)) = SIZES.iter().find(|(known, _)| *known == name) {
            look.suggest(Size::Times(*times));
        }
        if name == "font" && !element.attribute("size").is_empty() {
            // The smallest size.
            look.suggest(Size::Pixels(10.0));
        }
        let is = |attribute, value| element.attribute(attribute).eq_ignore_ascii_case(value);
        look.hidden |= is_symbols(element.attribute("face"))
            || (name == "table" && (is("align", "left") || is("align", "right")))
            || is("aria-hidden", "true");
        look.absent |= element.has("hidden") || element.has("popover");
        self.sheet.apply(element, &mut look);
        // These affect cells that are not their children.
        let columns = ["col", "colgroup"].contains(&name);
        look.doubtful |= columns && (look.hidden || look.absent || !look.background.is_empty());
        look
    }

    fn frame(&mut self, element: &'t Element, look: &Look, quotes: bool) -> Frame<'t> {
        let name = element.name();
        let window = Frame::window();
        let around = self.frames.last().unwrap_or(&window);
        let mut frame = Frame {
            name,
            words: Words::Chosen,
            struck: around.struck || look.struck || ["s", "strike", "del"].contains(&name),
            breaks: look.breaks.unwrap_or(around.breaks || name == "pre" || name == "listing"),
            inline: look.inline || around.row || !BLOCKS.contains(&name),
            row: look.row,
            rows: false,
            foregrounds: look.foreground.foregrounds(&around.foregrounds),
            backgrounds: look.background.backgrounds(&around.backgrounds),
            opacity: look.opacity(around.opacity),
            font_px: look.font_px(around.font_px),
            space: look.space.within(&around.space),
        };
        self.doubtful |= frame.space.overlays();
        let unclear = look.hidden
            || (look.absent && look.displayed)
            || look.foreground.unknown
            || look.background.unknown
            || frame.space.hides()
            || !readable(frame.font_px)
            || !seen(&frame.foregrounds, &frame.backgrounds, frame.opacity)
            || UNCLEAR.contains(&name);
        let silent = SILENT.contains(&name);
        let absent = silent || ABSENT.contains(&name) || (look.absent && !look.displayed);
        frame.words = if absent {
            Words::Absent
        } else if unclear {
            Words::Unclear
        } else if quotes {
            Words::Quoted
        } else {
            Words::Chosen
        };
        let hidden = matches!(frame.words, Words::Absent | Words::Unclear);
        self.suspicious |= hidden && !silent && !PICTURES.contains(&name) && !matches!(name, "br" | "hr");
        frame.inline |= hidden;
        if name == "body" {
            let links = ["link", "vlink", "alink"].map(|it| of_attribute(element.attribute(it)));
            self.links.extend(links.into_iter().flatten());
        }
        frame
    }

    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let quoted = frame.words == Words::Quoted;
        if frame.words == Words::Chosen && frame.name == "q" {
            self.text.push('"');
        }
        if !frame.inline || quoted {
            self.line();
        }
        if frame.name == "p" && !frame.inline && self.takes() && !self.text.is_empty() {
            self.text.push('\n');
        }
    }
}

/// Returns true if an element holds a quote or a signature of a mail program.
fn quotes(element: &Element, id: &str) -> bool {
    let class = element.attribute("class").to_ascii_lowercase();
    element.name() == "blockquote"
        || class.split_ascii_whitespace().any(|class| QUOTE_CLASSES.contains(&class))
        || QUOTE_IDS.iter().any(|known| id.ends_with(known))
        || element.attribute("type").eq_ignore_ascii_case("cite")
}

/// Returns true if an `hr` is the one that some programs draw above the quoted text.
fn cuts(rule: &Element) -> bool {
    rule.attribute("id").eq_ignore_ascii_case("stopspelling") || rule.attribute("tabindex") == "-1"
}
