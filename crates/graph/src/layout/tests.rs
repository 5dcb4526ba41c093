use super::order::crossings;
use super::*;
use proptest::prelude::*;

const BOX: Size = Size { width: 90, height: 46 };

fn arc(from: usize, to: usize) -> Arc {
    Arc { from, to, label: Size { width: 40, height: 16 } }
}

/// A rectangle: left, top, right, bottom.
type Rectangle = (i32, i32, i32, i32);

fn rectangle(corner: Point, size: Size) -> Rectangle {
    (corner.x, corner.y, corner.x + size.width, corner.y + size.height)
}

fn overlap(a: Rectangle, b: Rectangle) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// Points along a line, close enough together that no box fits between them.
fn along(points: &[Point]) -> Vec<Point> {
    const PARTS: i32 = 24;
    let mut out = Vec::new();
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        for part in 1..PARTS {
            let (t, u) = (i64::from(part), i64::from(PARTS - part));
            let whole = i64::from(PARTS).pow(3);
            // A curve that begins and ends upright; it is a straight line if both are in one column.
            let middle = i64::from((from.y + to.y) / 2);
            let mix = |a: i64, b: i64, c: i64, d: i64| {
                (u.pow(3) * a + 3 * u * u * t * b + 3 * u * t * t * c + t.pow(3) * d) / whole
            };
            let (x1, x2) = (i64::from(from.x), i64::from(to.x));
            let (y1, y2) = (i64::from(from.y), i64::from(to.y));
            let small = |it: i64| i32::try_from(it).unwrap();
            out.push(Point { x: small(mix(x1, x1, x2, x2)), y: small(mix(y1, middle, middle, y2)) });
        }
    }
    out
}

fn is_clear(sizes: &[Size], arcs: &[Arc], layout: &Layout) -> Result<(), TestCaseError> {
    let boxes: Vec<Rectangle> =
        layout.corners.iter().zip(sizes).map(|(at, size)| rectangle(*at, *size)).collect();
    let labelled = arcs.iter().zip(&layout.routes).filter(|(arc, _)| arc.label.width > 0);
    let labels: Vec<Rectangle> = labelled.map(|(arc, route)| rectangle(route.label, arc.label)).collect();
    let all: Vec<Rectangle> = boxes.iter().chain(&labels).copied().collect();
    for (at, one) in all.iter().enumerate() {
        let inside = one.0 >= 0 && one.1 >= 0 && one.2 <= layout.size.width && one.3 <= layout.size.height;
        prop_assert!(inside, "{one:?} leaves {:?}", layout.size);
        for other in &all[at + 1..] {
            prop_assert!(!overlap(*one, *other), "{one:?} overlaps {other:?}");
        }
    }
    for (arc, route) in arcs.iter().zip(&layout.routes).filter(|(arc, _)| arc.from != arc.to) {
        for point in along(&route.points) {
            let here = (point.x, point.y, point.x, point.y);
            let hit = boxes.iter().find(|it| overlap(**it, here));
            prop_assert!(hit.is_none(), "{arc:?} crosses {hit:?} at {point:?}");
        }
        let touches = |point: Option<&Point>, vertex: usize| {
            let it = boxes[vertex];
            point.is_some_and(|at| at.x >= it.0 && at.x <= it.2 && (at.y == it.1 || at.y == it.3))
        };
        prop_assert!(touches(route.points.first(), arc.from), "{route:?} does not leave {arc:?}");
        prop_assert!(touches(route.points.last(), arc.to), "{route:?} does not reach {arc:?}");
    }
    Ok(())
}

/// Up to 25 vertices of two heights, and up to 60 edges, some without a label, some loops.
fn any_graph() -> impl Strategy<Value = (Vec<Size>, Vec<Arc>)> {
    (1_usize..25).prop_flat_map(|count| {
        let size = (72_i32..260, any::<bool>())
            .prop_map(|(width, end)| Size { width, height: if end { 28 } else { 46 } });
        let label = prop_oneof![
            1 => Just(Size::default()),
            3 => (10_i32..240, 1_i32..5).prop_map(|(width, lines)| Size { width, height: lines * 16 }),
        ];
        let arc = (0..count, 0..count, label).prop_map(|(from, to, label)| Arc { from, to, label });
        // Two loops at a vertex at most: one that is held, and one that is not.
        let arcs = prop::collection::vec(arc, 0..60).prop_map(move |arcs| {
            let mut loops = vec![0; count];
            let mut accept = |at: usize| {
                loops[at] += 1;
                loops[at] <= 2
            };
            arcs.into_iter().filter(|arc| arc.from != arc.to || accept(arc.from)).collect()
        });
        (prop::collection::vec(size, count), arcs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn nothing_overlaps_and_no_line_crosses_a_box((sizes, arcs) in any_graph()) {
        let layout = lay_out(&sizes, 0, &arcs).unwrap();
        is_clear(&sizes, &arcs, &layout)?;
        prop_assert_eq!(lay_out(&sizes, 0, &arcs).unwrap(), layout);
    }
}

#[test]
fn a_chain_is_a_straight_line() {
    let layout = lay_out(&[BOX; 4], 0, &[arc(0, 1), arc(1, 2), arc(2, 3)]).unwrap();
    assert!(layout.corners.windows(2).all(|pair| pair[0].x == pair[1].x && pair[0].y < pair[1].y));
    assert!(layout.routes.iter().all(|route| route.points.len() == 2), "{layout:?}");
}

#[test]
fn an_edge_against_the_stream_ends_where_it_leads() {
    let layout = lay_out(&[BOX; 3], 0, &[arc(0, 1), arc(1, 2), arc(2, 0)]).unwrap();
    let points = &layout.routes[2].points;
    let (first, last) = (points.first().unwrap(), points.last().unwrap());
    assert_eq!((first.y, last.y), (layout.corners[2].y, layout.corners[0].y + BOX.height));
}

#[test]
fn the_start_is_on_top() {
    let layout = lay_out(&[BOX; 3], 2, &[arc(0, 1), arc(2, 0), arc(1, 2)]).unwrap();
    assert_eq!(layout.corners[2].y, 0);
    assert!(layout.corners[0].y < layout.corners[1].y);
}

#[test]
fn crossings_that_need_not_be_are_not() {
    // Written crosswise: 0 leads to 1, 2, 3, and those to 6, 5, 4.
    let arcs =
        [arc(0, 1), arc(0, 2), arc(0, 3), arc(1, 6), arc(2, 5), arc(3, 4), arc(4, 7), arc(5, 7), arc(6, 7)];
    let ranked = ranks::rank(8, 0, &arcs);
    let mut layers = layers::Layers::of(&[BOX; 8], &arcs, &ranked).unwrap();
    assert_eq!(crossings(&layers), 3, "before the order is improved");
    order::arrange(&mut layers, 0);
    assert_eq!(crossings(&layers), 0);
}

#[test]
fn two_loops_stand_on_two_sides() {
    let layout = lay_out(&[BOX], 0, &[arc(0, 0), arc(0, 0)]).unwrap();
    let left = layout.corners[0].x;
    assert!(
        layout.routes[0].label.x > left + BOX.width && layout.routes[1].label.x + 40 < left,
        "{layout:?}"
    );
}
