//! The JSON Schemas of results, as workers are shown them.

use serde_json::{Map, Value, json};
use switchward_machine::reserved_keys::NEXT_NODE;
use switchward_machine::{Accept, Contract, FieldType, Machine, Node, ResultUse, Wanted};

use crate::session::intent;

/// The JSON Schema of a result of work of a node of this machine that was handed this.
pub(crate) fn result_schema(machine: &Machine, node: &Node, accept: Option<&Accept>, input: &Value) -> Value {
    match accept {
        Some(Accept::Contract(contract)) => of_contract(node, contract),
        Some(Accept::Workflows) => intent::schema(input),
        None => json!({}),
        Some(Accept::Data) if machine.reserved_keys.is_empty() => json!({ "type": ["object", "null"] }),
        Some(Accept::Data) => json!({
            "type": ["object", "null"],
            "propertyNames": { "not": { "enum": machine.reserved_keys } },
        }),
        Some(Accept::Fields { fields, .. }) => {
            let property = |field: &Wanted| {
                let mut schema = Map::new();
                match field.holds {
                    FieldType::String => schema.insert("type".into(), json!(["string", "null"])),
                    FieldType::Number => schema.insert("type".into(), json!(["number", "null"])),
                    FieldType::Boolean => schema.insert("type".into(), json!(["boolean", "null"])),
                    FieldType::List => schema.insert("type".into(), json!(["array", "null"])),
                    FieldType::Date => {
                        schema.insert("format".into(), json!("date"));
                        schema.insert("type".into(), json!(["string", "null"]))
                    }
                };
                if !field.description.is_empty() {
                    schema.insert("description".into(), json!(field.description));
                }
                (field.name.clone(), Value::Object(schema))
            };
            let properties: Map<String, Value> = fields.iter().map(property).collect();
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        Some(Accept::Answer { .. }) => json!({
            "type": "object",
            "properties": { "status": { "type": "integer", "minimum": 0 }, "body": {} },
        }),
    }
}

/// The schema of a contract, with the exits that a result can name. Null stands for an object without keys.
fn of_contract(node: &Node, contract: &Contract) -> Value {
    let mut schema = contract.schema.as_ref().map_or_else(|| json!({}), |schema| schema.value().clone());
    let Value::Object(fields) = &mut schema else { return schema };
    if contract.into == ResultUse::Update && fields.get("type") == Some(&json!("object")) {
        fields.insert("type".into(), json!(["object", "null"]));
    }
    let mut names: Vec<&str> = Vec::new();
    for (_, name) in node.agent_exits() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert(NEXT_NODE.into(), json!({ "type": "string", "enum": names }));
        }
    }
    schema
}
