//! `switchward schema`: JSON Schemas of webhook bodies.

use serde_json::{Map, Value};
use switchward_webhook::{EventType, schema};

use crate::args::{SchemaArgs, SchemaCommand};
use crate::exit::Exit;
use crate::output::print;

/// Prints the schemas.
pub(crate) fn run(args: &SchemaArgs) -> Result<(), Exit> {
    match &args.what {
        SchemaCommand::Events { event: None } => {
            let all: Map<String, Value> =
                EventType::ALL.iter().map(|kind| (kind.name().to_owned(), schema::of(*kind))).collect();
            print(&format!("{:#}\n", Value::Object(all)))
        }
        SchemaCommand::Events { event: Some(name) } => match EventType::from_name(name) {
            Some(kind) => print(&format!("{:#}\n", schema::of(kind))),
            None => {
                let known: Vec<&str> = EventType::ALL.iter().map(|kind| kind.name()).collect();
                Err(Exit::usage(format!("there is no event type {name:?}; allowed are {}", known.join(", "))))
            }
        },
    }
}
