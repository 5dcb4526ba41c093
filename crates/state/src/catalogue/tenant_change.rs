//! What was changed about a tenant, when and by whom: what an auditor asks for.

use minicbor::{CborLen, Decode, Encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use switchward_machine::Time;

use crate::Actor;
use crate::approval::{Quorum, Reminders};
use crate::catalogue::{Directory, DirectoryEntry, Tenancy};
use crate::run::Json;

/// A change of what holds for a tenant. The catalogue has one row for each, numbered from 1. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct TenantChange {
    /// When.
    #[n(0)]
    pub at: Time,
    /// The caller that changed it, with its role then.
    #[n(1)]
    pub by: Actor,
    /// What, ordered by name; never empty.
    #[n(2)]
    pub parts: Vec<ChangedPart>,
}

/// One changed setting.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ChangedPart {
    /// Its name, such as `directory.entries.kim`, `policies.guard`, `retention.survey` or `any_approver_address`.
    #[n(0)]
    pub name: String,
    /// What it was; null if there was none.
    #[n(1)]
    pub before: Json,
    /// What it is; null if there is none any more.
    #[n(2)]
    pub after: Json,
}

/// Returns what differs between two states of a tenant: its directory, policies, switches and rules of retention. Endpoints
/// and keys are not listed.
pub fn changed(before: Option<&Tenancy>, after: &Tenancy) -> Vec<ChangedPart> {
    let before = before.map(parts).unwrap_or_default();
    between(&before, &parts(after))
}

/// What differs between two lists of named values.
pub fn between(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<ChangedPart> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let value =
        |list: &BTreeMap<String, Value>, name: &String| list.get(name).cloned().unwrap_or(Value::Null);
    let part = |name: &String| {
        let (before, after) = (value(before, name), value(after, name));
        (before != after).then(|| ChangedPart {
            name: name.clone(),
            before: Json(before),
            after: Json(after),
        })
    };
    let mut parts: Vec<ChangedPart> = names.filter_map(part).collect();
    parts.sort_by(|one, other| one.name.cmp(&other.name));
    parts
}

fn parts(tenancy: &Tenancy) -> BTreeMap<String, Value> {
    let mut parts = of_directory(&tenancy.directory);
    parts.extend(tenancy.policies.iter().map(|policy| {
        (format!("policies.{}", policy.name), json!({ "version": policy.version, "set_by": policy.by }))
    }));
    parts.extend(tenancy.retention.rules.iter().map(|rule| {
        let times = json!({ "ended_sessions_ms": rule.sessions_ms, "history_ms": rule.history_ms,
            "decisions_ms": rule.decisions_ms, "quarantine_ms": rule.quarantine_ms });
        (format!("retention.{}", rule.definition), times)
    }));
    if tenancy.any_approver_address {
        parts.insert("any_approver_address".into(), json!(true));
    }
    parts
}

fn of_directory(directory: &Directory) -> BTreeMap<String, Value> {
    let entries = directory.entries.iter();
    let mut parts: BTreeMap<String, Value> =
        entries.map(|one| (format!("directory.entries.{}", one.name), entry(one))).collect();
    if !directory.audience.is_empty() {
        parts.insert("directory.audience".into(), json!(directory.audience));
    }
    for binding in &directory.event_bindings {
        let name = format!("directory.event_bindings.{}.{}", binding.definition, binding.event_key);
        parts.insert(name, json!(binding.sources));
    }
    parts
}

fn entry(entry: &DirectoryEntry) -> Value {
    let mut value = json!({ "members": entry.members });
    let settings = &entry.settings;
    if !settings.audience.is_empty() {
        value["audience"] = json!(settings.audience);
    }
    if let Some(quorum) = settings.quorum {
        value["quorum"] = match quorum {
            Quorum::All => json!("all"),
            Quorum::AtLeast(least) => json!(least),
        };
    }
    if let Some(Reminders { every_ms, max }) = settings.reminders {
        value["reminders"] = json!({ "every_ms": every_ms, "max": max });
    }
    if !settings.escalation.is_empty() {
        value["escalation"] = json!(settings.escalation);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Tenancy {
        let entry = |(name, member): &(&str, &str)| DirectoryEntry {
            name: (*name).to_owned(),
            members: vec![(*member).to_owned()],
            ..DirectoryEntry::default()
        };
        let entries = entries.iter().map(entry).collect();
        let directory = Directory { entries, ..Directory::default() };
        Tenancy { directory, ..Tenancy::first(None) }
    }

    #[test]
    fn only_what_differs_is_listed() {
        let before = with(&[("dana", "dana@a.example"), ("kim", "kim@a.example")]);
        let mut after = with(&[("kim", "kim@b.example"), ("lee", "lee@a.example")]);
        after.any_approver_address = true;
        let members = |address: &str| json!({ "members": [address] });
        let listed: Vec<(String, Value, Value)> = changed(Some(&before), &after)
            .into_iter()
            .map(|part| (part.name, part.before.0, part.after.0))
            .collect();
        let expected = [
            ("any_approver_address", Value::Null, json!(true)),
            ("directory.entries.dana", members("dana@a.example"), Value::Null),
            ("directory.entries.kim", members("kim@a.example"), members("kim@b.example")),
            ("directory.entries.lee", Value::Null, members("lee@a.example")),
        ];
        assert_eq!(listed, expected.map(|(name, before, after)| (name.to_owned(), before, after)));
        assert_eq!(changed(Some(&after), &after), Vec::new());
        assert_eq!(changed(None, &before).len(), 2);
    }
}
