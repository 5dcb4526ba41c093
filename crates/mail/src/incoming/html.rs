//! The words of HTML that a reader sees, line by line, without what programs mark as quoted.
//!
//! Not a browser: where one might show something else, the words are left out, and where it cannot be told what follows
//! belongs to, the reading ends.

use mail_parser::decoders::html::add_html_token;

use super::clients::{CUT_IDS, QUOTE_CLASSES, QUOTE_IDS};
use super::own::Own;
use super::style::{BLACK, Colour, Look, Sheet, WHITE, colour, seen};
use crate::limits::{HTML_ATTRIBUTES_MAX, HTML_DEPTH_MAX};

/// A word that is seen, but is no word: a picture, something struck through.
const NO_WORD: char = '\u{fffc}';

/// Elements that have no end.
const VOID: &[&str] = &[
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "link",
    "meta", "param", "source", "track", "wbr",
];

/// Elements whose contents are no words of the page.
const RAW: &[&str] = &[
    "script",
    "style",
    "title",
    "textarea",
    "xmp",
    "iframe",
    "noembed",
    "noframes",
    "noscript",
    "plaintext",
];

/// Elements whose contents are not shown, or not as words.
const UNSHOWN: &[&str] = &[
    "head", "template", "select", "datalist", "button", "object", "applet", "audio", "video", "canvas",
    "svg", "math", "map", "details", "dialog", "rp", "marquee", "frameset",
];

/// Elements that stand in a line.
const INLINE: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub",
    "sup", "time", "tt", "u", "var", "html", "body", "tbody", "thead", "tfoot", "ruby", "rt",
];

/// Elements that an end tag of something around them does not close.
const BARRIERS: &[&str] = &["table", "td", "th", "caption", "html"];

enum Token<'h> {
    Text(&'h str),
    Open(Element),
    Close(String),
}

/// A start tag.
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Element {
    fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(known, _)| known == name)
    }
}

/// Reads tags and what stands between them.
struct Reader<'h> {
    rest: &'h str,
}

impl<'h> Iterator for Reader<'h> {
    type Item = Token<'h>;

    fn next(&mut self) -> Option<Token<'h>> {
        while !self.rest.is_empty() {
            let Some(tag) = self.rest.strip_prefix('<') else { return Some(self.text(0)) };
            let first = tag.chars().next();
            if tag.starts_with("!--") {
                self.rest = behind_comment(tag);
            } else if matches!(first, Some('!' | '?')) {
                self.rest = tag.split_once('>').map_or("", |(_, rest)| rest);
            } else if let Some(end) = tag.strip_prefix('/') {
                let (inside, rest) = end.split_once('>').unwrap_or((end, ""));
                self.rest = rest;
                return Some(Token::Close(name_of(inside)));
            } else if first.is_some_and(|c| c.is_ascii_alphabetic()) {
                return Some(Token::Open(self.element(tag)));
            } else {
                return Some(self.text(1));
            }
        }
        None
    }
}

impl<'h> Reader<'h> {
    /// Text up to the next tag, of which so many bytes are no tag whatever they look like.
    fn text(&mut self, sure: usize) -> Token<'h> {
        let end = self.rest[sure..].find('<').map_or(self.rest.len(), |at| at + sure);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Text(text)
    }

    fn element(&mut self, tag: &'h str) -> Element {
        let name = name_of(tag);
        let mut element = Element { attributes: Vec::new(), name };
        let mut rest = tag[element.name.len().min(tag.len())..].trim_start();
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                break;
            }
            if let Some(behind) = rest.strip_prefix('>') {
                rest = behind;
                break;
            }
            let end = rest.find(|c: char| c.is_ascii_whitespace() || "/>=".contains(c)).unwrap_or(rest.len());
            // A sign that can begin no name is one.
            let end = end.max(rest.chars().next().map_or(0, char::len_utf8));
            let (name, behind) = rest.split_at(end);
            let (value, behind) = value_of(behind);
            if element.attributes.len() < HTML_ATTRIBUTES_MAX {
                element.attributes.push((name.to_ascii_lowercase(), decoded(value)));
            }
            rest = behind;
        }
        self.rest = rest;
        element
    }

    /// The contents of an element that holds no elements, and goes behind its end.
    fn raw(&mut self, name: &str) -> &'h str {
        let bytes = self.rest.as_bytes();
        let end = format!("</{name}");
        let mut at = 0;
        while let Some(found) = self.rest[at..].find("</") {
            at += found;
            if bytes[at..].len() >= end.len()
                && bytes[at..at + end.len()].eq_ignore_ascii_case(end.as_bytes())
            {
                let inside = &self.rest[..at];
                self.rest = self.rest[at..].split_once('>').map_or("", |(_, rest)| rest);
                return inside;
            }
            at += 2;
        }
        std::mem::take(&mut self.rest)
    }
}

