//! A JSON body as a message. Every field that is wrong is named, all of them at once.

use prost_reflect::{DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::json;
use crate::error::{Reason, Refusal};
use crate::limits::{DETAIL_TEXT_BYTES_MAX, JSON_NODES_MAX, VIOLATIONS_MAX};

/// Integers up to here are exact in a double, and so in a `google.protobuf.Value`.
const EXACT_INTEGER_MAX: u64 = 1 << 53;

/// Reads a body as proto-JSON.
///
/// # Errors
/// `FIELD_INVALID`, with a violation for each field that is unknown, given twice or of the wrong type.
pub(super) fn message(descriptor: MessageDescriptor, body: &[u8]) -> Result<DynamicMessage, Refusal> {
    check_nodes(body)?;
    let value =
        json::read(body).map_err(|error| Refusal::field("", format!("the body is not JSON: {error}")))?;
    let Value::Object(members) = &value else {
        return Err(Refusal::field("", "the body is not a JSON object"));
    };
    let mut problems = Problems::default();
    unknown_fields(&descriptor, members, "", &mut problems);
    problems.refuse()?;
    decode(&descriptor, &value).map_err(|error| {
        let mut problems = Problems::default();
        bad_fields(&descriptor, members, "", &mut problems);
        let blamed = problems.refuse().err();
        blamed.unwrap_or_else(|| Refusal::field("", error.to_string()))
    })
}

/// Refuses a JSON text of too many values before any is made.
pub(crate) fn check_nodes(body: &[u8]) -> Result<(), Refusal> {
    if nodes(body) <= JSON_NODES_MAX {
        return Ok(());
    }
    let message = format!("the body has more than {JSON_NODES_MAX} values");
    Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("values", message))
}

