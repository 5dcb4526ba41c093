//! The lines, once every slot has its column.

use super::layers::{BESIDE, LOOP, Layers};
use super::ranks::Ranked;
use super::{Arc, Layout, Point, Route, Size};

/// The least and the most pixels between two layers.
const GAP: (i32, i32) = (16, 84);
/// Pixels sideways for one pixel between the layers.
const SLOPE: i32 = 9;
/// Pixels between two edges at a vertex, if it is wide enough.
const APART: i32 = 20;
/// Pixels at the sides of a vertex where no edge begins.
const CORNER: i32 = 12;

/// The upper and the lower end of each layer.
type Bands = Vec<(i32, i32)>;

/// Draws everything.
pub(super) fn draw(
    sizes: &[Size],
    arcs: &[Arc],
    ranked: &Ranked,
    layers: &Layers,
    columns: &[i32],
) -> Layout {
    let ends = attach(sizes, layers, columns);
    let bands = bands(layers, columns, &ends);
    let corner = |at: usize| Point {
        x: columns[at] - sizes[at].width / 2,
        y: bands.get(layers.slots[at].layer).map_or(0, |band| band.0),
    };
    let corners: Vec<Point> = (0..sizes.len()).map(corner).collect();
    let mut routes = Vec::new();
    for (at, arc) in arcs.iter().enumerate() {
        if arc.from == arc.to {
            let left = layers.left_loops.contains(&at);
            routes.push(around(sizes[arc.from], corners[arc.from], arc.label, left));
            continue;
        }
        let mut route = along(at, sizes, layers, columns, &bands, ends[at].0, ends[at].1);
        if ranked.turned[at] {
            route.points.reverse();
        }
        routes.push(route);
    }
    let right = columns.iter().zip(&layers.slots).map(|(x, slot)| x + slot.right).max();
    let size = Size { width: right.unwrap_or(0), height: bands.last().map_or(0, |band| band.1) };
    Layout { size, corners, routes }
}

/// The columns in which each edge leaves its upper vertex and arrives at its lower one.
fn attach(sizes: &[Size], layers: &Layers, columns: &[i32]) -> Vec<(i32, i32)> {
    let mut ends = vec![(0, 0); layers.chains.len()];
    let mut lower: Vec<Vec<(i32, usize)>> = vec![Vec::new(); sizes.len()];
    let mut upper = lower.clone();
    for (edge, chain) in layers.chains.iter().enumerate() {
        if let ([first, second, ..], [.., before, last]) = (chain.as_slice(), chain.as_slice()) {
            lower[*first].push((columns[*second], edge));
            upper[*last].push((columns[*before], edge));
        }
    }
    for (at, size) in sizes.iter().enumerate() {
        for (edge, x) in spread(columns[at], size.width, &mut lower[at]) {
            ends[edge].0 = x;
        }
        for (edge, x) in spread(columns[at], size.width, &mut upper[at]) {
            ends[edge].1 = x;
        }
    }
    ends
}

/// Spreads edges along one side of a vertex, ordered by their targets. An edge that leads straight down stays straight.
fn spread(column: i32, width: i32, edges: &mut [(i32, usize)]) -> Vec<(usize, i32)> {
    edges.sort_unstable();
    let count = i32::try_from(edges.len()).unwrap_or(i32::MAX).max(1);
    let space = (width - 2 * CORNER).max(0);
    let apart = if count > 1 { (space / (count - 1)).min(APART) } else { 0 };
    let first = column - apart * (count - 1) / 2;
    let mut xs: Vec<i32> = (0..count).map(|at| first + apart * at).collect();
    // Shift all edges so that the one that leads straight down is in the vertex's column.
    if let Some(straight) = edges.iter().position(|(x, _)| *x == column) {
        let shift = column - xs[straight];
        let (low, high) = (xs[0] + shift, xs[xs.len() - 1] + shift);
        if low >= column - space / 2 && high <= column + space / 2 {
            xs.iter_mut().for_each(|x| *x += shift);
        }
    }
    edges.iter().map(|(_, edge)| *edge).zip(xs).collect()
}

/// The layers from top to bottom; the further an edge runs sideways, the more space it has between two of them.
fn bands(layers: &Layers, columns: &[i32], ends: &[(i32, i32)]) -> Bands {
    let mut sideways = vec![0; layers.rows.len()];
    for (chain, ends) in layers.chains.iter().zip(ends) {
        for (step, pair) in chain.windows(2).enumerate() {
            let from = if step == 0 { ends.0 } else { columns[pair[0]] };
            let to = if step + 2 == chain.len() { ends.1 } else { columns[pair[1]] };
            let most = &mut sideways[layers.slots[pair[0]].layer];
            *most = (from - to).abs().max(*most);
        }
    }
    let mut y = 0;
    let mut bands = Vec::new();
    for (row, sideways) in layers.rows.iter().zip(sideways) {
        let height = row.iter().map(|at| layers.slots[*at].height).max().unwrap_or(0);
        bands.push((y, y + height));
        y += height + (GAP.0 + sideways / SLOPE).min(GAP.1);
    }
    bands
}

/// An edge from layer to layer.
fn along(
    at: usize,
    sizes: &[Size],
    layers: &Layers,
    columns: &[i32],
    bands: &Bands,
    from: i32,
    to: i32,
) -> Route {
    let chain = &layers.chains[at];
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return Route::default() };
    let band = |slot: usize| bands[layers.slots[slot].layer];
    let mut points = vec![
        Point { x: from, y: band(*first).0 + sizes[*first].height },
        Point { x: from, y: band(*first).1 },
    ];
    for slot in chain.iter().skip(1).take(chain.len() - 2) {
        let (top, bottom) = band(*slot);
        points.extend([Point { x: columns[*slot], y: top }, Point { x: columns[*slot], y: bottom }]);
    }
    points.push(Point { x: to, y: band(*last).0 });
    points.dedup();
    let label = layers.labels[at].map(|slot| {
        let (top, bottom) = band(slot);
        Point { x: columns[slot] + BESIDE, y: (top + bottom - layers.slots[slot].height) / 2 }
    });
    Route { points: straight(points), label: label.unwrap_or_default() }
}

/// The same line without the points inside straight parts.
fn straight(points: Vec<Point>) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::new();
    for point in points {
        if let [.., before, last] = out.as_slice()
            && before.x == last.x
            && last.x == point.x
        {
            out.pop();
        }
        out.push(point);
    }
    out
}

/// A loop at a side of its vertex.
fn around(size: Size, corner: Point, label: Size, left: bool) -> Route {
    let x = if left { corner.x } else { corner.x + size.width };
    let at = |part: i32| Point { x, y: corner.y + size.height * part / 4 };
    let beside = if left { -(LOOP + BESIDE + label.width) } else { LOOP + BESIDE };
    let y = corner.y + ((size.height - label.height) / 2).max(0);
    Route { points: vec![at(3), at(1)], label: Point { x: x + beside, y } }
}