fn behind_comment(tag: &str) -> &str {
    let inside = &tag[3..];
    if let Some(rest) = inside.strip_prefix('>').or_else(|| inside.strip_prefix("->")) {
        return rest;
    }
    let ends = ["-->", "--!>"].iter().filter_map(|end| inside.find(end).map(|at| at + end.len()));
    ends.min().map_or("", |end| &inside[end..])
}

fn name_of(tag: &str) -> String {
    let end = tag.find(|c: char| c.is_ascii_whitespace() || "/>".contains(c)).unwrap_or(tag.len());
    tag[..end].to_ascii_lowercase()
}

/// The value behind an attribute's name, if there is one, and what follows.
fn value_of(behind: &str) -> (&str, &str) {
    let Some(value) = behind.trim_start().strip_prefix('=') else { return ("", behind) };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(inside) = value.strip_prefix(quote) {
            return inside.split_once(quote).unwrap_or((inside, ""));
        }
    }
    value.split_at(value.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(value.len()))
}

/// A text with its character references replaced.
fn decoded(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        all.push_str(before);
        let end = behind.bytes().take(32).position(|b| b == b';');
        let named = end.filter(|end| behind[..*end].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#'));
        match named {
            Some(end) if end > 0 => {
                add_html_token(&mut all, format!("&{};", &behind[..end]).as_bytes(), false);
                rest = &behind[end + 1..];
            }
            _ => {
                all.push('&');
                rest = behind;
            }
        }
    }
    all + rest
}

/// An element that is open.
struct Frame {
    name: String,
    /// Whether nothing in it is taken, for whatever reason.
    skipped: bool,
    /// Whether it is the one that hides or quotes what is in it.
    first: bool,
    struck: bool,
    pre: bool,
    inline: bool,
    ink: Colour,
    paper: Colour,
}

/// The page as far as it was read.
struct Page {
    frames: Vec<Frame>,
    sheet: Sheet,
    text: String,
    suspicious: bool,
    ended: bool,
}

/// The words that are seen, line by line; a line `>` stands where something quoted was.
pub(super) fn shown(html: &str) -> Own {
    let mut sheet = Sheet::default();
    let mut reader = Reader { rest: html };
    while let Some(token) = reader.next() {
        match token {
            Token::Open(element) if element.name == "style" => sheet.add(reader.raw("style")),
            Token::Open(element) if RAW.contains(&element.name.as_str()) => _ = reader.raw(&element.name),
            Token::Open(_) | Token::Text(_) | Token::Close(_) => {}
        }
    }
    if sheet.doubtful {
        return Own { text: String::new(), suspicious: true };
    }
    let mut page = Page { frames: Vec::new(), sheet, text: String::new(), suspicious: false, ended: false };
    let mut reader = Reader { rest: html };
    while let Some(token) = reader.next() {
        match token {
            Token::Open(element) if RAW.contains(&element.name.as_str()) => _ = reader.raw(&element.name),
            Token::Open(element) => page.open(&element),
            Token::Close(name) => page.close(&name),
            Token::Text(text) => page.text(text),
        }
        if page.ended {
            break;
        }
    }
    Own { text: page.text, suspicious: page.suspicious }
}

