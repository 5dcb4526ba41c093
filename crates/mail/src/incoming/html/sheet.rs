//! Style sheets: what they do to the elements of a page.

use std::collections::HashMap;

use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser, StyleSheetParser, Token,
};

use super::look::Look;
use super::tree::{Element, Step, Tree};
use super::value;
use crate::limits::{HTML_CLASSES_MAX, STYLE_BYTES_MAX, STYLE_DEPTH_MAX, STYLE_MATCHES_MAX, STYLE_NAMES_MAX};

/// Media for which a sheet always counts.
const ALWAYS: &[&str] = &["", "all", "screen"];

/// The declarations for the elements that a selector matches.
#[derive(Debug)]
struct Rule {
    selector: Selector,
    look: Look,
}

/// The last part of a selector.
#[derive(Debug, Clone, Default, PartialEq)]
struct Selector {
    element: Option<String>,
    classes: Vec<String>,
    ids: Vec<String>,
    /// Whether it consists of more than names.
    complicated: bool,
}

impl Selector {
    /// A name by which the rule is found.
    fn key(&self) -> String {
        let class = self.classes.first().map(|name| format!(".{name}"));
        let id = || self.ids.first().map(|name| format!("#{name}"));
        class.or_else(id).or_else(|| self.element.clone()).unwrap_or_else(|| "*".to_owned())
    }

    /// Returns true if it matches the element. Case is ignored: whether it matters depends on the page.
    fn names(&self, element: &Element) -> bool {
        let class = |name: &String| classes(element).any(|known| known.eq_ignore_ascii_case(name));
        self.element.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(element.name()))
            && self.classes.iter().all(class)
            && self.ids.iter().all(|name| name.eq_ignore_ascii_case(element.attribute("id")))
    }
}

fn classes(element: &Element) -> impl Iterator<Item = &str> {
    element.attribute("class").split_ascii_whitespace()
}

/// The style sheets of a page.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    rules: Vec<Rule>,
    /// The positions of rules in the list by a name in their selectors.
    positions: HashMap<String, Vec<usize>>,
    bytes: usize,
    /// How often a rule was compared with an element.
    matches: usize,
    /// Whether it is not known what is hidden, or in which order words are seen.
    pub(super) doubtful: bool,
}

impl Sheet {
    /// Reads all style sheets of a page.
    pub(super) fn of(page: &Tree) -> Self {
        let mut sheet = Self::default();
        let mut style = None;
        for step in page.steps() {
            match step {
                Step::Open(element) => {
                    style = (element.name() == "style").then_some(element);
                    sheet.doubtful |= is_doubtful(element);
                }
                Step::Text(css) => {
                    if let Some(element) = style {
                        let media = element.attribute("media").trim().to_ascii_lowercase();
                        sheet.add(css, ALWAYS.contains(&media.as_str()));
                    }
                }
                Step::Close => style = None,
            }
        }
        sheet
    }

    /// Reads one more sheet, which counts `always` or may count.
    fn add(&mut self, css: &str, always: bool) {
        self.bytes += css.len();
        if self.bytes > STYLE_BYTES_MAX {
            self.doubtful = true;
            return;
        }
        let mut input = Parser::new(css);
        input.set_nested_block_limit(STYLE_DEPTH_MAX);
        let mut block = Block { sheet: self, always, nested: false, look: Look::default() };
        let mut deep = false;
        for rule in StyleSheetParser::new(&mut input, &mut block) {
            deep |= rule.is_err_and(|(error, ..)| value::too_deep(&error));
        }
        self.doubtful |= deep;
    }

    /// Adds a rule. As programs differ in which rules they know, none is taken to count for sure.
    fn rule(&mut self, selectors: Vec<Selector>, look: &Look, always: bool) {
        if *look == Look::default() {
            return;
        }
        // Browsers leave out all of a rule if they do not know one selector of it.
        let clear = always && !selectors.iter().any(|selector| selector.complicated);
        self.doubtful |= !clear && look.can_hide();
        for selector in selectors {
            if self.rules.len() >= STYLE_NAMES_MAX {
                self.doubtful = true;
                return;
            }
            self.positions.entry(selector.key()).or_default().push(self.rules.len());
            self.rules.push(Rule { selector, look: look.clone() });
        }
    }

