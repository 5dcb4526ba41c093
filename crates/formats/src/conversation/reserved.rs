//! The keys of the data that only the engine writes. See
//! `tests/corpus/conversation/sentences.tsv#7c-11d`.

use switchward_machine::reserved_keys::{APPROVAL, EVENT_KEY, REPLY_TOKEN, TASKS, WAIT};

/// All of them, sorted.
pub(super) const KEYS: [&str; 5] = [APPROVAL, EVENT_KEY, REPLY_TOKEN, TASKS, WAIT];

/// Returns true if a top-level key of the data is one of them.
pub(super) fn holds(key: &str) -> bool {
    KEYS.contains(&key)
}