impl Page {
    fn skips(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.skipped)
    }

    fn line(&mut self) {
        if !self.skips() && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn text(&mut self, text: &str) {
        let (pre, struck) = self.frames.last().map_or((false, false), |frame| (frame.pre, frame.struck));
        let text = decoded(text);
        if self.skips() {
            return;
        }
        if struck && !text.trim().is_empty() {
            self.text.push(NO_WORD);
        } else if pre {
            self.text.push_str(&text);
        } else {
            for c in text.chars() {
                let space = c.is_ascii_whitespace();
                if !space {
                    self.text.push(c);
                } else if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                    self.text.push(' ');
                }
            }
        }
    }

    fn void(&mut self, element: &Element) {
        match element.name.as_str() {
            "br" if !self.skips() => self.text.push('\n'),
            "hr" => {
                // Some programs draw this one above what they quote.
                self.ended |= element.attribute("id").eq_ignore_ascii_case("stopspelling")
                    || element.attribute("tabindex") == "-1";
                self.line();
            }
            "img" if !self.skips() => {
                let dot = |name| matches!(element.attribute(name).trim_end_matches("px"), "0" | "1");
                let hidden = Look::of(element.attribute("style")).hidden;
                if !(dot("width") || dot("height") || hidden) {
                    self.text.push(NO_WORD);
                }
            }
            "input" if !self.skips() && element.attribute("type") != "hidden" => self.text.push(NO_WORD),
            _ => {}
        }
    }

    fn open(&mut self, element: &Element) {
        let name = element.name.as_str();
        if VOID.contains(&name) {
            return self.void(element);
        }
        self.close_implied(name);
        if self.frames.len() >= HTML_DEPTH_MAX || (name == "body" && !self.text.trim().is_empty()) {
            (self.ended, self.suspicious) = (true, true);
            return;
        }
        let id = element.attribute("id").to_ascii_lowercase();
        let ruled = name == "div" && Look::of(element.attribute("style")).ruled;
        if ruled || CUT_IDS.iter().any(|known| id.ends_with(known)) {
            self.ended = true;
            return;
        }
        let frame = self.frame(element, &id);
        let quote = frame.skipped && frame.first && quotes(element, &id);
        if !frame.inline {
            self.line();
        }
        if quote {
            self.line();
            self.text.push_str(">\n");
        }
        if name == "td" || name == "th" {
            self.text.push(' ');
        }
        self.frames.push(frame);
    }

    fn frame(&mut self, element: &Element, id: &str) -> Frame {
        let name = element.name.as_str();
        let look = Look::of(element.attribute("style"));
        let (sheet_hidden, sheet_struck) = self.sheet.look(name, id, element.attribute("class"));
        let above = self.frames.last();
        let attribute = |name| Some(element.attribute(name)).filter(|value| !value.is_empty());
        let paper = attribute("bgcolor").and_then(|value| colour(value).ok().flatten());
        let told = attribute("color").or_else(|| attribute("text")).map(colour);
        let unseen = matches!(told, Some(Err(_)));
        let told = told.and_then(|colour| colour.ok().flatten());
        let ink = look.ink.or(told).or(above.map(|frame| frame.ink)).unwrap_or(BLACK);
        let paper = look.paper.or(paper).or(above.map(|frame| frame.paper)).unwrap_or(WHITE);
        let hidden = look.hidden
            || unseen
            || sheet_hidden
            || !seen(ink, paper)
            || element.has("hidden")
            || element.attribute("aria-hidden").eq_ignore_ascii_case("true")
            || UNSHOWN.contains(&name);
        let quoted = quotes(element, id);
        let over = above.is_some_and(|frame| frame.skipped);
        self.suspicious |= hidden && !over && name != "head";
        let strikes = ["s", "strike", "del"].contains(&name) || look.struck || sheet_struck;
        Frame {
            name: name.to_owned(),
            skipped: over || hidden || quoted,
            first: !over && (hidden || quoted),
            struck: strikes || above.is_some_and(|frame| frame.struck),
            pre: name == "pre" || above.is_some_and(|frame| frame.pre),
            inline: look.inline || INLINE.contains(&name),
            ink,
            paper,
        }
    }

    /// Some elements end where another of their kind begins.
    fn close_implied(&mut self, name: &str) {
        let ends = match name {
            "p" | "li" | "tr" | "td" | "th" | "dt" | "dd" | "option" => name,
            _ => return,
        };
        if self.frames.last().is_some_and(|frame| frame.name == ends && !frame.first) {
            self.close(ends);
        }
    }

    fn close(&mut self, name: &str) {
        let Some(at) = self.frames.iter().rposition(|frame| frame.name == name) else { return };
        if self.frames[at + 1..].iter().any(|frame| BARRIERS.contains(&frame.name.as_str())) {
            return;
        }
        // What is hidden inside something that ends before it: browsers go on hiding in some of these cases.
        if self.frames[at + 1..].iter().any(|frame| frame.first || frame.struck) {
            (self.ended, self.suspicious) = (true, true);
            return;
        }
        let inline = self.frames[at].inline;
        let marks = self.frames[at].first;
        self.frames.truncate(at);
        if !inline || marks {
            self.line();
        }
        if name == "p" && !self.skips() && !self.text.is_empty() {
            self.text.push('\n');
        }
    }
}

/// Whether an element holds what a program quotes or signs with.
fn quotes(element: &Element, id: &str) -> bool {
    let class = element.attribute("class").to_ascii_lowercase();
    element.name == "blockquote"
        || class.split_ascii_whitespace().any(|class| QUOTE_CLASSES.contains(&class))
        || QUOTE_IDS.iter().any(|known| id.ends_with(known))
        || element.attribute("type").eq_ignore_ascii_case("cite")
}