    /// Adds the declarations of the sheets for an element to its look.
    pub(super) fn apply(&mut self, element: &Element, look: &mut Look) {
        if self.rules.is_empty() {
            return;
        }
        let id = format!("#{}", element.attribute("id").to_ascii_lowercase());
        let mut keys = vec!["*".to_owned(), element.name().to_ascii_lowercase(), id];
        keys.extend(
            classes(element).take(HTML_CLASSES_MAX).map(|class| format!(".{}", class.to_ascii_lowercase())),
        );
        keys.sort_unstable();
        keys.dedup();
        look.doubtful |= classes(element).nth(HTML_CLASSES_MAX).is_some();
        for position in keys.iter().filter_map(|key| self.positions.get(key)).flatten() {
            self.matches += 1;
            if look.doubtful || self.matches > STYLE_MATCHES_MAX {
                look.doubtful = true;
                return;
            }
            let rule = &self.rules[*position];
            if rule.selector.names(element) {
                look.add_rule(&rule.look);
            }
        }
    }
}

/// Returns true if programs differ in what they show of a page with this element, or load unknown content.
fn is_doubtful(element: &Element) -> bool {
    match element.name() {
        "link" => {
            let relations = element.attribute("rel").split_ascii_whitespace();
            relations.into_iter().any(|relation| relation.eq_ignore_ascii_case("stylesheet"))
        }
        "noscript" => true,
        "template" => element.has("shadowrootmode"),
        _ => false,
    }
}

/// The content of a rule's braces, or a whole sheet.
struct Block<'s> {
    sheet: &'s mut Sheet,
    /// Whether its rules always count, not only in some windows or programs.
    always: bool,
    /// Whether this is the inside of a style rule.
    nested: bool,
    look: Look,
}

impl Block<'_> {
    /// The block of a rule in this one.
    fn inside(&mut self, always: bool, nested: bool) -> Block<'_> {
        Block { sheet: self.sheet, always: self.always && always, nested, look: Look::default() }
    }

    fn read(&mut self, input: &mut Parser<'_>) {
        let mut deep = false;
        for item in RuleBodyParser::<_, (), ()>::new(input, self) {
            deep |= item.is_err_and(|(error, ..)| value::too_deep(&error));
        }
        self.sheet.doubtful |= deep;
    }
}

impl<'i> DeclarationParser<'i> for Block<'_> {
    type Declaration = ();
    type Error = ();

    fn parse_value(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
        _: &ParserState,
    ) -> Result<(), ParseError<()>> {
        self.look.declare(&name, input)
    }
}

impl<'i> QualifiedRuleParser<'i> for Block<'_> {
    type Prelude = Vec<Selector>;
    type QualifiedRule = ();
    type Error = ();

    fn parse_prelude(&mut self, input: &mut Parser<'i>) -> Result<Vec<Selector>, ParseError<()>> {
        let mut selectors = selectors(input);
        selectors.iter_mut().for_each(|selector| selector.complicated |= self.nested);
        Ok(selectors)
    }

    fn parse_block(
        &mut self,
        selectors: Vec<Selector>,
        _: &ParserState,
        input: &mut Parser<'i>,
    ) -> Result<(), ParseError<()>> {
        let mut block = self.inside(true, true);
        block.read(input);
        let look = std::mem::take(&mut block.look);
        self.sheet.rule(selectors, &look, self.always);
        Ok(())
    }
}

/// A rule that begins with `@`.
enum AtRule {
    /// It holds rules, which count `always` or not.
    Rules {
        always: bool,
    },
    Font,
    /// It does not affect words.
    Nothing,
}

