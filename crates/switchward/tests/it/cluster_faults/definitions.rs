//! The definitions that callers use.

use serde_json::{Map, Value, json};

/// What a register may hold: one of this number of values.
pub(crate) const VALUES: u8 = 6;
/// How many calls a counter allows.
pub(crate) const CALLS_MAX: usize = 20;
/// How long sessions wait, milliseconds.
pub(crate) const NAPS_MS: [u64; 3] = [1_800, 3_600, 7_200];
/// Messages of one session that sends some, by the ends of their paths.
pub(crate) const MESSAGES: [&str; 2] = ["a", "b"];

/// A session that is at a state for each value, and goes from each to each.
pub(crate) fn register() -> Value {
    let answers: Map<String, Value> =
        (0..VALUES).map(|to| (format!("to{to}"), json!({ "next": format!("s{to}") }))).collect();
    let state = json!({ "question": "What next?", "answers": answers });
    let states: Map<String, Value> = (0..VALUES).map(|value| (format!("s{value}"), state.clone())).collect();
    json!({ "name": "register", "initial": "s0", "states": states, "policy": { "role": "agent" } })
}

/// The name of the counter of a seed.
pub(crate) fn counter_name(seed: u64) -> String {
    format!("counter-{seed}")
}

/// A definition whose sessions share a limit of calls.
pub(crate) fn counter(seed: u64) -> Value {
    let limit = json!({ "max_calls": CALLS_MAX, "window_seconds": 3_600 });
    json!({
        "name": counter_name(seed),
        "initial": "open",
        "states": { "open": { "question": "Done?", "answers": { "yes": { "next": null, "action": "complete" } } } },
        "policy": { "role": "agent", "allow": [{ "capability": "bash", "rate_limit": limit }] },
    })
}

/// The name of a definition that waits.
pub(crate) fn nap_name(ms: u64) -> String {
    format!("nap-{ms}")
}

/// A conversation that waits this long, milliseconds, and ends.
pub(crate) fn nap(ms: u64) -> Value {
    let hours = ms as f64 / 3_600_000.0;
    json!({
        "name": nap_name(ms),
        "states": [
            { "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": hours },
            { "name": "up", "type": "output", "template": "Good morning.", "target": "conversation" },
        ],
        "transitions": [{ "from": "rest", "port": "received", "to": "up" }],
    })
}

/// The paths that the session of this key sends messages to.
pub(crate) fn paths(key: &str) -> impl Iterator<Item = String> {
    MESSAGES.into_iter().map(move |message| format!("/{key}/{message}"))
}

/// A conversation that sends messages to the receiver at this address.
pub(crate) fn notify(url: &str) -> Value {
    let to = MESSAGES.map(|message| format!("{url}/{{gathered_data.n}}/{message}"));
    let notification = json!({ "type": "send_notification", "config": {
        "channel": "webhook", "recipients": to, "body": "{gathered_data.n}" } });
    json!({
        "name": "notify",
        "states": [
            { "name": "send", "type": "logic", "operations": [notification] },
            { "name": "fine", "type": "conversation" },
        ],
        "transitions": [{ "from": "send", "to": "fine", "guards": [{ "type": "always" }] }],
    })
}
