//! Mermaid flowcharts.

use std::fmt::Write as _;
use switchward_machine::Outcome;

use crate::{Edge, EdgeKind, Graph, Kind, Vertex, text};

/// The classes of vertices: their name, and how they look.
const CLASSES: [(&str, &str); 5] = [
    ("first", "stroke-width:3px"),
    ("good", "stroke:#2e8b57"),
    ("bad", "stroke:#c0392b"),
    ("gone", "stroke:#888888"),
    ("pale", "opacity:0.5"),
];

/// The graph as a Mermaid flowchart. Names never become identifiers: those are `n0`, `n1` and so on, by the order of
/// the vertices.
///
/// # Panics
/// Never: writing into a string cannot fail.
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("flowchart TD\n");
    for (at, vertex) in graph.vertices.iter().enumerate() {
        let (open, close) = shape(vertex);
        let label = [text::name(vertex), text::marks(vertex)];
        writeln!(out, "  n{at}{open}{}{close}", quoted(&label)).expect("writing into a string cannot fail");
    }
    for edge in &graph.edges {
        let labels = text::labels(edge);
        let label = if labels.is_empty() { String::new() } else { format!("|{}|", quoted(&labels)) };
        writeln!(out, "  n{} {}{label} n{}", edge.from, arrow(edge), edge.to)
            .expect("writing into a string cannot fail");
    }
    for (class, style) in CLASSES {
        let of = |(at, vertex): (usize, &Vertex)| wears(vertex, class).then(|| format!("n{at}"));
        let members: Vec<String> = graph.vertices.iter().enumerate().filter_map(of).collect();
        if !members.is_empty() {
            writeln!(out, "  classDef {class} {style}\n  class {} {class}", members.join(","))
                .expect("writing into a string cannot fail");
        }
    }
    out
}

fn shape(vertex: &Vertex) -> (&'static str, &'static str) {
    match vertex.kind {
        Kind::End(_) => ("([", "])"),
        Kind::Node if vertex.last => ("[[", "]]"),
        Kind::Node => ("[", "]"),
    }
}

fn wears(vertex: &Vertex, class: &str) -> bool {
    let end = match vertex.kind {
        Kind::Node => None,
        Kind::End(Outcome::Completed) => Some("good"),
        Kind::End(Outcome::Blocked | Outcome::Failed) => Some("bad"),
        Kind::End(Outcome::Cancelled | Outcome::Abandoned) => Some("gone"),
    };
    end == Some(class) || (class == "first" && vertex.start) || (class == "pale" && !vertex.reached)
}

fn arrow(edge: &Edge) -> &'static str {
    match edge.kind {
        EdgeKind::Free => "-->",
        EdgeKind::Held | EdgeKind::Refused => "-.->",
    }
}

/// A quoted label of these lines; one without any text is a space, because Mermaid takes an empty one for none.
fn quoted(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().filter(|line| !line.is_empty()).map(|line| escaped(line)).collect();
    if lines.is_empty() { "\" \"".to_owned() } else { format!("\"{}\"", lines.join("<br/>")) }
}

/// The code point of the word joiner, which is invisible.
const JOINER: &str = "#8288;";

/// Escapes every character with a meaning in Mermaid, Markdown or HTML as its number. Mermaid looks for formulas and icons
/// after it has decoded numbers, so a word joiner splits their prefixes.
fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let chars: Vec<char> = line.chars().collect();
    for (at, c) in chars.iter().copied().enumerate() {
        let beside = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
        let plain = match c {
            // Inside a word, it does not begin emphasis.
            '_' => beside(at.checked_sub(1)) && beside(at.checked_add(1)),
            // After anything but digits, they do not begin a list.
            '.' | '-' => chars[..at].iter().any(|c| !c.is_ascii_digit()),
            ' ' | ',' | '?' | '·' | '…' => true,
            other => other.is_alphanumeric(),
        };
        if plain {
            out.push(c);
        } else {
            write!(out, "#{};", u32::from(c)).expect("writing into a string cannot fail");
        }
        let rest = &chars[at + 1..];
        if (c == '$' && rest.starts_with(&['$'])) || (c == ':' && rest.starts_with(&['f', 'a', '-'])) {
            out.push_str(JOINER);
        }
    }
    out
}
