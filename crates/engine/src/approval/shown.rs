//! What a request shows: the values that its texts read, as they were when it was opened. A digest over them and the texts
//! is what an approval is bound to. If the gate's spec names a key, as `approval`, the values are kept below
//! `approval.<state>.shown`, each at the path at which the data have it. If one item of a list is read, the whole list is
//! kept. A value that is absent is null. The reply token does not count as a value.

use serde_json::{Map, Value, json};
use switchward_expr::{Braces, Path, Strict, reads};
use switchward_machine::{
    Dialect, Digest, Machine, Message, RunId, Text,
    reserved_keys::{DIGEST, REPLY_TOKEN, SHOWN},
};
use switchward_state::approval::GateRequest;
use switchward_state::policy::canonical_of;
use switchward_state::run::Writer;

use crate::run::data::{self, DataFull};
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// The values that the texts of a request read.
pub(crate) fn values(machine: &Machine, scope: &Scope, message: &Message) -> Map<String, Value> {
    let (mut paths, mut whole) = (Vec::new(), false);
    for text in message.texts() {
        whole |= paths_of(text, &mut paths);
    }
    let root = scope.root();
    let mut shown = Map::new();
    if whole {
        let own = root.as_object().into_iter().flatten().filter(|(key, _)| !machine.reserves(key));
        shown.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    }
    // The shorter first: what is kept as a whole has all that is read below it.
    paths.sort_by_key(|path| path.as_str().len());
    let is_token = |path: &Path| path.names().next() == Some(REPLY_TOKEN) && machine.reserves(REPLY_TOKEN);
    for path in paths.iter().filter(|path| !is_token(path)) {
        keep(&mut shown, root, path);
    }
    shown
}

/// Adds the paths that a text reads; returns whether it takes the data as a whole.
fn paths_of(text: &Text, paths: &mut Vec<Path>) -> bool {
    match text.dialect {
        Dialect::Plain => false,
        Dialect::Braces => {
            paths.extend(Braces::parse(&text.source).references().cloned());
            false
        }
        Dialect::Strict => {
            paths.extend(Strict::parse(&text.source).references().cloned());
            false
        }
        Dialect::Jinja => {
            let found = reads(&text.source);
            paths.extend(found.paths);
            found.whole
        }
    }
}

/// Keeps the value of a path, at the path at which the data have it.
fn keep(shown: &mut Map<String, Value>, root: &Value, path: &Path) {
    let mut names = path.names().peekable();
    let (mut from, mut into) = (Some(root), shown);
    while let Some(name) = names.next() {
        let value = from.and_then(|from| from.as_object()?.get(name));
        if names.peek().is_none() || !value.is_some_and(Value::is_object) {
            into.insert(name.to_owned(), value.cloned().unwrap_or(Value::Null));
            return;
        }
        let inner = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else { return };
        (from, into) = (value, inner);
    }
}

/// The digest of the values, whatever the order of their keys.
pub(crate) fn digest(values: &Map<String, Value>) -> Digest {
    Digest::of(&canonical_of(&Value::Object(values.clone())))
}

/// Records what a request shows below `key`, if there is one; returns why that is not possible, if it is not. A request that
/// reads nothing leaves nothing behind, and nothing of an earlier visit.
pub(crate) fn record(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    key: Option<&str>,
    values: Map<String, Value>,
    asked: &GateRequest,
) -> Result<Option<DataFull>, Stop> {
    let Some(key) = key else { return Ok(None) };
    if values.is_empty() && !data::has_below(turn, run, key, SHOWN)? {
        return Ok(None);
    }
    let fields = json!({ SHOWN: values, DIGEST: asked.digest().to_string() });
    data::merge_below(turn, run, key, fields, Writer::Request)
}
