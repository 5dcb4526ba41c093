//! For any machine, a picture can be parsed, and has the vertices, the edges and the words of the machine.

mod machines;
mod readers;
mod shapes;
mod thirty;

use proptest::prelude::*;
use std::collections::BTreeSet;
use switchward_graph::{Graph, dot, mermaid, svg};
use switchward_machine::{Machine, Target};

use machines::{any_machine, nasty};

/// The edges that the machine must have: those between nodes, and one for each outcome of a node.
fn edges_of(machine: &Machine) -> usize {
    let mut found = BTreeSet::new();
    for (from, node) in machine.nodes.iter().enumerate() {
        for exit in &node.exits {
            let to = match &exit.to {
                Target::Node(ix) => (Some(ix.0), None),
                Target::End(ending) => (None, Some(ending.outcome)),
            };
            found.insert((from, to, exit.hold.is_some()));
        }
    }
    found.len()
}

/// The visible text, on one line.
fn seen(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn draws(machine: &Machine) -> Result<(), TestCaseError> {
    let graph = Graph::of(machine);
    prop_assert_eq!(graph.edges.len(), edges_of(machine));
    let nodes = machine.nodes.len();
    let drawn = svg(&graph).expect("the graph is small enough");
    let pictures = [readers::dot(&dot(&graph)), readers::mermaid(&mermaid(&graph)), readers::svg(&drawn)];
    for picture in pictures {
        let picture = picture.map_err(TestCaseError::fail)?;
        prop_assert_eq!(picture.vertices.len(), graph.vertices.len());
        prop_assert_eq!(picture.edges, graph.edges.len());
        for (label, node) in picture.vertices.iter().take(nodes).zip(&machine.nodes) {
            let name = seen(&node.name);
            let short = name.chars().count() <= 32 && !name.chars().any(char::is_control);
            if short && name.is_ascii() && !name.is_empty() {
                prop_assert_eq!(label, &name);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_machine_can_be_read_again(machine in any_machine()) {
        draws(&machine)?;
    }
}

#[test]
fn names_that_mean_something_elsewhere_are_names() {
    for machine in nasty() {
        draws(&machine).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_readers_are_strict() {
    assert!(readers::dot("digraph \"a\" {\n  n0 [label=\"a\"b\"];\n}\n").is_err());
    assert!(readers::dot("digraph \"a\" {\n  n0 -> n1 [label=\"a\"];\n}\n").is_err(), "n1 is not a vertex");
    assert!(readers::mermaid("flowchart TD\n  n0[\"a\"b\"]\n").is_err());
    assert!(readers::mermaid("flowchart TD\n  n0[\"a <b>\"]\n").is_err());
    assert!(readers::mermaid("flowchart TD\n  n0[\"a\"]\n  n0 --> n1\n").is_err(), "n1 is not a vertex");
    assert!(readers::svg("<svg><title>a</svg>").is_err());
    assert!(readers::svg("<svg><title>a & b</title></svg>").is_err());
}
