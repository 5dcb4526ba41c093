//! DOT, as Graphviz reads it.

use std::fmt::Write as _;
use switchward_machine::Outcome;

use crate::{Edge, EdgeKind, Graph, Kind, Vertex, text};

/// The graph as DOT. Names never become identifiers: those are `n0`, `n1` and so on, by the order of the vertices.
///
/// # Panics
/// Never: writing into a string cannot fail.
#[must_use]
pub fn dot(graph: &Graph) -> String {
    let mut out = format!("digraph {} {{\n", quoted(&text::line(&graph.name)));
    out.push_str("  node [shape=box, style=rounded];\n");
    for (at, vertex) in graph.vertices.iter().enumerate() {
        let label = [text::name(vertex), text::marks(vertex)];
        let label: Vec<&str> = label.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
        let (label, title) = (lines(&label), quoted(&text::vertex_title(vertex)));
        writeln!(out, "  n{at} [label={label}, tooltip={title}{}];", look(vertex))
            .expect("writing into a string cannot fail");
    }
    for edge in &graph.edges {
        let labels = text::labels(edge);
        let labels = lines(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        let (title, line) = (quoted(&text::edge_title(graph, edge)), drawn(edge));
        writeln!(
            out,
            "  n{} -> n{} [label={labels}, edgetooltip={title}, labeltooltip={title}{line}];",
            edge.from, edge.to
        )
        .expect("writing into a string cannot fail");
    }
    out.push_str("}\n");
    out
}

fn look(vertex: &Vertex) -> String {
    let shape = match vertex.kind {
        Kind::Node if vertex.start => ", penwidth=2",
        Kind::Node => "",
        Kind::End(Outcome::Completed) => ", shape=oval, style=solid, color=green4",
        Kind::End(Outcome::Blocked | Outcome::Failed) => ", shape=oval, style=solid, color=red3",
        Kind::End(Outcome::Cancelled | Outcome::Abandoned) => ", shape=oval, style=solid, color=gray40",
    };
    let last = if vertex.last { ", peripheries=2" } else { "" };
    let pale = if vertex.reached { "" } else { ", fontcolor=gray60, color=gray60" };
    format!("{shape}{last}{pale}")
}

fn drawn(edge: &Edge) -> &'static str {
    match edge.kind {
        EdgeKind::Free => "",
        EdgeKind::Held => ", style=dashed",
        EdgeKind::Refused => ", style=dotted",
    }
}

/// A quoted string of these lines.
fn lines(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
    format!("\"{}\"", lines.join("\\n"))
}

fn quoted(line: &str) -> String {
    lines(&[line])
}

/// Escapes a label's text, in which backslashes begin escapes and ampersands begin entities.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            other => out.push(other),
        }
    }
    out
}
