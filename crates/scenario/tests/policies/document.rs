//! Randomly drawn documents, and what each decides by itself.

use serde_json::{Map, Value, json};
use switchward_state::catalogue::DefaultEffect;
use switchward_testkit::Rng;

const PATTERNS: [&str; 9] =
    ["bash", "bash:rm", "mcp:*", "mcp:fs:*", "mcp:fs:read", "mcp:fs:write", "other", "resend-email", "*"];
/// The capabilities that are called.
pub(crate) const CALLS: [&str; 8] = [
    "bash",
    "bash:rm",
    "mcp:fs:read",
    "mcp:fs:write",
    "mcp:web:get",
    "other",
    "something.else",
    "resend-email",
];
const EFFECTS: [&str; 3] = ["allow", "ask", "deny"];

/// A layer's decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Says {
    Allow,
    Ask,
    Deny,
}

/// A policy document, as its author writes it.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) text: Value,
}

/// A tenant's default, or `None`.
pub(crate) fn default_effect(rng: &mut Rng) -> DefaultEffect {
    *rng.pick(&[DefaultEffect::Allow, DefaultEffect::Allow, DefaultEffect::Ask, DefaultEffect::Deny])
}

/// The decision of a default.
pub(crate) fn of_default(effect: DefaultEffect) -> Says {
    match effect {
        DefaultEffect::Allow => Says::Allow,
        DefaultEffect::Ask => Says::Ask,
        DefaultEffect::Deny => Says::Deny,
    }
}

impl Document {
    /// With caps and mail limits if `whole` is set, and then for sessions of every role or of the agent's.
    pub(crate) fn draw(rng: &mut Rng, name: &str, whole: bool) -> Self {
        let mut text = Map::new();
        text.insert("policy".into(), json!(name));
        for list in ["deny", "ask", "allow"] {
            let count = rng.between(0, 3);
            let rules: Vec<Value> = (0..count).map(|_| rule(rng, list)).collect();
            if !rules.is_empty() {
                text.insert(list.into(), json!(rules));
            }
        }
        if rng.once_in(2) {
            text.insert("default_effect".into(), json!(rng.pick(&EFFECTS)));
        }
        let roles: &[&str] = if whole { &["", "agent"] } else { &["", "", "agent", "reviewer"] };
        let role = *rng.pick(roles);
        if !role.is_empty() {
            text.insert("role".into(), json!(role));
        }
        if whole && rng.once_in(3) {
            text.insert("session_budget_usd".into(), json!(rng.between(1, 3)));
        }
        if whole && rng.once_in(2) {
            let mut mail = json!({ "allowed_to": ["*@ours.example"] });
            if !rng.once_in(4) {
                mail["max_emails_per_session"] = json!(rng.between(0, 2));
            }
            text.insert("email_config".into(), mail);
        }
        Self { name: name.to_owned(), text: Value::Object(text) }
    }

    /// The same without a role.
    pub(crate) fn of_every_role(mut self) -> Self {
        self.text.as_object_mut().unwrap().remove("role");
        self
    }

    /// The same without limits.
    pub(crate) fn without_limits(mut self) -> Self {
        for list in ["ask", "allow"] {
            for rule in self.text.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                *rule = json!({ "capability": rule["capability"] });
            }
        }
        self.text.as_object_mut().unwrap().remove("default_effect");
        self
    }

    /// A process with the three lists as its own policy.
    pub(crate) fn in_checkpoint(&self, process: &str) -> String {
        let mut process: Value = serde_json::from_str(process).unwrap();
        let mut policy = json!({ "role": "agent" });
        for list in ["deny", "ask", "allow"] {
            if let Some(rules) = self.text.get(list) {
                policy[list] = rules.clone();
            }
        }
        process["policy"] = policy;
        process.to_string()
    }

    /// Returns true if it has a rule.
    pub(crate) fn is_written(&self) -> bool {
        ["deny", "ask", "allow"].iter().any(|list| self.text.get(list).is_some())
    }

    /// Returns true if it applies to sessions of this role.
    pub(crate) fn speaks_to(&self, role: &str) -> bool {
        self.text.get("role").is_none_or(|wanted| wanted == role)
    }

    /// The role and the capability of each rule.
    pub(crate) fn counters(&self) -> Vec<(String, String)> {
        let role = self.text.get("role").and_then(Value::as_str).unwrap_or_default();
        let lists = ["ask", "allow"].into_iter().filter_map(|list| self.text.get(list)?.as_array());
        lists
            .flatten()
            .map(|rule| (role.to_owned(), rule["capability"].as_str().unwrap().to_owned()))
            .collect()
    }

    /// Its decision by itself, without limits.
    pub(crate) fn says(&self, capability: &str, default_effect: DefaultEffect) -> Says {
        for (list, says) in [("deny", Says::Deny), ("ask", Says::Ask), ("allow", Says::Allow)] {
            let rules = self.text.get(list).and_then(Value::as_array).into_iter().flatten();
            let mut patterns = rules.map(|rule| rule["capability"].as_str().unwrap());
            if patterns.any(|pattern| covers(pattern, capability)) {
                return says;
            }
        }
        match self.text.get("default_effect").and_then(Value::as_str) {
            Some("allow") => Says::Allow,
            Some("ask") => Says::Ask,
            Some(_) => Says::Deny,
            None => of_default(default_effect),
        }
    }
}

fn rule(rng: &mut Rng, list: &str) -> Value {
    let mut rule = json!({ "capability": rng.pick(&PATTERNS) });
    if list == "deny" {
        return rule;
    }
    if rng.once_in(2) {
        let window = *rng.pick(&[60, 3_600]);
        rule["rate_limit"] = json!({ "max_calls": rng.between(1, 4), "window_seconds": window });
    }
    if rng.once_in(2) {
        let period = *rng.pick(&["hourly", "daily"]);
        rule["budget_limit"] = json!({ "max_usd": rng.between(1, 4), "period": period });
    }
    rule
}

/// As the page says: a star matches any suffix, and a bare name matches everything below it.
fn covers(pattern: &str, capability: &str) -> bool {
    if let Some(stem) = pattern.strip_suffix('*') {
        return capability.strip_prefix(stem).is_some_and(|rest| !rest.is_empty());
    }
    let below = |rest: &str| rest.starts_with(':') || rest.starts_with('.');
    let family = !pattern.contains([':', '.']) && capability.strip_prefix(pattern).is_some_and(below);
    pattern == capability || family
}
