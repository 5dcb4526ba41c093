//! A workflow of thirty states, drawn in all three forms, and checks that its picture is readable. The SVG is measured
//! from its own text.

use std::collections::BTreeMap;

use switchward_formats::compile_file;
use switchward_graph::{Graph, dot, mermaid, svg};

use super::readers;

const SOURCE: &str = include_str!("../definitions/thirty-states.yaml");
/// States of the workflow, and ends beside them.
const STATES: usize = 30;
/// The largest page that can be read, pixels: two screens wide and five high, or a sheet of A3.
const WIDTH_MAX: f64 = 2_400.0;
const HEIGHT_MAX: f64 = 5_000.0;
/// The least width of a label's character, and the height of its line, pixels.
const CHAR_PX: f64 = 5.5;
const LINE_PX: f64 = 12.0;

fn graph() -> Graph {
    let compiled = compile_file("thirty-states.yaml", SOURCE.as_bytes(), None);
    assert_eq!(compiled.findings, []);
    Graph::of(&compiled.definition.expect("it has no findings").machine)
}

/// A rectangle: left, top, right, bottom.
type Rectangle = (f64, f64, f64, f64);

fn overlap(a: Rectangle, b: Rectangle) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// An edge as it is drawn.
struct Line {
    from: String,
    to: String,
    /// Points along it, from the first to the last.
    points: Vec<(f64, f64)>,
    labels: Vec<Rectangle>,
}

