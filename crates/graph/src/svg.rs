//! SVG: one self-contained file without scripts.

mod look;

use std::fmt::Write as _;
use switchward_machine::Outcome;

use crate::layout::{Arc, Layout, Point, Route, Size, TooLarge, lay_out};
use crate::{Edge, EdgeKind, Graph, Kind, Vertex, text};
use look::{LABEL_PX, LINE_PX, MARKS_PX, NAME_PX, STYLE, TITLE_PX};

/// Pixels around the picture.
const MARGIN: i32 = 24;
/// The height of a node's box, pixels.
const BOX_PX: i32 = 46;
/// The height of an end's, pixels.
const END_PX: i32 = 28;
/// The least width of a box, pixels.
const BOX_WIDTH_MIN: i32 = 72;
/// Pixels beside a text in its box, both sides together.
const PADDING: i32 = 30;
/// The height of the title above the picture, and of a line of the key below it, pixels.
const HEAD_PX: i32 = 40;
const KEY_PX: i32 = 20;
/// The length of an arrow's head, pixels.
const HEAD: i32 = 8;

/// The graph as an SVG document, laid out from top to bottom. It follows the reader's light or dark preference, has
/// no script and no reference, and describes its content in its title and description.
///
/// # Errors
/// The graph exceeds the limits of a layout.
///
/// # Panics
/// Never: writing into a string cannot fail.
pub fn svg(graph: &Graph) -> Result<String, TooLarge> {
    let sizes: Vec<Size> = graph.vertices.iter().map(size).collect();
    let arcs: Vec<Arc> = graph.edges.iter().map(arc).collect();
    let start = graph.vertices.iter().position(|vertex| vertex.start).unwrap_or(0);
    let layout = lay_out(&sizes, start, &arcs)?;
    let mut page = Page { out: String::new() };
    page.open(graph, &layout);
    for (edge, route) in graph.edges.iter().zip(&layout.routes) {
        page.edge(graph, edge, route);
    }
    for ((vertex, corner), size) in graph.vertices.iter().zip(&layout.corners).zip(&sizes) {
        page.vertex(vertex, *corner, *size);
    }
    page.close(graph, &layout);
    Ok(page.out)
}

fn size(vertex: &Vertex) -> Size {
    let name = text::width(&text::name(vertex), NAME_PX);
    let marks = text::width(&text::marks(vertex), MARKS_PX);
    let width = (name.max(marks) + PADDING).max(BOX_WIDTH_MIN);
    let height = match vertex.kind {
        Kind::Node => BOX_PX,
        Kind::End(_) => END_PX,
    };
    Size { width, height }
}

fn arc(edge: &Edge) -> Arc {
    let lines = text::labels(edge);
    let width = lines.iter().map(|line| text::width(line, LABEL_PX)).max().unwrap_or(0);
    let height = i32::try_from(lines.len()).unwrap_or(i32::MAX).saturating_mul(LINE_PX);
    Arc { from: edge.from, to: edge.to, label: Size { width, height } }
}

/// The rows of the key below the picture: the class of a line, and its meaning.
fn key(graph: &Graph) -> Vec<(&'static str, &'static str)> {
    let has = |kind: EdgeKind| graph.edges.iter().any(|edge| edge.kind == kind);
    let rows = [
        (has(EdgeKind::Held), "l held", "held: a person is asked, and this way is taken when they agree"),
        (has(EdgeKind::Refused), "l refused", "refused: the person who was asked said no"),
        (
            graph.vertices.iter().any(|vertex| !vertex.reached),
            "l pale",
            "pale: cannot be reached from the start",
        ),
    ];
    rows.into_iter().filter(|row| row.0).map(|(_, class, meaning)| (class, meaning)).collect()
}

/// The document, as it grows.
struct Page {
    out: String,
}

impl Page {
    fn put(&mut self, more: std::fmt::Arguments<'_>) {
        self.out.write_fmt(more).expect("writing into a string cannot fail");
    }

