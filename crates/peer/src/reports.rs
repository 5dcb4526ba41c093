//! Which failures were logged already.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::{REPORT_INTERVAL, REPORTS_MAX};

/// Remembers failures, so that one that lasts is logged once in [`REPORT_INTERVAL`].
#[derive(Debug, Default)]
pub(crate) struct Reports(Mutex<HashMap<Report, Instant>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Report {
    about: String,
    reason: String,
}

impl Reports {
    /// Returns true if this failure must be logged now.
    pub(crate) fn is_new(&self, about: &str, reason: &str) -> bool {
        let now = Instant::now();
        let mut reports = self.0.lock();
        if reports.len() >= REPORTS_MAX {
            reports.retain(|_, at| now - *at < REPORT_INTERVAL);
        }
        if reports.len() >= REPORTS_MAX {
            reports.clear();
        }
        let report = Report { about: about.to_owned(), reason: reason.to_owned() };
        let at = reports.get(&report).copied();
        let new = at.is_none_or(|at| now - at >= REPORT_INTERVAL);
        if new {
            reports.insert(report, now);
        }
        new
    }

    /// The failures are over: the next one is logged.
    pub(crate) fn over(&self, about: &str) {
        self.0.lock().retain(|report, _| report.about != about);
    }
}
