//! What a batch reads from the rows below.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{RunId, SessionId, TenantId, Time};
use switchward_state::seal::KeyRing;
use switchward_state::{Key, ReadRows as _, Row, View, ViewError, WriteRows as _};
use switchward_testkit::Rows;

use super::{RowBefore, Working};

/// Rows that count how often one of them is read.
struct Counted {
    rows: Rows,
    reads: Cell<usize>,
}

impl View for Counted {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        self.reads.set(self.reads.get() + 1);
        self.rows.row(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        self.rows.scan(prefix, after, visit)
    }

    fn ring(&self) -> &KeyRing {
        self.rows.ring()
    }
}

#[test]
fn a_batch_reads_once_what_all_commands_read_and_keeps_no_data() {
    let clock = (Key::clock(), Arc::new(Row::Clock(Time(7))));
    let below = Counted { rows: [clock].into_iter().collect(), reads: Cell::new(0) };
    let data = Key::data(TenantId(1), SessionId([2; 16]), RunId(3));
    let reads = |rows: &Working<'_>| {
        below.reads.set(0);
        for _ in 0..3 {
            assert_eq!(rows.clock_at(&Key::clock()).unwrap().as_deref(), Some(&Time(7)));
        }
        let of_clock = below.reads.replace(0);
        for _ in 0..3 {
            assert!(rows.data_at(&data).unwrap().is_none());
        }
        (of_clock, below.reads.get())
    };
    let batch = Working::of_batch(&below, 1);
    assert_eq!(reads(&batch), (1, 3));
    assert!(batch.into_changes().0.is_empty(), "what was only read has not changed");
    assert_eq!(reads(&Working::new(&below)), (3, 3));
}

#[test]
fn what_was_read_of_a_row_that_may_be_indexed_is_known_as_it_was_before() {
    let (session, id) = (SessionId([2; 16]), TenantId(1));
    let recorded = |number: u8| Key::recorded(id, session, [number; 16]);
    let row = |at: u64| Row::Recorded(Time(at));
    let [read, unread, absent] = [1, 2, 3].map(recorded);
    let stored = [&read, &unread].map(|key| (key.clone(), Arc::new(row(7))));
    let below: Rows = stored.into_iter().chain([(Key::clock(), Arc::new(Row::Clock(Time(7))))]).collect();
    let mut batch = Working::of_batch(&below, 1);
    for at in [8, 9] {
        *batch.get_mut(&read).unwrap() = row(at);
        batch.put(unread.clone(), row(at));
        batch.put(absent.clone(), row(at));
        *batch.get_mut(&Key::clock()).unwrap() = Row::Clock(Time(at));
    }
    batch.delete(read.clone());
    let (changes, before) = batch.into_changes();
    let found = |key: &Key| changes.iter().position(|(changed, _)| changed == key).expect("it has changed");
    let of = |key: &Key| (changes[found(key)].1.as_deref(), before[found(key)].clone());
    assert_eq!(of(&read), (None, RowBefore::Read(Some(Arc::new(row(7))))));
    for key in [&unread, &absent] {
        assert_eq!(of(key), (Some(&row(9)), RowBefore::NotRead));
    }
    assert_eq!(of(&Key::clock()), (Some(&Row::Clock(Time(9))), RowBefore::NotRead), "it is in no index");
    assert_eq!((changes.len(), before.len()), (4, 4));
}
