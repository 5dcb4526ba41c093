//! Texts with their own grammar, generated from its pieces: arguments, amounts, capabilities, names, filters, tokens.

use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use super::dice::Dice;
use super::{Attack, Target, by, protocols, targets_that_end};
use crate::rpcs::set;

pub(super) const SENT: usize = 5_000;
/// Texts for each field that has a grammar.
const DRAWN: usize = 70;

const ARGS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"a\"",
    "\"\\u0061\"",
    "\"b\"",
    "1",
    "-1",
    "1.0",
    "1e5",
    "1e999",
    "null",
    "true",
    " ",
    "\n",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\\",
    "\"",
    "NaN",
    "/*x*/",
    "{\"a\":1}",
    "{\"a\":[1,{\"b\":null}]}",
];
const MONEY: &[&str] =
    &["0", "1", "9", "00", ".", ".", "-", "+", "e", "E", "e9", "e-9", " ", ",", "_", "x", "9999999"];
const CAPABILITY: &[&str] =
    &["bash", "mcp", ":", ":", ".", "*", "a", "A", " ", "/", "web", "files", "\u{e9}", "-", "_", ""];
const NAMES: &[&str] = &[
    "tenants",
    "/",
    "/",
    "/",
    "-",
    "acme",
    "globex",
    "sessions",
    "gates",
    "definitions",
    "versions",
    "keys",
    "release",
    "1",
    "latest",
    "active",
    "ses_",
    "gat_",
    "_1",
    "0123456789abcdefghjkmnpqrs",
    "\u{e9}",
    " ",
    "%2f",
    "..",
];
const FILTER: &[&str] = &[
    "status",
    "kind",
    "session",
    "decision",
    "capability",
    "definition",
    "labels.",
    "team",
    "=",
    "=",
    "\"",
    "\"",
    "\"waiting\"",
    "\"open\"",
    "\"notify\"",
    "\"deny\"",
    " AND ",
    " AND ",
    " OR ",
    " ",
    "(",
    ")",
    "!=",
    "\\\"",
    "\0",
];
const TOKEN: &[&str] = &["0", "1", "f", "00", "ff", "A", "g", "+", "-", " ", "0123456789abcdef", "\u{e9}"];
const ID: &[&str] =
    &["a", "0", "-", "_", ":", "call", "request", " ", "\u{1f680}", "\0", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"];

/// The pieces of a field's text, if it has a grammar.
fn pieces(field: &str) -> Option<&'static [&'static str]> {
    Some(match field {
        "args" => ARGS,
        "est_cost_usd" | "cost_usd" => MONEY,
        "capability" => CAPABILITY,
        "name" | "parent" | "session" | "definition" => NAMES,
        "filter" => FILTER,
        "page_token" | "args_digest" => TOKEN,
        "session_id" | "request_id" | "call_id" | "tenant_id" | "state" | "answer" | "role" | "subject" => ID,
        _ => return None,
    })
}

fn drawn(dice: &mut Dice, pieces: &[&str]) -> String {
    (0..=dice.below(12)).map(|_| *dice.pick(pieces)).collect()
}

async fn shoot(attack: &mut Attack, target: &mut Target, field: &str, text: String, turn: usize) {
    let mut message: DynamicMessage = target.good.clone();
    let what = format!("{field} = {text:?}");
    let value = if field == "args" { Value::Bytes(text.into_bytes().into()) } else { Value::String(text) };
    set(&mut message, field, value);
    let all = protocols(&target.rpc);
    let raw = by(all[turn % all.len()], &target.rpc, &message);
    target.shoot(attack, raw, what).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_are_nearly_right() {
    let mut attack = Attack::start("texts").await;
    let mut dice = Dice::new(5);
    for mut target in targets_that_end(&attack).await {
        let fields: Vec<String> =
            target.good.descriptor().fields().map(|field| field.name().to_owned()).collect();
        for field in fields {
            // The role of a key is an enum, that of a session a text.
            let text = target
                .good
                .get_field_by_name(&field)
                .is_some_and(|value| matches!(*value, Value::String(_) | Value::Bytes(_)));
            let Some(pieces) = pieces(&field).filter(|_| text) else { continue };
            for turn in 0..DRAWN {
                let text = drawn(&mut dice, pieces);
                shoot(&mut attack, &mut target, &field, text, turn).await;
            }
        }
    }
    attack.end(SENT).await;
}
