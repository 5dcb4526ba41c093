//! What a batch reads from the rows below.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{RunId, SessionId, TenantId, Time};
use switchward_state::seal::KeyRing;
use switchward_state::{Key, ReadRows as _, Row, View, ViewError};
use switchward_testkit::Rows;

use super::Working;

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
    let batch = Working::of_batch(&below);
    assert_eq!(reads(&batch), (1, 3));
    assert!(batch.into_changes().is_empty(), "what was only read has not changed");
    assert_eq!(reads(&Working::new(&below)), (3, 3));
}
