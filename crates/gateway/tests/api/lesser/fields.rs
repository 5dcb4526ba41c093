//! Random field values of lesser keys: names of all that they have seen, and values that would help them if accepted.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, Value};
use prost_types::{Struct, value::Kind as Json};

use crate::hostile::dice::Dice;
use crate::hostile::values::{leaves, put};
use crate::rpcs::Rpc;

/// A person who must never be asked.
pub(super) const STRANGER: &str = "mallory@evil.example";

/// Texts that would help an agent if they were accepted somewhere.
const TEXTS: [&str; 31] = [
    "",
    STRANGER,
    "boss@acme.example",
    "agent@acme",
    "approver@acme",
    "pay",
    "ship",
    "outside",
    "confirm",
    "release",
    "talk",
    "operator",
    "admin",
    "worker",
    "agent",
    "nobody",
    "paid",
    "confirmed",
    "shipped",
    "arrive",
    "decide",
    "bash",
    "mcp:filesystem:write_file",
    "resend-email",
    "yes",
    "approve",
    "Approved, thanks!",
    "acme-desk",
    "-",
    "0.01",
    "tenants/acme/definitions/release/versions/1",
];

/// Data keys that would help an agent that could write them.
const KEYS: [&str; 10] = [
    "amount",
    "to",
    "approval",
    "approval.decide.shown.amount",
    "wait",
    "tasks",
    "conversation_contact",
    "order",
    "decision",
    "_next",
];

/// See the module.
#[derive(Default)]
pub(super) struct Pool {
    /// Names of sessions, gates, work and the like.
    pub(super) names: Vec<String>,
    /// Sessions that the run has started, in order.
    pub(super) sessions: Vec<String>,
}

impl Pool {
    /// Changes one random field.
    pub(super) fn change(&self, message: &mut DynamicMessage, dice: &mut Dice) {
        let paths = leaves(&prost_reflect::ReflectMessage::descriptor(message));
        if paths.is_empty() {
            return;
        }
        let path = dice.pick(&paths).clone();
        let Some(field) = path.last() else { return };
        // Masks and pages only change what is shown.
        if ["read_mask", "page_token", "request_id", "expected_sequence"].contains(&field.name()) {
            return;
        }
        let value = self.value(field, dice);
        put(message, &path, value);
    }

    fn value(&self, field: &FieldDescriptor, dice: &mut Dice) -> Value {
        if field.is_map() {
            return Value::Map(
                std::iter::once((MapKey::String(text(dice)), Value::String(text(dice)))).collect(),
            );
        }
        if field.is_list() {
            return Value::List((0..dice.below(3)).map(|_| self.single(&field.kind(), dice)).collect());
        }
        self.single(&field.kind(), dice)
    }

    fn single(&self, kind: &Kind, dice: &mut Dice) -> Value {
        match kind {
            Kind::Bool => Value::Bool(dice.below(2) == 0),
            Kind::Double => Value::F64(0.5),
            Kind::Float => Value::F32(0.5),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(1),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(1 + i64::from(dice.byte())),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(u32::from(dice.byte() % 4)),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(u64::from(dice.byte() % 4)),
            Kind::Enum(of) => {
                let values: Vec<i32> = of.values().map(|value| value.number()).collect();
                Value::EnumNumber(*dice.pick(&values))
            }
            Kind::Bytes => Value::Bytes(br#"{"path":"/etc/shadow"}"#.to_vec().into()),
            Kind::String if dice.below(2) == 0 && !self.names.is_empty() => {
                Value::String(dice.pick(&self.names).clone())
            }
            Kind::String => Value::String(text(dice)),
            Kind::Message(inner) if inner.full_name() == "google.protobuf.Struct" => {
                let mut message = DynamicMessage::new(inner.clone());
                let filled = message.transcode_from(&data(dice));
                filled.expect("a struct is a struct");
                Value::Message(message)
            }
            Kind::Message(inner) => Value::Message(DynamicMessage::new(inner.clone())),
        }
    }

    /// Stores every name in a reply for use by later calls.
    pub(super) fn learn(&mut self, rpc: &Rpc, reply: &[u8]) {
        let message = DynamicMessage::decode(rpc.descriptor().output(), reply).expect("a reply");
        let text = message.to_string();
        for word in text.split('"').filter(|word| word.starts_with("tenants/acme/")) {
            if self.names.len() < 60 && !self.names.iter().any(|name| name == word) {
                self.names.push(word.to_owned());
            }
            if rpc.method == "StartSession" && word.starts_with("tenants/acme/sessions/") {
                self.sessions.push(word.to_owned());
            }
        }
    }
}

fn text(dice: &mut Dice) -> String {
    (*dice.pick(&TEXTS)).to_owned()
}

/// An object with keys that would help an agent.
fn data(dice: &mut Dice) -> Struct {
    let one = |dice: &mut Dice| {
        let kind = match dice.below(4) {
            0 => Json::NumberValue(999_999.0),
            1 => Json::BoolValue(true),
            2 => Json::StringValue(STRANGER.to_owned()),
            _ => Json::StringValue(text(dice)),
        };
        prost_types::Value { kind: Some(kind) }
    };
    let fields = (0..1 + dice.below(2)).map(|_| ((*dice.pick(&KEYS)).to_owned(), one(dice))).collect();
    Struct { fields }
}
