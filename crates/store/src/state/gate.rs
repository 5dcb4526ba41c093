use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Lets one flush or installation through at a time.
#[derive(Default)]
pub(super) struct Gate {
    busy: Mutex<bool>,
    idle: Condvar,
}

/// The right to be inside, until dropped.
pub(super) struct Pass(Arc<Gate>);

impl Gate {
    /// Enters unless a pass is out.
    pub(super) fn try_enter(gate: &Arc<Gate>) -> Option<Pass> {
        let mut busy = gate.busy.lock();
        (!std::mem::replace(&mut *busy, true)).then(|| Pass(gate.clone()))
    }

    /// Waits until no pass is out, and enters.
    pub(super) fn enter(gate: &Arc<Gate>) -> Pass {
        let mut busy = gate.busy.lock();
        while std::mem::replace(&mut *busy, true) {
            gate.idle.wait(&mut busy);
        }
        Pass(gate.clone())
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        *self.0.busy.lock() = false;
        self.0.idle.notify_one();
    }
}
