//! Difficult values, by the kind of a field.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

/// A path inside a message: the fields that lead to it. In a list it is the first entry.
pub(crate) type Path = Vec<FieldDescriptor>;

/// Formats a path.
pub(crate) fn shown(path: &Path) -> String {
    let names: Vec<&str> = path.iter().map(FieldDescriptor::name).collect();
    names.join(".")
}

/// The paths of all fields of a message that do not contain fields of our own.
pub(crate) fn leaves(descriptor: &MessageDescriptor) -> Vec<Path> {
    let mut leaves = Vec::new();
    for field in descriptor.fields() {
        match field.kind() {
            Kind::Message(inner) if ours(&inner) && !field.is_map() => {
                leaves.push(vec![field.clone()]);
                leaves.extend(leaves_of(&field, &inner));
            }
            _ => leaves.push(vec![field]),
        }
    }
    leaves
}

fn leaves_of(field: &FieldDescriptor, inner: &MessageDescriptor) -> Vec<Path> {
    leaves(inner).into_iter().map(|rest| [vec![field.clone()], rest].concat()).collect()
}

fn ours(descriptor: &MessageDescriptor) -> bool {
    descriptor.parent_file().package_name() == switchward_api::PACKAGE
}

/// Sets the value at a path.
pub(crate) fn put(message: &mut DynamicMessage, path: &[FieldDescriptor], value: Value) {
    let [field, rest @ ..] = path else { return };
    if rest.is_empty() {
        return message.set_field(field, value);
    }
    let Kind::Message(inner) = field.kind() else { return };
    let empty = || Value::Message(DynamicMessage::new(inner.clone()));
    match message.get_field_mut(field) {
        Value::Message(inner) => put(inner, rest, value),
        Value::List(list) => {
            if list.is_empty() {
                list.push(empty());
            }
            if let Some(Value::Message(first)) = list.first_mut() {
                put(first, rest, value);
            }
        }
        other => panic!("{} holds {other:?}", field.full_name()),
    }
}

/// Difficult values for a field.
pub(crate) fn hard(field: &FieldDescriptor) -> Vec<Value> {
    if field.is_map() {
        return maps();
    }
    let single = of_kind(&field.kind());
    if !field.is_list() {
        return single;
    }
    let mut lists = vec![Value::List(Vec::new())];
    for value in single {
        lists.push(Value::List(vec![value.clone()]));
        lists.push(Value::List(vec![value; 3]));
    }
    if let Kind::Message(inner) = field.kind() {
        let empty = Value::Message(DynamicMessage::new(inner));
        lists.extend([1, 257, 2_000].map(|count| Value::List(vec![empty.clone(); count])));
    }
    lists
}

fn of_kind(kind: &Kind) -> Vec<Value> {
    match kind {
        Kind::Double => [f64::NAN, f64::INFINITY, -0.0, 1e308].map(Value::F64).to_vec(),
        Kind::Float => [f32::NAN, f32::NEG_INFINITY].map(Value::F32).to_vec(),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            [0, 1, -1, i32::MIN, i32::MAX, 999_999_999, 1_000_000_000].map(Value::I32).to_vec()
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => i64s().into_iter().map(Value::I64).collect(),
        Kind::Uint32 | Kind::Fixed32 => [0, 1, 1_000, 1_001, 1 << 31, u32::MAX].map(Value::U32).to_vec(),
        Kind::Uint64 | Kind::Fixed64 => {
            [0, 1, 1 << 53, (1 << 53) + 1, 1 << 63, u64::MAX - 1, u64::MAX].map(Value::U64).to_vec()
        }
        Kind::Bool => [true, false].map(Value::Bool).to_vec(),
        Kind::String => strings().into_iter().map(Value::String).collect(),
        Kind::Bytes => bytes().into_iter().map(|bytes| Value::Bytes(bytes.into())).collect(),
        Kind::Enum(_) => [-1, 0, 1, 77, i32::MIN, i32::MAX].map(Value::EnumNumber).to_vec(),
        Kind::Message(inner) => messages(inner),
    }
}

