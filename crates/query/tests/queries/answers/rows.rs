//! Rows, as the crate `state` has them in its golden file.

use std::sync::Arc;
use switchward_machine::Machine;
use switchward_query::HistoryRow;
use switchward_state::approval::{Closed, OpenGate};
use switchward_state::catalogue::Tenancy;
use switchward_state::delivery::Effect;
use switchward_state::seal::Sealed;
use switchward_state::work::WorkItem;
use switchward_state::{Open, OpenItem, Row, RowKind, SharedRow};

/// All rows of this name.
fn named(name: &str) -> Vec<Row> {
    let path = format!("{}/../state/tests/golden/row.v1.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(' ')).filter(|(of, _)| *of == name);
    let byte = |hex: &str, at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let bytes = |hex: &str| (0..hex.len() / 2).map(|at| byte(hex, at)).collect::<Vec<u8>>();
    lines.map(|(_, hex)| Row::decode(&bytes(hex)).unwrap()).collect()
}

/// The first row of this name.
pub(crate) fn row<T: RowKind>(name: &str) -> SharedRow<T> {
    SharedRow::of(Arc::new(named(name).remove(0))).unwrap()
}

pub(crate) fn machine() -> Arc<Machine> {
    let Row::Machine(machine) = named("machine").remove(0) else { panic!("the row is no machine") };
    machine
}

/// All open items.
fn items() -> impl Iterator<Item = OpenItem> {
    let rows = named("open").into_iter().chain(named("item"));
    rows.filter_map(|row| if let Row::OpenItem(item) = row { Some(item) } else { None })
}

pub(crate) fn open() -> OpenGate {
    items().find_map(|item| if let OpenItem::Gate(open) = item { Some(*open) } else { None }).unwrap()
}

pub(crate) fn closed() -> Closed {
    let Row::Closed(closed) = named("closed").remove(0) else { panic!("the row is no closed gate") };
    closed
}

pub(crate) fn effect() -> Effect {
    let Row::Outbox(effect) = named("outbox-dead").remove(0) else { panic!("the row is no effect") };
    effect
}

/// Open work.
pub(crate) fn work() -> Open<WorkItem> {
    items().find_map(|item| if let OpenItem::Work(open) = item { Some(open) } else { None }).unwrap()
}

pub(crate) fn history() -> HistoryRow {
    HistoryRow { first: 4, history: row("history") }
}

/// A sealed key.
pub(crate) fn sealed() -> Sealed {
    row::<Tenancy>("tenancy").keys.first().cloned().unwrap()
}
