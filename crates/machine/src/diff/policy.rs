//! Policy: what may be called, and what may be spent.

use super::pairing::pair_by;
use super::{Both, Change, Difference, Part, Sides, gate_of, listed, name_of, people};
use crate::{Budget, Fallback, Layer, Limit, Machine, Num, Otherwise, Pattern, Rule};

pub(super) fn compare(sides: &mut Sides<'_>) {
    let (before, after) = (sides.before, sides.after);
    let (one, other) = (&before.policy.layers, &after.policy.layers);
    let layers = pair_by(one, other, |layer| heading(before, layer), |layer| heading(after, layer));
    for at in &layers.removed {
        let layer = &one[*at];
        let difference = Difference::new(Part::Policy, Change::Removed, heading(before, layer));
        sides.add(difference.text(summary(layer)).weaker_if(!layer.is_unwritten()));
    }
    for at in &layers.added {
        let layer = &other[*at];
        let difference = Difference::new(Part::Policy, Change::Added, heading(after, layer));
        sides.add(difference.text(summary(layer)));
    }
    for (at, to) in layers.both {
        compare_layers(sides, &one[at], &other[to]);
    }
    let (one, other) = (gate_of(before, before.policy.ask_gate), gate_of(after, after.policy.ask_gate));
    let gates = Both { before: one, after: other };
    people::compare(sides, None, "question of the tenant's default", gates);
    budgets(sides);
}

/// A layer by its name and the state at which it applies.
fn heading(machine: &Machine, layer: &Layer) -> String {
    match layer.at {
        Some(node) => format!("{} at {}", layer.name, name_of(machine, node)),
        None => layer.name.clone(),
    }
}

fn summary(layer: &Layer) -> String {
    let counts = [("deny", &layer.deny), ("ask", &layer.ask), ("allow", &layer.allow)];
    listed(counts.map(|(word, rules)| format!("{} {word} rules", rules.len())))
}

fn compare_layers(sides: &mut Sides<'_>, before: &Layer, after: &Layer) {
    let name = heading(sides.before, before);
    let changed = |what: &str| Difference::changed(Part::Policy, format!("{what} of {name}"));
    sides.unequal(&before.covers, &after.covers, || {
        changed("capabilities").texts(before.covers.as_str(), after.covers.as_str()).weaker_if(true)
    });
    sides.unequal(&before.except, &after.except, || {
        let weaker = after.except.iter().any(|pattern| !before.except.contains(pattern));
        let texts = (patterns(&before.except), patterns(&after.except));
        changed("exceptions").texts(texts.0, texts.1).weaker_if(weaker)
    });
    sides.unequal(&before.otherwise, &after.otherwise, || {
        let texts = (otherwise(before.otherwise), otherwise(after.otherwise));
        let weaker = strictness(after.otherwise) < strictness(before.otherwise);
        changed("default").texts(texts.0, texts.1).weaker_if(weaker)
    });
    for list in [List::Deny, List::Ask, List::Allow] {
        compare_rules(sides, &name, list, Both { before, after });
    }
    let mut same = before.clone();
    same.covers = after.covers.clone();
    same.except.clone_from(&after.except);
    same.otherwise = after.otherwise;
    same.deny.clone_from(&after.deny);
    same.ask.clone_from(&after.ask);
    same.allow.clone_from(&after.allow);
    same.name.clone_from(&after.name);
    same.at = after.at;
    sides.unequal(&same, after, || changed("other settings").weaker_if(true));
}

fn patterns(list: &[Pattern]) -> String {
    listed(list.iter().map(Pattern::as_str))
}

fn otherwise(otherwise: Otherwise) -> &'static str {
    match otherwise {
        Otherwise::TenantDefault => "the tenant's default",
        Otherwise::Abstain => "nothing",
        Otherwise::Deny | Otherwise::Stated(Fallback::Deny) => "deny",
        Otherwise::Stated(Fallback::Ask) => "ask",
        Otherwise::Stated(Fallback::Allow) => "allow",
    }
}

/// How strict a default is; of the tenant's it is not known.
fn strictness(otherwise: Otherwise) -> u8 {
    match otherwise {
        Otherwise::Deny | Otherwise::Stated(Fallback::Deny) => 4,
        Otherwise::Stated(Fallback::Ask) => 3,
        Otherwise::TenantDefault => 2,
        Otherwise::Stated(Fallback::Allow) => 1,
        Otherwise::Abstain => 0,
    }
}

/// A list of rules, the strictest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Deny,
    Ask,
    Allow,
}

impl List {
    fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }

    fn of(self, layer: &Layer) -> &[Rule] {
        match self {
            Self::Deny => &layer.deny,
            Self::Ask => &layer.ask,
            Self::Allow => &layer.allow,
        }
    }

    /// Whether a rule of this list that is gone, or that was added, weakens the layer.
    fn weaker_by(self, change: Change) -> bool {
        match (self, change) {
            (Self::Deny | Self::Ask, Change::Removed) | (Self::Allow, Change::Added) => true,
            (Self::Deny | Self::Ask, Change::Added | Change::Changed)
            | (Self::Allow, Change::Removed | Change::Changed) => false,
        }
    }
}