/// The content of an SVG with its positions; the frame is that of the drawing itself.
struct Drawn {
    frame: Rectangle,
    boxes: Vec<(String, Rectangle)>,
    lines: Vec<Line>,
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

fn number(text: &str, name: &str) -> f64 {
    let value = between(text, &format!(" {name}=\""), "\"").expect("the attribute exists");
    value.parse().expect("it is a number")
}

/// The group of a vertex.
fn boxed(group: &str) -> (String, Rectangle) {
    let name = between(group, "<text class=\"n\"", "</text>").expect("a box has a name");
    let name = name.split_once('>').expect("a text begins").1.to_owned();
    let rect = between(group, "<rect", "/>").expect("a vertex is a box");
    let (x, y) = (number(rect, "x"), number(rect, "y"));
    (name, (x, y, x + number(rect, "width"), y + number(rect, "height")))
}

/// The group of an edge; `None` for a line of the key, which has no title.
fn line(group: &str) -> Option<Line> {
    let title = between(group, "<title>", "</title>")?;
    let (from, rest) = title.split_once(" → ").expect("an edge has a title");
    let to = rest.split(": ").next().unwrap_or_default();
    let points = along(between(group, "class=\"s\" d=\"", "\"").expect("an edge is a line"));
    let label = |text: &str| {
        let (head, shown) = text.split_once('>').expect("a text begins");
        let shown = shown.split_once("</text>").map_or("", |(shown, _)| shown).replace("&quot;", "\"");
        let (x, y) = (number(head, "x"), number(head, "y"));
        (x, y - LINE_PX, x + shown.chars().count() as f64 * CHAR_PX, y)
    };
    let labels = group.split("<text class=\"e\"").skip(1).map(label).collect();
    Some(Line { from: from.to_owned(), to: to.to_owned(), points, labels })
}

/// Points along a path of straight and curved parts.
fn along(path: &str) -> Vec<(f64, f64)> {
    const PARTS: u32 = 40;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let begins = path.match_indices(|c: char| c.is_ascii_alphabetic()).map(|(at, _)| at);
    let ends = begins.clone().skip(1).chain([path.len()]);
    for (begin, end) in begins.zip(ends) {
        let (command, rest) = path[begin..end].split_at(1);
        let numbers: Vec<f64> = rest.split([' ', ',']).filter_map(|it| it.parse().ok()).collect();
        let at = points.last().copied().unwrap_or_default();
        let to = match (command, numbers.as_slice()) {
            ("M", [x, y]) => {
                points.push((*x, *y));
                continue;
            }
            ("V", [y]) => [at, at, (at.0, *y), (at.0, *y)],
            ("H", [x]) => [at, at, (*x, at.1), (*x, at.1)],
            ("L", [x, y]) => [at, at, (*x, *y), (*x, *y)],
            ("C", [a, b, c, d, x, y]) => [at, (*a, *b), (*c, *d), (*x, *y)],
            other => panic!("{other:?} is not a part of a line: {path}"),
        };
        for step in 1..=PARTS {
            let t = f64::from(step) / f64::from(PARTS);
            let u = 1.0 - t;
            let mix = |p: [f64; 4]| {
                u * u * u * p[0] + 3.0 * u * u * t * p[1] + 3.0 * u * t * t * p[2] + t * t * t * p[3]
            };
            points.push((mix(to.map(|it| it.0)), mix(to.map(|it| it.1))));
        }
    }
    points
}

fn drawn(picture: &str) -> Drawn {
    let view = between(picture, "viewBox=\"", "\"").expect("a picture has a size");
    let view: Vec<f64> = view.split(' ').filter_map(|it| it.parse().ok()).collect();
    let moved = between(picture, "translate(", ")").expect("the drawing is below a title");
    let (left, top) = moved.split_once(' ').expect("the translation has two numbers");
    let (left, top): (f64, f64) = (left.parse().expect("a number"), top.parse().expect("a number"));
    let groups = || picture.split("<g class=\"").skip(1);
    let boxes = groups().filter(|it| it.starts_with("v ") || it.starts_with("v\"")).map(boxed).collect();
    let lines =
        groups().filter(|it| it.starts_with("l ") || it.starts_with("l\"")).filter_map(line).collect();
    Drawn { frame: (-left, -top, view[2] - left, view[3] - top), boxes, lines }
}

#[test]
fn no_boxes_overlap_and_everything_is_inside_of_the_page() {
    let drawn = drawn(&svg(&graph()).expect("the graph is small enough"));
    assert!(drawn.frame.2 - drawn.frame.0 <= WIDTH_MAX && drawn.frame.3 - drawn.frame.1 <= HEIGHT_MAX);
    let inside = |it: Rectangle| {
        it.0 >= drawn.frame.0 && it.1 >= drawn.frame.1 && it.2 <= drawn.frame.2 && it.3 <= drawn.frame.3
    };
    let labels: Vec<Rectangle> = drawn.lines.iter().flat_map(|line| line.labels.iter().copied()).collect();
    assert!(labels.len() >= 45, "the edges have labels: {}", labels.len());
    let all: Vec<Rectangle> = drawn.boxes.iter().map(|(_, it)| *it).chain(labels).collect();
    for (at, one) in all.iter().enumerate() {
        assert!(inside(*one), "{one:?} leaves {:?}", drawn.frame);
        let other = all[at + 1..].iter().find(|other| overlap(*one, **other));
        assert!(other.is_none(), "{one:?} overlaps {other:?}");
    }
}

#[test]
fn lines_begin_and_end_at_the_boxes_that_they_join_and_cross_no_other() {
    let drawn = drawn(&svg(&graph()).expect("the graph is small enough"));
    let boxes: BTreeMap<&str, Vec<Rectangle>> =
        drawn.boxes.iter().fold(BTreeMap::new(), |mut all, (name, it)| {
            all.entry(name.as_str()).or_insert_with(Vec::new).push(*it);
            all
        });
    for line in &drawn.lines {
        let label = format!("{} → {}", line.from, line.to);
        let touches = |name: &str, at: Option<&(f64, f64)>| {
            let (x, y) = *at.expect("a line has points");
            let on = |it: &Rectangle| x >= it.0 && x <= it.2 && (y == it.1 || y == it.3);
            boxes.get(name).is_some_and(|boxes| boxes.iter().any(on))
        };
        assert!(touches(&line.from, line.points.first()), "{label} does not begin at its vertex");
        assert!(touches(&line.to, line.points.last()), "{label} does not end at its vertex");
        for (x, y) in &line.points {
            let hit = drawn.boxes.iter().find(|(_, it)| overlap(*it, (*x, *y, *x, *y)));
            assert!(hit.is_none(), "{label} crosses {hit:?}");
        }
    }
}

#[test]
fn every_form_shows_every_state_by_its_name_and_every_way() {
    let graph = graph();
    let drawn = drawn(&svg(&graph).expect("the graph is small enough"));
    let states = || SOURCE.lines().filter_map(|line| between(line, "  - {name: ", ","));
    assert_eq!(states().count(), STATES);
    let pictures = [
        readers::dot(&dot(&graph)),
        readers::mermaid(&mermaid(&graph)),
        readers::svg(&svg(&graph).expect("the graph is small enough")),
    ];
    for picture in pictures {
        let picture = picture.expect("it can be read");
        for (state, shown) in states().zip(&picture.vertices) {
            assert_eq!(shown, state);
        }
        assert!(picture.vertices.len() > STATES, "the end is shown");
        assert_eq!((picture.vertices.len(), picture.edges), (drawn.boxes.len(), drawn.lines.len()));
    }
}
