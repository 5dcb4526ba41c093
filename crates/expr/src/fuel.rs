//! What computing costs: a counter that only falls, and the work of reading a value.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::Value;

use crate::limits::{ALLOCATION_FUEL, VALUE_FUEL};

/// How much may still be computed. A unit is about a nanosecond, counted by what is done and never measured, so that the
/// same computation always takes the same. Clones share one counter.
#[derive(Debug, Clone)]
pub struct Fuel(Rc<Cell<u64>>);

impl Fuel {
    /// A counter with this many units left.
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self(Rc::new(Cell::new(units)))
    }

    /// For a single computation, which has limits of its own.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Takes units away, at most all of them. The caller looks at [`is_used_up`](Self::is_used_up) before it goes on.
    pub fn spend(&self, units: u64) {
        self.0.set(self.0.get().saturating_sub(units));
    }

    /// Takes away what it costs to read a value this many times. A copy counts as two.
    pub fn spend_reads(&self, value: &Value, times: u64) {
        self.spend(weight(value).saturating_mul(times));
    }

    /// Takes away this many units for each byte.
    pub fn spend_bytes(&self, bytes: usize, each: u64) {
        self.spend(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(each));
    }

    /// Makes sure that at least this many units are left.
    pub fn refill(&self, units: u64) {
        self.0.set(self.0.get().max(units));
    }

    /// Returns true if nothing more may be computed.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.0.get() == 0
    }

    /// Returns the units that may still be spent.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.0.get()
    }
}

/// What it costs to read a value once: each value and key counts, and each byte of a text.
#[must_use]
pub fn weight(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE_FUEL,
        Value::String(text) => text_weight(text),
        Value::Array(items) => VALUE_FUEL + ALLOCATION_FUEL + items.iter().map(weight).sum::<u64>(),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| text_weight(key) + weight(value));
            VALUE_FUEL + ALLOCATION_FUEL + fields.sum::<u64>()
        }
    }
}

fn text_weight(text: &str) -> u64 {
    VALUE_FUEL + ALLOCATION_FUEL + u64::try_from(text.len()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clones_share_what_is_left() {
        let fuel = Fuel::new(100);
        let other = fuel.clone();
        other.spend(60);
        assert_eq!((fuel.left(), fuel.is_used_up()), (40, false));
        fuel.spend(u64::MAX);
        assert_eq!((other.left(), other.is_used_up()), (0, true));
        other.refill(5);
        fuel.refill(3);
        assert_eq!(fuel.left(), 5);
    }

    #[test]
    fn each_value_and_each_byte_of_a_text_counts() {
        let (value, boxed) = (VALUE_FUEL, VALUE_FUEL + ALLOCATION_FUEL);
        assert_eq!(weight(&json!(1)), value);
        assert_eq!(weight(&json!("abc")), boxed + 3);
        assert_eq!(weight(&json!([1, true, null])), boxed + 3 * value);
        assert_eq!(weight(&json!({"ab": [1]})), boxed + boxed + 2 + boxed + value);
    }
}