/// Whole numbers at the limits of times and durations.
fn i64s() -> Vec<i64> {
    let year_10000 = 253_402_300_800;
    let mut numbers =
        vec![0, 1, -1, i64::MIN, i64::MAX, 1 << 53, year_10000, year_10000 - 1, -62_135_596_801];
    numbers.extend([315_576_000_000, 315_576_000_001, 18_446_744_073_709_551, 9_223_372_036_854_775]);
    numbers
}

/// Difficult text for any name, amount, filter or note; longer texts are built from pieces below.
const TEXTS: &[&str] = &[
    "",
    " ",
    "\0",
    "a\0b",
    "\n",
    "\r\nx: y",
    "\t",
    "\u{202e}evil",
    "\u{200b}",
    "\u{feff}",
    "\u{fffd}",
    "\u{1f469}\u{200d}\u{1f680}",
    "\u{10ffff}",
    "..",
    "../../etc/passwd",
    "/",
    "//",
    "a//b",
    "-",
    "-/-",
    "tenants/",
    "tenants//sessions/x",
    "tenants/-/sessions/",
    "tenants/-/sessions/x/y",
    "tenants/-",
    "tenants/globex/sessions/globex-order",
    "sessions/globex-order",
    "ses_",
    "gat_",
    "gat__1",
    "ses_zzzzzzzzzzzzzzzzzzzzzzzzzz",
    "gat_0123456789abcdefghjkmnpqrs_18446744073709551616",
    "release/versions/0",
    "release/versions/-1",
    "release/versions/4294967296",
    "release/versions/",
    "0",
    "-1",
    "1e308",
    "1e-308",
    "-0",
    "NaN",
    "Infinity",
    "0x10",
    "18446744073709551616",
    "1_000",
    "1,5",
    "0.0000001",
    "123456789012345678901234567890.5",
    "1e99999999999999999999",
    ".",
    "1.",
    ".5",
    "+1",
    "status=\"waiting\"",
    "status=\"waiting\" AND",
    "kind=\"\"",
    "labels.\0=\"x\"",
    "=\"\"",
    "\"",
    "'",
    "'; DROP TABLE sessions; --",
    "{}",
    "[]",
    "null",
    "%s%n%x",
    "${jndi:ldap://x}",
    "<script>",
    "&amp;",
    "\\",
    "*",
    "**",
    "mcp:*",
    "mcp::",
    ":",
    "mcp:a:b:c:d",
    "bash ",
    "BASH",
    "mcp:\u{202e}:x",
];

/// Difficult text for any name, amount, filter or note.
pub(crate) fn strings() -> Vec<String> {
    let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    for (text, length) in
        [("x", 129), ("x", 257), ("\u{fc}", 129), ("9", 400), ("a/", 300), ("\u{1f680}", 5_000)]
    {
        texts.push(text.repeat(length));
    }
    texts.push("n".repeat(17 * 1024));
    texts
}

