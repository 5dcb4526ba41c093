//! The API's wire form: every number that a client was generated with stays what it is.

use std::collections::BTreeSet;
use std::path::Path;

use prost_reflect::{
    Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ServiceDescriptor,
};
use switchward_api::{PACKAGE, descriptor_pool};

const GOLDEN: &str = include_str!("golden/switchward.v1.txt");

#[test]
fn the_wire_form_is_the_one_that_was_published() {
    let now = wire_form();
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (GOLDEN.lines().collect(), now.lines().collect());
    if old == new {
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("switchward.v1.txt");
    std::fs::write(&file, &now).expect("the target folder can be written");
    let gone: Vec<_> = old.difference(&new).collect();
    let added: Vec<_> = new.difference(&old).collect();
    panic!(
        "removed, which breaks clients: {gone:#?}\nadded: {added:#?}\nif this is intended, copy {} to tests/golden",
        file.display()
    );
}

/// A line for every field, value and method, sorted.
fn wire_form() -> String {
    let pool = descriptor_pool();
    let mut lines = Vec::new();
    for message in
        pool.all_messages().filter(|message| message.package_name() == PACKAGE && !message.is_map_entry())
    {
        lines.extend(message_lines(&message));
    }
    for values in pool.all_enums().filter(|values| values.package_name() == PACKAGE) {
        lines.extend(enum_lines(&values));
    }
    for service in pool.services() {
        lines.extend(service_lines(&service));
    }
    lines.sort();
    lines.join("\n") + "\n"
}

fn message_lines(message: &MessageDescriptor) -> Vec<String> {
    let fields = message.fields().map(|field| format!("message {} {}", message.name(), field_words(&field)));
    let whole = format!("message {}", message.name());
    std::iter::once(whole).chain(fields).collect()
}

fn field_words(field: &FieldDescriptor) -> String {
    let mut words = format!("{:>2} {} {}", field.number(), field.name(), type_words(field));
    if let Some(oneof) =
        field.containing_oneof().filter(|_| !field.field_descriptor_proto().proto3_optional())
    {
        words += &format!(" in {}", oneof.name());
    } else if field.supports_presence() && field.kind().as_message().is_none() {
        words += " optional";
    }
    words
}

fn type_words(field: &FieldDescriptor) -> String {
    if let (true, Some(entry)) = (field.is_map(), field.kind().as_message()) {
        let value = entry.map_entry_value_field();
        return format!(
            "map<{}, {}>",
            kind_word(&entry.map_entry_key_field().kind()),
            kind_word(&value.kind())
        );
    }
    let many = if field.cardinality() == Cardinality::Repeated { "repeated " } else { "" };
    format!("{many}{}", kind_word(&field.kind()))
}

fn kind_word(kind: &Kind) -> String {
    kind.as_message()
        .map(|message| message.full_name().to_owned())
        .or_else(|| kind.as_enum().map(|values| values.full_name().to_owned()))
        .unwrap_or_else(|| format!("{kind:?}").to_lowercase())
}

fn enum_lines(values: &EnumDescriptor) -> Vec<String> {
    values
        .values()
        .map(|value| format!("enum {} {:>2} {}", values.name(), value.number(), value.name()))
        .collect()
}

fn service_lines(service: &ServiceDescriptor) -> Vec<String> {
    let line = |method: prost_reflect::MethodDescriptor| {
        let stream = if method.is_server_streaming() { "stream " } else { "" };
        let (input, output) = (method.input(), method.output());
        format!("service {} {}({}) {stream}{}", service.name(), method.name(), input.name(), output.name())
    };
    service.methods().map(line).collect()
}