fn compare_rules(sides: &mut Sides<'_>, layer: &str, list: List, layers: Both<&Layer>) {
    let (before, after) = (list.of(layers.before), list.of(layers.after));
    let key = |rule: &Rule| rule.pattern.as_str().to_owned();
    let rules = pair_by(before, after, key, key);
    let subject = |rule: &Rule| format!("rule {} {} of {layer}", list.word(), rule.pattern.as_str());
    for at in &rules.removed {
        let difference = Difference::new(Part::Policy, Change::Removed, subject(&before[*at]));
        let denied = layers.after.deny.iter().any(|rule| rule.pattern == before[*at].pattern);
        sides.add(difference.weaker_if(list.weaker_by(Change::Removed) && !denied));
    }
    for at in &rules.added {
        let difference = Difference::new(Part::Policy, Change::Added, subject(&after[*at]));
        sides.add(difference.weaker_if(list.weaker_by(Change::Added)));
        let gate = gate_of(sides.after, after[*at].gate);
        people::compare(sides, None, &subject(&after[*at]), Both { before: None, after: gate });
    }
    if rules.is_reordered() {
        let subject = format!("order of the {} rules of {layer}", list.word());
        sides.add(Difference::changed(Part::Policy, subject).weaker_if(true));
    }
    for (at, to) in rules.both {
        compare_rule(sides, &subject(&before[at]), &before[at], &after[to]);
    }
}

fn compare_rule(sides: &mut Sides<'_>, subject: &str, before: &Rule, after: &Rule) {
    let changed = |what: &str| Difference::changed(Part::Policy, format!("{what} of the {subject}"));
    sides.unequal(&before.limits, &after.limits, || {
        let text = |rule: &Rule| listed(rule.limits.iter().map(limit));
        changed("limits")
            .texts(text(before), text(after))
            .weaker_if(!holds_all(&before.limits, &after.limits))
    });
    sides.unequal(&before.args, &after.args, || {
        let text = |rule: &Rule| rule.args.as_ref().map_or("any".into(), |args| format!("{args:?}"));
        changed("arguments").texts(text(before), text(after)).weaker_if(before.args.is_some())
    });
    let (one, other) = (gate_of(sides.before, before.gate), gate_of(sides.after, after.gate));
    let gates = Both { before: one, after: other };
    people::compare(sides, None, subject, gates);
    let mut same = before.clone();
    same.pattern = after.pattern.clone();
    same.limits.clone_from(&after.limits);
    same.args.clone_from(&after.args);
    same.gate = after.gate;
    sides.unequal(&same, after, || changed("other settings").weaker_if(true));
}

fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Rate { max, window_ms } => format!("{max} in {} s", window_ms / 1_000),
        Limit::Money { max, period } => format!("${max} each {period:?}").to_ascii_lowercase(),
    }
}

/// Whether each limit before is still held by one after.
fn holds_all(before: &[Limit], after: &[Limit]) -> bool {
    before.iter().all(|limit| after.iter().any(|other| holds(*limit, *other)))
}

/// Whether a call that the limit before stops is stopped by the limit after as well.
fn holds(before: Limit, after: Limit) -> bool {
    match (before, after) {
        (Limit::Rate { max, window_ms }, Limit::Rate { max: max_after, window_ms: window_after }) => {
            max_after <= max && window_after >= window_ms
        }
        (Limit::Money { max, period }, Limit::Money { max: max_after, period: period_after }) => {
            max_after <= max && period_after == period
        }
        (Limit::Rate { .. }, Limit::Money { .. }) | (Limit::Money { .. }, Limit::Rate { .. }) => false,
    }
}

fn budgets(sides: &mut Sides<'_>) {
    let (before, after) = (sides.before, sides.after);
    let budgets = pair_by(&before.budgets, &after.budgets, |budget| budget.unit, |budget| budget.unit);
    let subject = |budget: &Budget| format!("budget {:?}", budget.unit).to_ascii_lowercase();
    for at in &budgets.removed {
        let budget = &before.budgets[*at];
        let difference = Difference::new(Part::Policy, Change::Removed, subject(budget));
        sides.add(difference.text(cap(before, budget).to_string()).weaker_if(true));
    }
    for at in &budgets.added {
        let budget = &after.budgets[*at];
        let difference = Difference::new(Part::Policy, Change::Added, subject(budget));
        sides.add(difference.text(cap(after, budget).to_string()));
    }
    for (at, to) in budgets.both {
        let (one, other) = (&before.budgets[at], &after.budgets[to]);
        let changed =
            |what: &str| Difference::changed(Part::Policy, format!("{what} of the {}", subject(one)));
        let caps = (cap(before, one), cap(after, other));
        sides.unequal(&caps.0, &caps.1, || {
            changed("cap").texts(caps.0.to_string(), caps.1.to_string()).weaker_if(caps.1 > caps.0)
        });
        let mut same = one.clone();
        same.cap = other.cap;
        sides.unequal(&same, other, || changed("other settings").weaker_if(true));
    }
}

/// The cap of a budget, in its unit.
fn cap(machine: &Machine, budget: &Budget) -> u64 {
    match budget.cap {
        Num::Literal(value) => value,
        Num::Param(param) => machine.params.get(usize::from(param.0)).map_or(0, |param| param.value),
    }
}