impl<'i> AtRuleParser<'i> for Block<'_> {
    type Prelude = AtRule;
    type AtRule = ();
    type Error = ();

    fn parse_prelude(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
    ) -> Result<AtRule, ParseError<()>> {
        let start = input.position();
        while input.next().is_ok() {}
        let condition = input.slice_from(start).trim().to_ascii_lowercase();
        Ok(match name.to_ascii_lowercase().as_str() {
            "media" => AtRule::Rules { always: ALWAYS.contains(&condition.as_str()) },
            "supports" | "container" | "layer" | "scope" | "document" | "-moz-document"
            | "starting-style" => AtRule::Rules { always: false },
            "font-face" => AtRule::Font,
            "page" | "list" | "charset" | "namespace" | "viewport" | "-ms-viewport" | "keyframes"
            | "-webkit-keyframes" | "-moz-keyframes" | "-o-keyframes" | "property" => AtRule::Nothing,
            // `import`, and what is not known.
            _ => {
                self.sheet.doubtful = true;
                AtRule::Nothing
            }
        })
    }

    fn rule_without_block(&mut self, _: AtRule, _: &ParserState) -> Result<(), ()> {
        Ok(())
    }

    fn parse_block(
        &mut self,
        rule: AtRule,
        _: &ParserState,
        input: &mut Parser<'i>,
    ) -> Result<(), ParseError<()>> {
        match rule {
            AtRule::Rules { always } => {
                let mut block = self.inside(always, self.nested);
                block.read(input);
                let look = std::mem::take(&mut block.look);
                // Declarations directly in a condition within a style rule.
                self.sheet.doubtful |= look != Look::default();
            }
            AtRule::Font => {
                let mut font = Font { has_source: false };
                for _ in RuleBodyParser::<_, (), ()>::new(input, &mut font) {}
                // Characters of its own font may look like others.
                self.sheet.doubtful |= font.has_source;
            }
            AtRule::Nothing => while input.next().is_ok() {},
        }
        Ok(())
    }
}

impl RuleBodyItemParser<'_, (), ()> for Block<'_> {
    fn parse_declarations(&self) -> bool {
        self.nested
    }

    fn parse_qualified(&self) -> bool {
        true
    }
}

/// What `@font-face` declares.
struct Font {
    has_source: bool,
}

impl<'i> DeclarationParser<'i> for Font {
    type Declaration = ();
    type Error = ();

    fn parse_value(
        &mut self,
        name: CowRcStr<'i>,
        input: &mut Parser<'i>,
        _: &ParserState,
    ) -> Result<(), ParseError<()>> {
        self.has_source |= name.eq_ignore_ascii_case("src");
        while input.next().is_ok() {}
        Ok(())
    }
}

impl AtRuleParser<'_> for Font {
    type Prelude = ();
    type AtRule = ();
    type Error = ();
}

impl QualifiedRuleParser<'_> for Font {
    type Prelude = ();
    type QualifiedRule = ();
    type Error = ();
}

impl RuleBodyItemParser<'_, (), ()> for Font {
    fn parse_declarations(&self) -> bool {
        true
    }

    fn parse_qualified(&self) -> bool {
        false
    }
}

/// Reads a list of selectors: of each the names in its last part, in lower case, and whether there is more to it.
fn selectors(input: &mut Parser<'_>) -> Vec<Selector> {
    let mut all = Vec::new();
    let (mut selector, mut part, mut sign) = (Selector::default(), Part::Empty, ' ');
    while let Ok(token) = input.next_including_whitespace() {
        let behind = std::mem::replace(&mut sign, ' ');
        selector.complicated |= behind == '.' && !matches!(token, Token::Ident(_));
        if matches!(token, Token::Comma) {
            all.push(std::mem::take(&mut selector));
            part = Part::Empty;
        } else if matches!(token, Token::WhiteSpace(_)) {
            part = if part == Part::Begun { Part::Ended } else { part };
        } else if matches!(token, Token::Delim('>' | '+' | '~')) {
            selector = Selector { complicated: true, ..Selector::default() };
            part = Part::Empty;
        } else {
            if part == Part::Ended {
                selector = Selector { complicated: true, ..Selector::default() };
            }
            sign = selector.add(token, behind, part != Part::Begun);
            part = Part::Begun;
        }
    }
    selector.complicated |= sign == '.';
    all.push(selector);
    all
}

impl Selector {
    /// Adds the part after a character, or after a space if it is the first. Returns the character before the next part.
    fn add(&mut self, token: &Token<'_>, behind: char, first: bool) -> char {
        match (token, behind) {
            (Token::Ident(name), '.') => self.classes.push(name.to_ascii_lowercase()),
            (Token::Ident(name), ' ') if first => self.element = Some(name.to_ascii_lowercase()),
            (Token::Hash(name) | Token::IDHash(name), ' ') => self.ids.push(name.to_ascii_lowercase()),
            (Token::Delim('.'), ' ') => return '.',
            (Token::Delim('*'), ' ') if first => {}
            (token, _) => {
                self.complicated = true;
                return if matches!(token, Token::Colon) { ':' } else { ' ' };
            }
        }
        ' '
    }
}

/// How far the part of a selector between spaces is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Empty,
    Begun,
    Ended,
}
