//! Bodies of outgoing messages, and their schemas.

use serde_json::{Value, json};
use std::time::Duration;
use switchward_webhook::limits::{LINKS_MAX, OUT_BODY_BYTES_MAX};
use switchward_webhook::{Body, BodyError, Data, EventType, schema};

const AT: Duration = Duration::from_millis(1_700_000_000_250);

/// Data with every field that the schema of this type requires.
fn data(kind: EventType) -> Data {
    let schema = schema::of(kind);
    let required = schema["properties"]["data"]["required"].as_array().unwrap().clone();
    let has = |name: &str| required.iter().any(|field| field == name);
    let text = |name: &str| has(name).then(|| format!("tenants/acme/{name}"));
    Data {
        tenant: "acme".into(),
        session: text("session"),
        sequence: has("sequence").then_some(7),
        definition: text("definition"),
        version: has("version").then_some(2),
        state: text("state"),
        approval: text("approval"),
        task: text("task"),
        capability: text("capability"),
        budget: text("budget"),
        delivery: text("delivery"),
        endpoint: text("endpoint"),
        reason: text("reason"),
        links: [("self".to_owned(), "https://example.com/1".to_owned())].into(),
    }
}

/// The part of JSON Schema that the schemas here use.
fn holds(schema: &Value, value: &Value) -> bool {
    let of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some(other) => panic!("unknown type {other}"),
        None => true,
    };
    let is_const = schema.get("const").is_none_or(|wanted| wanted == value);
    let required = schema["required"]
        .as_array()
        .is_none_or(|names| names.iter().all(|name| value.get(name.as_str().unwrap()).is_some()));
    let empty = serde_json::Map::new();
    let known = schema["properties"].as_object().unwrap_or(&empty);
    let members = value.as_object().unwrap_or(&empty).iter().all(|(name, member)| {
        let inner = known.get(name).or_else(|| schema.get("additionalProperties"));
        inner.is_none_or(|inner| holds(inner, member))
    });
    let long_enough = schema["minLength"].as_u64().is_none_or(|_| value != "");
    of_type && is_const && required && members && long_enough
}

#[test]
fn every_type_has_a_body_that_its_own_schema_takes_and_no_other_does() {
    for kind in EventType::ALL {
        let body = Body::new(*kind, AT, data(*kind)).unwrap().to_json().unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["type"], kind.name());
        assert_eq!(body["timestamp"], "2023-11-14T22:13:20.250Z");
        for other in EventType::ALL {
            assert_eq!(holds(&schema::of(*other), &body), kind == other, "{kind} and {other}");
        }
        let names: Vec<String> = schema::of(*kind)["properties"]["data"]["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        for name in names {
            let mut less = body.clone();
            less["data"].as_object_mut().unwrap().remove(&name).unwrap();
            assert!(!holds(&schema::of(*kind), &less), "{kind} without {name}");
        }
    }
}

#[test]
fn the_body_is_thin() {
    let kind = EventType::ApprovalRequested;
    let body = Body::new(kind, AT, data(kind)).unwrap().to_json().unwrap();
    let wanted = json!({
        "type": "approval.requested",
        "timestamp": "2023-11-14T22:13:20.250Z",
        "data": {
            "tenant": "acme",
            "session": "tenants/acme/session",
            "sequence": 7,
            "approval": "tenants/acme/approval",
            "links": { "self": "https://example.com/1" },
        },
    });
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), wanted);
}

#[test]
fn what_does_not_belong_there_or_is_missing_makes_no_body() {
    let kind = EventType::SessionStarted;
    let less = Data { sequence: None, ..data(kind) };
    assert_eq!(Body::new(kind, AT, less), Err(BodyError::Missing("sequence")));
    let nobody = Data { tenant: String::new(), ..data(kind) };
    assert_eq!(Body::new(kind, AT, nobody), Err(BodyError::Missing("tenant")));
    let more = Data { approval: Some("a".into()), ..data(kind) };
    assert_eq!(Body::new(kind, AT, more), Err(BodyError::Unexpected("approval")));
    let links = (0..=LINKS_MAX).map(|at| (at.to_string(), String::new())).collect();
    assert_eq!(Body::new(kind, AT, Data { links, ..data(kind) }), Err(BodyError::Links));
    assert_eq!(Body::new(kind, Duration::MAX, data(kind)), Err(BodyError::Moment));
    let long = Data { state: Some("s".repeat(OUT_BODY_BYTES_MAX)), ..data(kind) };
    assert_eq!(Body::new(kind, AT, long).unwrap().to_json(), Err(BodyError::TooLarge));
}
