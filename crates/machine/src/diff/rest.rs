//! What belongs to a machine as a whole.

use super::pairing::pair_by;
use super::{Both, Change, Difference, Part, Sides, variant};
use crate::{Callee, Field, Machine, Num, Param, ParamIx};

pub(super) fn compare(sides: &mut Sides<'_>) {
    params(sides);
    fields(sides);
    opening(sides);
    let (before, after) = (sides.before, sides.after);
    let lists = |machine: &Machine| {
        let inputs: Vec<String> = machine.inputs.iter().map(variant).collect();
        let callees: Vec<String> = machine.callees.iter().map(callee).collect();
        (inputs, machine.reserved_keys.clone(), callees)
    };
    let (one, other) = (lists(before), lists(after));
    let inputs = Listing { part: Part::Other, word: "input", weaker: Some(Change::Added) };
    texts(sides, Both { before: &one.0, after: &other.0 }, &inputs);
    let reserved = Listing { part: Part::Writes, word: "reserved key", weaker: Some(Change::Removed) };
    texts(sides, Both { before: &one.1, after: &other.1 }, &reserved);
    let callees = Listing { part: Part::Other, word: "call of", weaker: None };
    texts(sides, Both { before: &one.2, after: &other.2 }, &callees);
    let changed = |what: &str| Difference::changed(Part::Other, what);
    sides.unequal(&before.meta, &after.meta, || {
        let text = |machine: &Machine| {
            let meta = &machine.meta;
            format!("{} ({}): {}", meta.name, meta.format, meta.description.as_deref().unwrap_or_default())
        };
        changed("name and description").texts(text(before), text(after))
    });
    sides.unequal(&before.words, &after.words, || changed("words for a status"));
}

/// A list of names: what its entries are, and which change of them weakens a control.
struct Listing {
    part: Part,
    word: &'static str,
    weaker: Option<Change>,
}

fn texts(sides: &mut Sides<'_>, lists: Both<&[String]>, listing: &Listing) {
    let names = pair_by(lists.before, lists.after, String::clone, String::clone);
    let removed = names.removed.iter().map(|at| (Change::Removed, &lists.before[*at]));
    let added = names.added.iter().map(|at| (Change::Added, &lists.after[*at]));
    for (change, name) in removed.chain(added) {
        let difference = Difference::new(listing.part, change, format!("{} {name}", listing.word));
        sides.add(difference.weaker_if(listing.weaker == Some(change)));
    }
}

fn callee(callee: &Callee) -> String {
    match callee.version {
        Some(version) => format!("{} version {version}", callee.name),
        None => callee.name.clone(),
    }
}

/// Numbers that are not the cap of a budget, which is compared with it.
fn params(sides: &mut Sides<'_>) {
    let (before, after) = (sides.before, sides.after);
    let params = pair_by(&before.params, &after.params, name_of_param, name_of_param);
    for (at, to) in params.both {
        let (one, other) = (&before.params[at], &after.params[to]);
        if is_cap(before, at) && is_cap(after, to) {
            continue;
        }
        sides.unequal(&one.value, &other.value, || {
            let difference = Difference::changed(Part::Policy, format!("number {}", one.name));
            let difference = difference.texts(one.value.to_string(), other.value.to_string());
            difference.weaker_if(other.value > one.value)
        });
    }
    let removed = params.removed.iter().map(|at| (Change::Removed, &before.params[*at]));
    let added = params.added.iter().map(|at| (Change::Added, &after.params[*at]));
    for (change, param) in removed.chain(added) {
        let difference = Difference::new(Part::Policy, change, format!("number {}", param.name));
        sides.add(difference.text(param.value.to_string()).weaker_if(change == Change::Removed));
    }
}

fn name_of_param(param: &Param) -> String {
    param.name.clone()
}

fn is_cap(machine: &Machine, at: usize) -> bool {
    let at = u16::try_from(at).map(ParamIx).ok();
    machine.budgets.iter().any(|budget| matches!(budget.cap, Num::Param(param) if Some(param) == at))
}

fn fields(sides: &mut Sides<'_>) {
    let (before, after) = (sides.before, sides.after);
    let fields = pair_by(&before.fields, &after.fields, |field| field.key.clone(), |field| field.key.clone());
    let text = |field: &Field| format!("{}, {}", field.holds.word(), field.reducer.word());
    let subject = |field: &Field| format!("field {}", field.key);
    for (at, to) in fields.both {
        let (one, other) = (&before.fields[at], &after.fields[to]);
        sides.unequal(one, other, || {
            let difference = Difference::changed(Part::Writes, subject(one));
            difference.texts(text(one), text(other)).weaker_if(one.holds != other.holds)
        });
    }
    for field in fields.removed.iter().map(|at| &before.fields[*at]) {
        let difference = Difference::new(Part::Writes, Change::Removed, subject(field));
        sides.add(difference.text(text(field)).weaker_if(true));
    }
    for field in fields.added.iter().map(|at| &after.fields[*at]) {
        sides.add(Difference::new(Part::Writes, Change::Added, subject(field)).text(text(field)));
    }
}

fn opening(sides: &mut Sides<'_>) {
    let (before, after) = (&sides.before.opening, &sides.after.opening);
    sides.unequal(&before.role, &after.role, || {
        let text = |role: &Option<String>| role.clone().unwrap_or_default();
        let difference = Difference::changed(Part::Policy, "role of its sessions");
        difference.texts(text(&before.role), text(&after.role)).weaker_if(before.role.is_some())
    });
    sides.unequal(&before.text, &after.text, || {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let difference = Difference::changed(Part::Other, "text before the first turn");
        difference.texts(text(&before.text), text(&after.text))
    });
    let mut same = before.clone();
    same.role.clone_from(&after.role);
    same.text.clone_from(&after.text);
    sides.unequal(&same, after, || Difference::changed(Part::Other, "start of a session"));
}