    /// The frame, the style, the description, and the title.
    fn open(&mut self, graph: &Graph, layout: &Layout) {
        let name = text::cut(&graph.name, crate::limits::NAME_CHARS_MAX);
        let key = key(graph);
        let key_width =
            key.iter().map(|(_, meaning)| text::width(meaning, LABEL_PX) + 2 * KEY_PX).max().unwrap_or(0);
        let width = layout.size.width.max(text::width(&name, TITLE_PX)).max(key_width) + 2 * MARGIN;
        let rows = i32::try_from(key.len()).unwrap_or(0);
        let foot = if rows > 0 { (rows + 1) * KEY_PX } else { 0 };
        let height = layout.size.height + HEAD_PX + foot + 2 * MARGIN;
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"switchward-graph\" role=\"img\" \
             aria-labelledby=\"graph-title graph-description\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">\n<title id=\"graph-title\">{}</title>\n\
             <desc id=\"graph-description\">{}</desc>\n<style>\n{STYLE}</style>\n\
             <rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n\
             <text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n\
             <g transform=\"translate({MARGIN} {})\">\n",
            escaped(&text::line(&graph.name)),
            escaped(&text::description(graph)),
            MARGIN + TITLE_PX,
            escaped(&name),
            MARGIN + HEAD_PX,
        ));
    }

    fn vertex(&mut self, vertex: &Vertex, corner: Point, size: Size) {
        let Point { x, y } = corner;
        let (width, height) = (size.width, size.height);
        let class = class(vertex);
        self.put(format_args!(
            "<g class=\"{class}\"><title>{}</title>",
            escaped(&text::vertex_title(vertex))
        ));
        let round = match vertex.kind {
            Kind::Node => 7,
            Kind::End(_) => height / 2,
        };
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>"
        ));
        if vertex.last {
            self.put(format_args!(
                "<rect class=\"inner\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>",
                x + 4,
                y + 4,
                width - 8,
                height - 8
            ));
        }
        let marks = text::marks(vertex);
        let middle = x + width / 2;
        let base = if marks.is_empty() { y + height / 2 + NAME_PX / 3 } else { y + 21 };
        self.put(format_args!(
            "<text class=\"n\" x=\"{middle}\" y=\"{base}\">{}</text>",
            escaped(&text::name(vertex))
        ));
        if !marks.is_empty() {
            let base = base + MARKS_PX + 4;
            self.put(format_args!(
                "<text class=\"m\" x=\"{middle}\" y=\"{base}\">{}</text>",
                escaped(&marks)
            ));
        }
        self.put(format_args!("</g>\n"));
    }

    fn edge(&mut self, graph: &Graph, edge: &Edge, route: &Route) {
        let ([first, ..], [.., before, last]) = (route.points.as_slice(), route.points.as_slice()) else {
            return;
        };
        let (first, before, last) = (*first, *before, *last);
        // To its right, or to its left.
        let looped = (edge.from == edge.to).then_some(if route.label.x > first.x { 1 } else { -1 });
        let pale = graph.vertices.get(edge.from).is_some_and(|vertex| !vertex.reached);
        self.put(format_args!(
            "<g class=\"{}{}\"><title>{}</title>",
            line_class(edge.kind),
            if pale { " pale" } else { "" },
            escaped(&text::edge_title(graph, edge))
        ));
        let (path, head) = match looped {
            Some(side) => (loop_path(first, last, side), [(side * HEAD, -4), (side * HEAD, 4)]),
            None => (path(&route.points), head(before, last)),
        };
        self.put(format_args!("<path class=\"s\" d=\"{path}\"/>"));
        self.put(format_args!(
            "<path class=\"h\" d=\"M{} {}l{} {}L{} {}z\"/>",
            last.x,
            last.y,
            head[0].0,
            head[0].1,
            last.x + head[1].0,
            last.y + head[1].1
        ));
        let Point { x, y } = route.label;
        let mut base = y + LINE_PX - 4;
        for line in text::labels(edge) {
            self.put(format_args!("<text class=\"e\" x=\"{x}\" y=\"{base}\">{}</text>", escaped(&line)));
            base += LINE_PX;
        }
        self.put(format_args!("</g>\n"));
    }

    /// The key, if it has rows, and the end of the document.
    fn close(&mut self, graph: &Graph, layout: &Layout) {
        let mut y = layout.size.height + 2 * KEY_PX;
        for (class, meaning) in key(graph) {
            let (line, base) = (y - 4, y);
            self.put(format_args!(
                "<g class=\"{class}\"><path class=\"s\" d=\"M0 {line}h28\"/>\
                 <text class=\"e\" x=\"36\" y=\"{base}\">{}</text></g>\n",
                escaped(meaning)
            ));
            y += KEY_PX;
        }
        self.put(format_args!("</g>\n</svg>\n"));
    }
}

fn class(vertex: &Vertex) -> String {
    let kind = match vertex.kind {
        Kind::Node if vertex.start => "v start",
        Kind::Node => "v",
        Kind::End(Outcome::Completed) => "v good",
        Kind::End(Outcome::Blocked | Outcome::Failed) => "v bad",
        Kind::End(Outcome::Cancelled | Outcome::Abandoned) => "v gone",
    };
    format!("{kind}{}", if vertex.reached { "" } else { " pale" })
}

fn line_class(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Free => "l",
        EdgeKind::Held => "l held",
        EdgeKind::Refused => "l refused",
    }
}

/// The two corners of an arrow's head behind its tip: it points in the direction in which the line ends.
fn head(before: Point, last: Point) -> [(i32, i32); 2] {
    let back = if before.y < last.y { -HEAD } else { HEAD };
    [(-4, back), (4, back)]
}

/// A line that is straight between points of one column, and a curve that leaves and arrives upright between others.
fn path(points: &[Point]) -> String {
    let mut out = String::new();
    let put = |out: &mut String, more: std::fmt::Arguments<'_>| {
        out.write_fmt(more).expect("writing into a string cannot fail");
    };
    let mut before: Option<Point> = None;
    for point in points {
        let Point { x, y } = *point;
        match before {
            None => put(&mut out, format_args!("M{x} {y}")),
            Some(last) if last.x == x => put(&mut out, format_args!("V{y}")),
            Some(last) => {
                let middle = (last.y + y) / 2;
                put(&mut out, format_args!("C{} {middle} {x} {middle} {x} {y}", last.x));
            }
        }
        before = Some(*point);
    }
    out
}

fn loop_path(first: Point, last: Point, side: i32) -> String {
    let out = first.x + side * 30;
    format!(
        "M{} {}C{out} {} {out} {} {} {}",
        first.x,
        first.y,
        first.y + 6,
        last.y - 6,
        last.x + 2 * side,
        last.y
    )
}

/// Escapes a text for XML, in content and in quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