/// Returns an upper bound of the number of values in a JSON text, from its characters alone.
fn nodes(body: &[u8]) -> usize {
    let (mut count, mut quoted, mut escaped) = (1, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

fn decode(descriptor: &MessageDescriptor, value: &Value) -> Result<DynamicMessage, serde_json::Error> {
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    DynamicMessage::deserialize_with_options(descriptor.clone(), value, &options)
}

/// What is wrong, by field path.
#[derive(Default)]
struct Problems(Vec<(String, String)>);

impl Problems {
    fn add(&mut self, path: String, problem: impl Into<String>) {
        if self.0.len() <= VIOLATIONS_MAX {
            self.0.push((path, problem.into()));
        }
    }

    fn refuse(self) -> Result<(), Refusal> {
        let Some((path, problem)) = self.0.first() else { return Ok(()) };
        let refusal = Refusal::new(Reason::FieldInvalid, format!("{path}: {problem}"));
        Err(self.0.into_iter().fold(refusal, |refusal, (path, problem)| refusal.violation(path, problem)))
    }
}

fn field_named(descriptor: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    descriptor.get_field_by_json_name(name).or_else(|| descriptor.get_field_by_name(name))
}

/// The path of a member of the value at `path`.
fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{}.{name}", shown(path)) }
}

/// The path of an item of the list at `path`.
fn item_of(path: &str, at: usize) -> String {
    format!("{}[{at}]", shown(path))
}

/// As much of a path as an error shows. The paths of many values begin with the name of one member, which a caller can make
/// as long as the body: all of it must not be copied for each of them.
fn shown(path: &str) -> &str {
    &path[..path.floor_char_boundary(DETAIL_TEXT_BYTES_MAX)]
}

/// Looks for members that are no fields, and for fields that are given under both of their names.
fn unknown_fields(
    descriptor: &MessageDescriptor,
    members: &Map<String, Value>,
    path: &str,
    problems: &mut Problems,
) {
    let mut seen = Vec::new();
    for (name, value) in members {
        let path = joined(path, name);
        match field_named(descriptor, name) {
            None => problems.add(path, format!("is not a field of {}", descriptor.name())),
            Some(field) if seen.contains(&field.number()) => {
                problems.add(path, format!("is given twice, as {} and {}", field.json_name(), field.name()));
            }
            Some(field) => {
                seen.push(field.number());
                each_message(&field, value, &path, &mut |inner, value, path| {
                    unknown_in_message(inner, value, path, problems);
                });
            }
        }
    }
}

fn unknown_in_message(descriptor: &MessageDescriptor, value: &Value, path: &str, problems: &mut Problems) {
    match (descriptor.full_name(), value) {
        ("google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue", _) => {
            inexact_numbers(value, path, problems);
        }
        (name, Value::Object(members)) if !name.starts_with("google.protobuf.") => {
            unknown_fields(descriptor, members, path, problems);
        }
        // A well-known type in its own JSON form, or a wrong type, which decoding finds.
        _ => {}
    }
}

/// Numbers in free JSON are doubles: an integer that a double cannot hold would be changed silently.
fn inexact_numbers(value: &Value, path: &str, problems: &mut Problems) {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > EXACT_INTEGER_MAX) {
                problems.add(
                    path.to_owned(),
                    "the integer is beyond 2^53 and would lose precision: send it as text",
                );
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                inexact_numbers(item, &item_of(path, at), problems);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                inexact_numbers(value, &joined(path, name), problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Finds the fields that decoding refuses, each by decoding it alone.
fn bad_fields(
    descriptor: &MessageDescriptor,
    members: &Map<String, Value>,
    path: &str,
    problems: &mut Problems,
) {
    for (name, value) in members {
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        let Err(error) = decode(descriptor, &alone) else { continue };
        let path = joined(path, name);
        let before = problems.0.len();
        if let Some(field) = field_named(descriptor, name) {
            each_message(&field, value, &path, &mut |inner, value, path| {
                if let (Value::Object(members), false) =
                    (value, inner.full_name().starts_with("google.protobuf."))
                {
                    bad_fields(inner, members, path, problems);
                }
            });
        }
        if problems.0.len() == before {
            problems.add(path, error.to_string());
        }
    }
}

/// Calls `visit` with each message that a field holds: itself, an item of its list, a value of its map.
fn each_message(
    field: &FieldDescriptor,
    value: &Value,
    path: &str,
    visit: &mut dyn FnMut(&MessageDescriptor, &Value, &str),
) {
    let Kind::Message(inner) = field.kind() else { return };
    if field.is_map() {
        let (Value::Object(members), Kind::Message(inner)) = (value, inner.map_entry_value_field().kind())
        else {
            return;
        };
        members.iter().for_each(|(name, value)| visit(&inner, value, &joined(path, name)));
    } else if field.is_list() {
        let Value::Array(items) = value else { return };
        items.iter().enumerate().for_each(|(at, item)| visit(&inner, item, &item_of(path, at)));
    } else {
        visit(&inner, value, path);
    }
}

#[cfg(test)]
mod tests {
    use switchward_api::descriptor_pool;
    use tonic::Status;
    use tonic_types::StatusExt;

    use super::*;

    /// The fields that are named when this body is sent as this message.
    fn blamed(name: &str, body: &str) -> Vec<String> {
        let descriptor = descriptor_pool().get_message_by_name(name).unwrap();
        let Err(refusal) = message(descriptor, body.as_bytes()) else { return Vec::new() };
        let details = Status::from(refusal).get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "FIELD_INVALID");
        let violations = details.bad_request().unwrap().field_violations.clone();
        violations.into_iter().map(|violation| violation.field).collect()
    }

    const START: &str = "switchward.v1.StartSessionRequest";
    const DEPLOY: &str = "switchward.v1.DeployDefinitionRequest";

    #[test]
    fn both_spellings_of_a_field_are_read_but_not_together() {
        assert!(
            blamed(START, r#"{"requestId": "r", "session_id": "deploy-1", "input": {"a": [1, null]}}"#)
                .is_empty()
        );
        assert_eq!(blamed(START, r#"{"requestId": "r", "request_id": "r"}"#).len(), 1);
    }

    #[test]
    fn every_unknown_field_is_named() {
        let body = r#"{"files": [{"path": "a"}, {"pth": "b"}], "formt": 1, "activate": true}"#;
        assert_eq!(blamed(DEPLOY, body), ["files[1].pth", "formt"]);
    }

    #[test]
    fn every_field_of_the_wrong_type_is_named() {
        let body = r#"{"files": [{"path": "a"}, {"path": 7, "content": "%"}], "format": "FORMAT_NONE", "activate": 1}"#;
        assert_eq!(blamed(DEPLOY, body), ["activate", "files[1].content", "files[1].path", "format"]);
        assert_eq!(
            blamed(START, r#"{"version": -1, "labels": {"a": 1}, "input": []}"#),
            ["input", "labels", "version"]
        );
    }

    #[test]
    fn integers_that_a_double_cannot_say_are_refused() {
        assert!(blamed(START, r#"{"input": {"n": 9007199254740992}}"#).is_empty());
        assert_eq!(blamed(START, r#"{"input": {"n": [0, -9007199254740993]}}"#), ["input.n[1]"]);
        assert!(
            blamed("switchward.v1.AnswerCheckpointRequest", r#"{"expectedSequence": 9007199254740993}"#)
                .is_empty()
        );
    }

    #[test]
    fn the_path_of_a_value_is_no_longer_than_an_error_shows() {
        let value = serde_json::json!({ "ä".repeat(1_000_000): [[0, 9_007_199_254_740_993_u64]] });
        let mut problems = Problems::default();
        inexact_numbers(&value, "input", &mut problems);
        let [(path, _)] = &problems.0[..] else { panic!("{} problems", problems.0.len()) };
        assert!(path.len() <= DETAIL_TEXT_BYTES_MAX + 3, "{} bytes", path.len());
        assert!(path.starts_with("input.ää") && path.ends_with("[1]"));
    }

    #[test]
    fn two_of_a_oneof_are_refused() {
        assert_eq!(blamed("switchward.v1.RaiseCapRequest", r#"{"costUsd": "1", "tokens": "5"}"#).len(), 1);
    }
}
