//! The work left to one rendering, beside its fuel.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, Output};

use super::JinjaLimits;
use crate::limits::{DATA_DEPTH_MAX, JINJA_CAPTURE_FACTOR, JINJA_WORK_PER_FUEL};

/// Why a rendering was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Too many values were made or compared.
    Work,
    /// Values are nested too deep.
    Depth,
    /// Too much was written.
    Written,
}

/// Counts down; shared by the guards, the filters and the output of one rendering.
pub(super) struct Meter {
    work_left: AtomicU64,
    bytes_left: AtomicU64,
    over: AtomicU8,
}

/// One unit of work for this many bytes of text.
const BYTES_PER_WORK: u64 = 4;

impl Meter {
    pub(super) fn new(limits: &JinjaLimits) -> Self {
        let bytes = u64::try_from(limits.bytes).unwrap_or(u64::MAX);
        Self {
            work_left: AtomicU64::new(limits.fuel.saturating_mul(JINJA_WORK_PER_FUEL)),
            bytes_left: AtomicU64::new(bytes.saturating_mul(JINJA_CAPTURE_FACTOR)),
            over: AtomicU8::new(0),
        }
    }

    /// The work that was charged since the meter was made with these limits.
    pub(super) fn used(&self, limits: &JinjaLimits) -> u64 {
        let all = limits.fuel.saturating_mul(JINJA_WORK_PER_FUEL);
        all.saturating_sub(self.work_left.load(Ordering::Relaxed))
    }

    /// Why this meter stopped the rendering, if it did.
    pub(super) fn over(&self) -> Option<Over> {
        match self.over.load(Ordering::Relaxed) {
            1 => Some(Over::Work),
            2 => Some(Over::Depth),
            3 => Some(Over::Written),
            _ => None,
        }
    }

    /// Records the reason, and returns the error that ends the rendering.
    pub(super) fn stop(&self, over: Over) -> Error {
        let code = match over {
            Over::Work => 1,
            Over::Depth => 2,
            Over::Written => 3,
        };
        self.over.store(code, Ordering::Relaxed);
        Error::new(ErrorKind::InvalidOperation, "a limit was reached")
    }

    /// Charges this much work.
    pub(super) fn charge(&self, work: u64) -> Result<(), Error> {
        let left = self.work_left.load(Ordering::Relaxed);
        let Some(rest) = left.checked_sub(work) else { return Err(self.stop(Over::Work)) };
        self.work_left.store(rest, Ordering::Relaxed);
        Ok(())
    }

    /// Charges the work of a text of this length.
    pub(super) fn charge_bytes(&self, bytes: usize) -> Result<(), Error> {
        self.charge(1 + u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_WORK)
    }

    /// Charges a text's length, or 1 for any other value.
    pub(super) fn touch(&self, value: &Value) -> Result<(), Error> {
        self.charge_bytes(value.as_str().map_or(0, str::len))
    }

    /// Charges the whole size of a value, and checks its depth.
    pub(super) fn weigh(&self, value: &Value) -> Result<(), Error> {
        self.weigh_at(value, 0)
    }

    fn weigh_at(&self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DATA_DEPTH_MAX {
            return Err(self.stop(Over::Depth));
        }
        self.touch(value)?;
        let kind = value.kind();
        if kind == ValueKind::Map {
            for key in value.try_iter()? {
                self.weigh_at(&key, depth + 1)?;
                self.weigh_at(&value.get_item(&key)?, depth + 1)?;
            }
        } else if matches!(kind, ValueKind::Seq | ValueKind::Iterable) {
            for item in value.try_iter()? {
                self.weigh_at(&item, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Charges a value and returns it, a lazy sequence as a list.
    pub(super) fn plain(&self, value: Value) -> Result<Value, Error> {
        self.weigh(&value)?;
        if value.kind() == ValueKind::Iterable {
            return Ok(Value::from(value.try_iter()?.collect::<Vec<Value>>()));
        }
        Ok(value)
    }

    /// Writes text to the output, or records that there is too much of it.
    fn write(&self, out: &mut Output<'_>, text: &str) -> fmt::Result {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let left = self.bytes_left.load(Ordering::Relaxed);
        let Some(rest) = left.checked_sub(bytes) else {
            let _ = self.stop(Over::Written);
            return Err(fmt::Error);
        };
        self.bytes_left.store(rest, Ordering::Relaxed);
        out.write_str(text)
    }
}

/// The output of a rendering, counted.
pub(super) struct Counted<'a, 'o> {
    pub(super) meter: &'a Meter,
    pub(super) out: &'a mut Output<'o>,
}

impl fmt::Write for Counted<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.meter.write(self.out, text)
    }
}