fn bytes() -> Vec<Vec<u8>> {
    let deep = |open: &str, close: &str, depth: usize| [open.repeat(depth), close.repeat(depth)].concat();
    let mut all: Vec<Vec<u8>> = [
        &b"\0"[..],
        b"\xff\xfe",
        b"{",
        b"}",
        b"[1,]",
        b"{\"a\":1,\"a\":2}",
        b"nul",
        b"NaN",
        b"1e400",
        b"\"\\ud800\"",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"{\"a\":\x00}",
        b"{\"\\u0000\":1}",
        b"[]",
        b"null",
        b"-0",
        b"name: x",
        b"- - -",
        b"&a [*a]",
        b"{\"name\": \"x\"}",
        b"%YAML 1.2\n---\n...",
        b"a: !!binary x",
        b"{a: 1, a: 2}",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    all.extend([deep("[", "]", 65), deep("{\"a\":", "}", 70), "[".repeat(5_000)].map(String::into_bytes));
    all.push(vec![b'x'; 300 * 1024]);
    all
}

fn messages(descriptor: &MessageDescriptor) -> Vec<Value> {
    let mut all = vec![DynamicMessage::new(descriptor.clone())];
    match descriptor.full_name() {
        "google.protobuf.Struct" => all.extend(structs(descriptor)),
        "google.protobuf.Value" => all.extend(any_values(descriptor)),
        name => {
            for field in descriptor.fields().filter(|_| name.starts_with("google.protobuf.")) {
                for value in hard(&field) {
                    let mut message = DynamicMessage::new(descriptor.clone());
                    message.set_field(&field, value);
                    all.push(message);
                }
            }
        }
    }
    all.into_iter().map(Value::Message).collect()
}

/// Values of every kind, which may nest without limit.
fn any_values(descriptor: &MessageDescriptor) -> Vec<DynamicMessage> {
    let said = |field: &str, inner: Value| {
        let mut of = DynamicMessage::new(descriptor.clone());
        of.set_field_by_name(field, inner);
        of
    };
    let mut all = vec![said("null_value", Value::EnumNumber(0)), said("null_value", Value::EnumNumber(7))];
    for (name, scalar) in [("number_value", Kind::Double), ("string_value", Kind::String)] {
        all.extend(of_kind(&scalar).into_iter().map(|value| said(name, value)));
    }
    all.push(said("string_value", Value::String("x".repeat(300 * 1024))));
    let inner = descriptor.get_field_by_name("struct_value").map(|field| field.kind());
    let Some(Kind::Message(inner)) = inner else { return all };
    all.extend(structs(&inner).into_iter().map(|inner| said("struct_value", Value::Message(inner))));
    all
}

fn structs(descriptor: &MessageDescriptor) -> Vec<DynamicMessage> {
    let fields = descriptor.get_field_by_name("fields").expect("a struct has fields");
    let Kind::Message(entry) = fields.kind() else { return Vec::new() };
    let Kind::Message(value) = entry.map_entry_value_field().kind() else { return Vec::new() };
    let one = |name: &str, inner: Value| {
        let mut of = DynamicMessage::new(descriptor.clone());
        of.set_field(&fields, Value::Map(HashMap::from([(MapKey::String(name.to_owned()), inner)])));
        of
    };
    let said = |field: &str, inner: Value| {
        let mut of = DynamicMessage::new(value.clone());
        of.set_field_by_name(field, inner);
        Value::Message(of)
    };
    let mut all = vec![one("nothing", Value::Message(DynamicMessage::new(value.clone())))];
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -0.0, 9_007_199_254_740_993.0, 0.1] {
        all.push(one("number", said("number_value", Value::F64(number))));
    }
    for text in strings() {
        all.push(one(&text, said("string_value", Value::String(text.clone()))));
    }
    all.push(one("null", said("null_value", Value::EnumNumber(7))));
    all.push(one("large", said("string_value", Value::String("x".repeat(300 * 1024)))));
    for depth in [30, 31, 32, 33, 40] {
        let leaf = one("leaf", said("bool_value", Value::Bool(true)));
        all.push((1..depth).fold(leaf, |inner, _| one("in", said("struct_value", Value::Message(inner)))));
    }
    all
}

/// Difficult labels.
fn maps() -> Vec<Value> {
    let map = |entries: Vec<(String, String)>| {
        let entry = |(key, value)| (MapKey::String(key), Value::String(value));
        Value::Map(entries.into_iter().map(entry).collect())
    };
    let mut all = vec![
        map((0..64).map(|at| (format!("k{at}"), String::new())).collect()),
        map((0..65).map(|at| (format!("k{at}"), String::new())).collect()),
        map((0..5_000).map(|at| (format!("k{at}"), "v".repeat(200))).collect()),
    ];
    for text in strings() {
        all.push(map(vec![(text.clone(), "value".into())]));
        all.push(map(vec![("key".into(), text)]));
    }
    all
}
