//! The texts of pictures.

use crate::limits::{
    DESCRIPTION_CHARS_MAX, LABEL_CHARS_MAX, LABEL_LINES_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX,
};
use crate::{Edge, EdgeKind, Graph, Vertex};

/// The text on one line: white space becomes one space; forbidden and invisible characters become U+FFFD.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split_whitespace();
    if let Some(first) = words.next() {
        out.push_str(first);
    }
    for word in words {
        out.push(' ');
        out.push_str(word);
    }
    out.chars().map(|c| if hides(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns true for characters that XML forbids, that are invisible, or that change the text direction.
fn hides(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
        || u32::from(c) & 0xfffe == 0xfffe
}

/// The line, cut with an ellipsis if it is longer than `chars_max`.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    let line = line(text);
    let mut chars = line.chars();
    let mut shown: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// The name that a vertex shows.
pub(crate) fn name(vertex: &Vertex) -> String {
    cut(&vertex.name, NAME_CHARS_MAX)
}

/// The text below a vertex's name.
pub(crate) fn marks(vertex: &Vertex) -> String {
    let mut words = Vec::new();
    if vertex.start {
        words.push("start".to_owned());
    }
    words.extend(vertex.acts.iter().map(|act| cut(act, NAME_CHARS_MAX)));
    if vertex.last {
        words.push("final".to_owned());
    }
    words.join(" · ")
}

/// The title of a vertex: its whole name and the text that the agent is shown.
pub(crate) fn vertex_title(vertex: &Vertex) -> String {
    let marks = marks(vertex);
    let marks = if marks.is_empty() { String::new() } else { format!(" ({marks})") };
    let unreached = if vertex.reached { "" } else { " cannot be reached" };
    let shown = vertex.text.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    cut(&format!("{}{marks}{unreached}{shown}", vertex.name), TITLE_CHARS_MAX)
}

/// The lines that an edge shows.
pub(crate) fn labels(edge: &Edge) -> Vec<String> {
    let shown = |text: &str| cut(&label_of(edge.kind, text), LABEL_CHARS_MAX);
    let mut lines: Vec<String> =
        edge.labels.iter().take(LABEL_LINES_MAX).map(|label| shown(&label.text)).collect();
    match (edge.labels.len().saturating_sub(LABEL_LINES_MAX), lines.last_mut()) {
        (more @ 1.., Some(last)) => *last = format!("and {} more", more + 1),
        _ if edge.labels.is_empty() => {
            lines.extend((edge.kind != EdgeKind::Free).then(|| edge.kind.word().to_owned()))
        }
        _ => {}
    }
    lines
}

fn label_of(kind: EdgeKind, label: &str) -> String {
    match kind {
        EdgeKind::Free => label.to_owned(),
        EdgeKind::Held | EdgeKind::Refused => format!("{label} ({})", kind.word()),
    }
}

/// The title of an edge: its ends, and all conditions that take it.
pub(crate) fn edge_title(graph: &Graph, edge: &Edge) -> String {
    let named = |at: usize| graph.vertices.get(at).map_or("", |vertex| vertex.name.as_str());
    let mut title = format!("{} → {}", named(edge.from), named(edge.to));
    let whole: Vec<String> = edge.labels.iter().map(|label| label_of(edge.kind, &label.whole)).collect();
    if !whole.is_empty() {
        title.push_str(": ");
        title.push_str(&whole.join("; "));
    }
    cut(&title, TITLE_CHARS_MAX)
}

/// The whole picture in sentences, for people who cannot see it.
pub(crate) fn description(graph: &Graph) -> String {
    let mut out = String::new();
    for vertex in graph.vertices.iter().filter(|vertex| vertex.start) {
        out.push_str(&format!("Starts at {}.", vertex.name));
    }
    for edge in &graph.edges {
        if out.len() > DESCRIPTION_CHARS_MAX * 4 {
            break;
        }
        out.push_str(&format!(" {}.", edge_title(graph, edge)));
    }
    cut(&out, DESCRIPTION_CHARS_MAX)
}

/// The approximate width of a text at a font size, in pixels; rather too wide than too narrow.
pub(crate) fn width(text: &str, font_px: i32) -> i32 {
    text.chars().map(|c| char_permille(c) * font_px).sum::<i32>() / 1000
}

/// The width of a character in thousandths of its font size.
fn char_permille(c: char) -> i32 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'I' => 330,
        ' ' | 'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '/' => 420,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 960,
        'A'..='Z' => 740,
        '\u{1100}'.. => 1050,
        _ => 620,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_is_seen() {
        for c in ['\u{ad}', '\u{61c}', '\u{180e}', '\u{202e}', '\u{fff9}', '\u{e0061}', '\u{1b}', '\u{fffe}']
        {
            assert_eq!(line(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        assert_eq!(line("a\n\tb é"), "a b é");
    }
}
