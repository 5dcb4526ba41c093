//! Parsers of the part of each language that a picture may use. They are stricter than the real ones: everything unknown
//! is an error.

use std::collections::BTreeSet;

/// The parsed picture.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    /// The first line of each vertex, in order.
    pub(crate) vertices: Vec<String>,
    pub(crate) edges: usize,
}

type Read<T> = Result<T, String>;

/// A text that is consumed from its front.
struct Front<'a>(&'a str);

impl<'a> Front<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn must(&mut self, token: &str) -> Read<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("{token:?} is expected at {:?}", self.0)) }
    }

    fn take(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !is(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    /// `n0`, `n1` and so on.
    fn id(&mut self) -> Read<usize> {
        self.must("n")?;
        self.take(|c| c.is_ascii_digit()).parse().map_err(|error| format!("{error} at {:?}", self.0))
    }

    fn end(&self) -> Read<()> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("the end is expected at {:?}", self.0)) }
    }
}

/// Checks that vertices occur in order, and that edges join known ones.
fn vertex(picture: &mut Picture, id: usize, label: String) -> Read<()> {
    if id != picture.vertices.len() {
        return Err(format!("n{id} is out of order"));
    }
    picture.vertices.push(label);
    Ok(())
}

fn edge(picture: &mut Picture, from: usize, to: usize) -> Read<()> {
    if from.max(to) >= picture.vertices.len() {
        return Err(format!("n{from} or n{to} is not defined"));
    }
    picture.edges += 1;
    Ok(())
}

/// DOT: `digraph "name" {`, a line for each statement, `}`.
pub(crate) fn dot(text: &str) -> Read<Picture> {
    let mut lines = text.lines();
    let mut head = Front(lines.next().ok_or("nothing")?);
    head.must("digraph ")?;
    dot_string(&mut head)?;
    head.must(" {")?;
    head.end()?;
    let mut picture = Picture::default();
    for line in lines.by_ref().take_while(|line| *line != "}") {
        let mut line = Front(line);
        line.must("  ")?;
        if line.eat("node ") {
            attributes(&mut line)?;
            continue;
        }
        let from = line.id()?;
        if line.eat(" -> ") {
            let to = line.id()?;
            line.must(" ")?;
            attributes(&mut line)?;
            edge(&mut picture, from, to)?;
        } else {
            line.must(" ")?;
            let label = attributes(&mut line)?;
            vertex(&mut picture, from, label)?;
        }
    }
    if lines.next().is_some() { Err("there is text after the end".into()) } else { Ok(picture) }
}

/// `[name=value, ...];`: the first line of the label.
fn attributes(line: &mut Front<'_>) -> Read<String> {
    let mut label = String::new();
    line.must("[")?;
    loop {
        let name = line.take(|c| c.is_ascii_lowercase());
        line.must("=")?;
        if line.0.starts_with('"') {
            let value = dot_string(line)?;
            if name == "label" {
                label = value;
            }
        } else if line.take(|c| c.is_ascii_alphanumeric()).is_empty() {
            return Err(format!("no value at {:?}", line.0));
        }
        if !line.eat(", ") {
            break;
        }
    }
    line.must("];")?;
    line.end()?;
    Ok(label)
}

/// A quoted string: its first line.
fn dot_string(line: &mut Front<'_>) -> Read<String> {
    line.must("\"")?;
    let mut out = String::new();
    loop {
        out.push_str(line.take(|c| !matches!(c, '"' | '\\' | '&') && !c.is_control()));
        if line.eat("\"") {
            return Ok(out.lines().next().unwrap_or_default().to_owned());
        }
        let known = [("\\\"", "\""), ("\\\\", "\\"), ("\\n", "\n"), ("&amp;", "&")];
        let Some((_, meant)) = known.iter().find(|(written, _)| line.eat(written)) else {
            return Err(format!("no end of a string at {:?}", line.0));
        };
        out.push_str(meant);
    }
}

/// The word joiner.
const JOINER: char = '\u{2060}';

/// A flowchart: vertices, edges, classes, each on a line.
pub(crate) fn mermaid(text: &str) -> Read<Picture> {
    let mut lines = text.lines();
    if lines.next() != Some("flowchart TD") {
        return Err("the first line is not a flowchart".into());
    }
    let mut picture = Picture::default();
    let mut classes = BTreeSet::new();
    for line in lines {
        let mut line = Front(line);
        line.must("  ")?;
        if line.eat("classDef ") {
            classes.insert(line.take(|c| c.is_ascii_lowercase()));
        } else if line.eat("class ") {
            members(&mut line, &picture, &classes)?;
        } else {
            statement(&mut line, &mut picture)?;
        }
    }
    Ok(picture)
}

