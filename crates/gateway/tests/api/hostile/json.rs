//! JSON that does not fit the method: wrong types everywhere, duplicate members, nesting, damage.

use prost_reflect::{DynamicMessage, ReflectMessage};
use serde_json::{Value as Json, json};

use super::dice::Dice;
use super::{Attack, targets};
use crate::harness::Harness;
use crate::protocols::{Protocol, Raw};

pub(super) const SENT: usize = 6_000;
const DAMAGED: usize = 60;

/// Valid values for fields that a good request leaves out.
fn mild() -> Vec<(&'static str, Json)> {
    vec![
        ("parent", json!("-")),
        ("pageSize", json!(1)),
        ("filter", json!("")),
        ("note", json!("text")),
        ("reason", json!("text")),
        ("comment", json!("text")),
        ("role", json!("agent")),
        ("labels", json!({"team": "core"})),
        ("input", json!({"a": [1, {"b": null}], "c": "d"})),
        ("version", json!(1)),
        ("state", json!("look")),
        ("args", json!("e30=")),
        ("estCostUsd", json!("0.1")),
        ("costUsd", json!("0.1")),
        ("outcome", json!("TOOL_OUTCOME_SUCCESS")),
        ("tokens", json!("1")),
        ("duration", json!("1.5s")),
        ("displayName", json!("text")),
        ("subject", json!("text")),
        ("expireTime", json!("2030-01-01T00:00:00Z")),
        ("format", json!("FORMAT_CHECKPOINT")),
        ("activate", json!(true)),
        ("view", json!("VERSION_VIEW_COMPILED")),
        ("fromSequence", json!("1")),
        ("tenant", json!({"displayName": "text", "defaultEffect": "DEFAULT_EFFECT_ALLOW"})),
    ]
}

/// A good request with a value in every field that can have one without becoming invalid.
fn full(harness: &Harness, good: &DynamicMessage) -> Json {
    let mut json = serde_json::to_value(good).expect("proto-JSON");
    let members = json.as_object_mut().expect("a message");
    for (name, value) in mild() {
        let field = good.descriptor().get_field_by_json_name(name);
        let taken = |field: &prost_reflect::FieldDescriptor| {
            let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
            oneof.is_some_and(|oneof| oneof.fields().any(|field| members.contains_key(field.json_name())))
        };
        if field.is_some_and(|field| !taken(&field)) && !members.contains_key(name) {
            members.insert(name.to_owned(), value);
        }
    }
    if good.descriptor().get_field_by_name("request_id").is_some() {
        members.insert("requestId".into(), json!(harness.fresh("json")));
    }
    json
}

/// Every position inside a value, as JSON pointers.
fn pointers(value: &Json, at: &str, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    match value {
        Json::Object(members) => {
            for (name, value) in members.iter().take(20) {
                self::pointers(
                    value,
                    &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")),
                    pointers,
                );
            }
        }
        Json::Array(items) => {
            for (index, value) in items.iter().enumerate().take(3) {
                self::pointers(value, &format!("{at}/{index}"), pointers);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Values of every type, most of them wrong in every position.
fn wrong() -> Vec<Json> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(4_294_967_296_u64),
        json!(""),
        json!("x"),
        json!("%%%"),
        json!("12"),
        json!("1e3"),
        json!("NaN"),
        json!("2026-13-45T99:99:99Z"),
        json!("3.5s"),
        json!("9999999999999999s"),
        json!("KEY_ROLE_NONE"),
        json!("\u{202e}\0"),
        json!([]),
        json!([null]),
        json!([[[]]]),
        json!({}),
        json!({"unknown": 1}),
        json!({"": {"": {}}}),
    ]
}

/// Bodies that are wrong as a whole.
fn bodies(good: &str, dice: &mut Dice) -> Vec<Vec<u8>> {
    let inside = good.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    let comma = if inside.is_empty() { "" } else { "," };
    let nested = |depth: usize| format!("{{\"x\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let mut bodies: Vec<Vec<u8>> = [
        format!("{{{inside}{comma}{inside}}}"),
        format!("{{{inside}{comma}\"unknown\":1}}"),
        format!("{{{inside}{comma}}}"),
        format!("{good}{good}"),
        format!("\u{feff}{good}"),
        format!("// a comment\n{good}"),
        format!("[{good}]"),
        good.replace(':', "="),
        good.replace('"', "'"),
        nested(31),
        nested(33),
        nested(50_000),
        "{\"a\":".repeat(50_000),
        "\"\\ud83d\"".into(),
        "{\"name\":\"\\udc00\\ud800\"}".into(),
        "{\"pageSize\":1e400}".into(),
        "nulll".into(),
        String::new(),
        " ".into(),
    ]
    .map(String::into_bytes)
    .to_vec();
    bodies.extend((0..DAMAGED).map(|_| dice.damage(good.as_bytes())));
    bodies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_position_of_every_json_with_every_wrong_value() {
    let mut attack = Attack::start("json").await;
    let mut dice = Dice::new(4);
    for mut target in targets(&attack).await {
        if target.rpc.streams() {
            continue;
        }
        let mut all = Vec::new();
        pointers(&full(&attack.harness, &target.good), "", &mut all);
        let first =
            Raw::post(Protocol::Json, target.rpc.method, full(&attack.harness, &target.good).to_string());
        let good = target.shoot(&mut attack, first, "nothing wrong".into()).await;
        assert!(good.is_some(), "{} refuses the unchanged request", target.rpc.method);
        for at in &all {
            for value in wrong() {
                let mut body = full(&attack.harness, &target.good);
                let Some(slot) = body.pointer_mut(at) else { continue };
                *slot = value;
                let raw = Raw::post(Protocol::Json, target.rpc.method, body.to_string());
                target.shoot(&mut attack, raw, format!("{at}: {body:.400}")).await;
            }
        }
        let good = serde_json::to_string(&target.good).expect("proto-JSON");
        for body in bodies(&good, &mut dice) {
            let what = format!("{:.400}", String::from_utf8_lossy(&body));
            target.shoot(&mut attack, Raw::post(Protocol::Json, target.rpc.method, body), what).await;
        }
    }
    attack.end(SENT).await;
}