fn members(line: &mut Front<'_>, picture: &Picture, classes: &BTreeSet<&str>) -> Read<()> {
    loop {
        let id = line.id()?;
        if id >= picture.vertices.len() {
            return Err(format!("n{id} is not defined"));
        }
        if !line.eat(",") {
            break;
        }
    }
    line.must(" ")?;
    if classes.contains(line.0) { Ok(()) } else { Err(format!("{:?} is not a class", line.0)) }
}

fn statement(line: &mut Front<'_>, picture: &mut Picture) -> Read<()> {
    let from = line.id()?;
    for (open, close) in [("([", "])"), ("[[", "]]"), ("[", "]")] {
        if line.eat(open) {
            let label = mermaid_string(line)?;
            line.must(close)?;
            line.end()?;
            return vertex(picture, from, label);
        }
    }
    line.must(" ")?;
    if !line.eat("-.->") {
        line.must("-->")?;
    }
    if line.eat("|") {
        mermaid_string(line)?;
        line.must("|")?;
    }
    line.must(" ")?;
    let to = line.id()?;
    line.end()?;
    edge(picture, from, to)
}

/// A quoted label: its first line. Letters, digits and a few characters are plain, everything else is a number.
fn mermaid_string(line: &mut Front<'_>) -> Read<String> {
    line.must("\"")?;
    let mut out = String::new();
    loop {
        out.push_str(line.take(|c| c.is_alphanumeric() || " ,?._-·…".contains(c)));
        if line.eat("\"") {
            break;
        }
        if line.eat("<br/>") {
            out.push('\n');
            continue;
        }
        // It is invisible.
        if line.eat("#8288;") {
            out.push(JOINER);
            continue;
        }
        line.must("#")?;
        let number = line.take(|c| c.is_ascii_digit());
        line.must(";")?;
        let meant = number.parse().ok().and_then(char::from_u32);
        out.push(meant.ok_or_else(|| format!("#{number}; is not a character"))?);
    }
    if out.is_empty() || out.contains("$$") {
        return Err(format!("a label is empty, or a formula: {out:?}"));
    }
    Ok(out.lines().next().unwrap_or_default().replace(JOINER, ""))
}

/// SVG: well-formed XML. A vertex is a group of the class `v`, its first line a text of the class `n`; an edge is a
/// group of the class `l` with a title. The lines of the key have no title.
pub(crate) fn svg(text: &str) -> Read<Picture> {
    let mut picture = Picture::default();
    let mut open: Vec<(&str, &str)> = Vec::new();
    let mut rest = Front(text);
    loop {
        let content = entities(rest.take(|c| c != '<'))?;
        if rest.0.is_empty() {
            return if open.is_empty() { Ok(picture) } else { Err(format!("{open:?} are open")) };
        }
        if open.last() == Some(&("text", "n")) {
            picture.vertices.push(content);
        }
        rest.must("<")?;
        if rest.eat("/") {
            let name = rest.take(|c| c.is_ascii_alphabetic());
            rest.must(">")?;
            match open.pop() {
                Some((known, _)) if known == name => continue,
                other => return Err(format!("{name} does not close {other:?}")),
            }
        }
        let name = rest.take(|c| c.is_ascii_alphabetic());
        let class = element(&mut rest)?;
        let within = open.last().map_or("", |(_, class)| class);
        if name == "title" && within.split(' ').next() == Some("l") {
            picture.edges += 1;
        }
        if !rest.eat("/") {
            open.push((name, class));
        }
        rest.must(">")?;
    }
}

/// Parses the attributes of an element, and returns its class.
fn element<'a>(rest: &mut Front<'a>) -> Read<&'a str> {
    let mut class = "";
    while rest.eat(" ") {
        let name = rest.take(|c| c.is_ascii_alphabetic() || c == '-');
        rest.must("=\"")?;
        let value = rest.take(|c| c != '"' && c != '<');
        rest.must("\"")?;
        entities(value)?;
        if name.starts_with("on") || name == "href" || name == "src" {
            return Err(format!("a picture must not have {name}"));
        }
        if name == "class" {
            class = value;
        }
    }
    Ok(class)
}

/// Decodes the entities of a text.
fn entities(text: &str) -> Read<String> {
    let mut rest = Front(text);
    let mut out = String::new();
    loop {
        out.push_str(rest.take(|c| c != '&' && c != '\0'));
        if rest.0.is_empty() {
            return Ok(out);
        }
        let known = [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")];
        let Some((_, meant)) = known.iter().find(|(written, _)| rest.eat(written)) else {
            return Err(format!("no entity at {:?}", rest.0));
        };
        out.push_str(meant);
    }
}
