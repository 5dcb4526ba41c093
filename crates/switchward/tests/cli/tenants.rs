//! Two tenants of one server: they type the same names, keys and request ids, and see no data of each other.

use serde_json::{Value, json};

use crate::support::{Dev, Ended, deploy_gate};

const CALL: [&str; 5] =
    ["authorize", "release-42", "mcp:filesystem:delete_file", "--args", r#"{"path":"/srv/releases/41"}"#];

/// The callers of one tenant.
struct Tenant<'a> {
    dev: &'a Dev,
    name: &'static str,
    agent: String,
    approver: String,
    admin: String,
}

impl<'a> Tenant<'a> {
    /// The tenant that the server starts with, and one beside it. Both have the deploy gate.
    fn two(dev: &'a Dev) -> [Self; 2] {
        let (agent, admin) = (text(&dev.ready["agent_key"]), text(&dev.ready["person_key"]));
        let made = dev.post("TenantService/CreateTenant", &admin, &json!({ "tenantId": "globex" }));
        let first = Self { dev, name: "tenants/dev", agent, approver: admin.clone(), admin };
        let admin = text(&made["adminSecret"]);
        let key = |role: &str| {
            text(&dev.json(&["keys", "create", role, "--subject", role, "--api-key", &admin])["secret"])
        };
        let (agent, approver) = (key("agent"), key("approver"));
        let second = Self { dev, name: "tenants/globex", agent, approver, admin };
        for tenant in [&first, &second] {
            let deployed = tenant.admin(&["deploy", &deploy_gate()]).with_code(0).json();
            assert_eq!((&deployed["created"], &deployed["version"]["number"]), (&json!(true), &json!(1)));
        }
        [first, second]
    }

    fn with_key(&self, key: &str, words: &[&str]) -> Ended {
        self.dev.run(&[words, &["--api-key", key, "-o", "json"]].concat())
    }

    fn agent(&self, words: &[&str]) -> Ended {
        self.with_key(&self.agent, words)
    }

    fn approver(&self, words: &[&str]) -> Ended {
        self.with_key(&self.approver, words)
    }

    fn admin(&self, words: &[&str]) -> Ended {
        self.with_key(&self.admin, words)
    }

    /// Starts the session that both tenants have: its id.
    fn release(&self) -> String {
        let start = ["start", "deploy-gate", "--key", "release-42", "--request-id", "start"];
        let session = self.agent(&start).with_code(0).json()["session"].clone();
        id_of(&self.own(&session["name"])).to_owned()
    }

    /// Asks for what a person decides: the gate's id.
    fn asked(&self) -> String {
        id_of(&self.own(&self.agent(&CALL).with_code(7).json()["gate"])).to_owned()
    }

    /// A resource name, which is the tenant's own.
    #[track_caller]
    fn own(&self, name: &Value) -> String {
        let name = text(name);
        assert!(name.starts_with(&format!("{}/", self.name)), "{} is shown {name}", self.name);
        name
    }

    #[track_caller]
    fn is_at(&self, state: &str) {
        let session = self.agent(&["get", "release-42"]).with_code(0).json()["session"].clone();
        assert_eq!(session["at"], json!([state]), "{}", self.name);
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn id_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

#[test]
fn two_tenants_play_the_same_gate_side_by_side() {
    let dev = Dev::start();
    let [first, second] = Tenant::two(&dev);
    assert_ne!(first.release(), second.release());

    for _ in 0..50 {
        first.agent(&["authorize", "release-42", "bash"]).with_code(0);
    }
    first.agent(&["authorize", "release-42", "bash"]).with_code(6);
    let left = second.agent(&["authorize", "release-42", "bash"]).with_code(0).json();
    assert_eq!(left["remaining"], json!({ "calls": "49" }), "the first tenant's calls are not the second's");

    let gates = [first.asked(), second.asked()];
    second.approver(&["decide", &gates[1], "approve"]).with_code(0);
    first.agent(&CALL).with_code(7);
    let granted = second.agent(&CALL).with_code(0).json();
    assert_eq!(granted["grantUsed"], true);
    first.approver(&["decide", &gates[0], "refuse"]).with_code(0);

    second.agent(&["answer", "release-42", "yes", "--request-id", "answer-1"]).with_code(0);
    first.is_at("env-check");
    second.is_at("migration-check");
    let ended = first.agent(&["answer", "release-42", "no", "--request-id", "answer-1"]).with_code(0).json();
    assert_eq!(ended["session"]["status"], "SESSION_STATUS_BLOCKED");
    second.is_at("migration-check");
    for answer in ["n/a", "yes"] {
        second.agent(&["answer", "release-42", answer]).with_code(0);
    }
    for (tenant, last) in [(&first, "session.blocked"), (&second, "session.completed")] {
        let watched = tenant.agent(&["watch", "release-42"]).with_code(0).lines();
        assert_eq!(watched.last().map(|event| &event["type"]), Some(&json!(last)), "{}", tenant.name);
    }
}

#[test]
fn lists_show_nothing_of_another_tenant() {
    let dev = Dev::start();
    let [first, second] = Tenant::two(&dev);
    for key in ["release-43", "release-44"] {
        first.agent(&["start", "deploy-gate", "--key", key]).with_code(0);
    }
    for tenant in [&first, &second] {
        tenant.release();
        tenant.asked();
        tenant.agent(&["authorize", "release-42", "bash"]).with_code(0);
    }
    for (tenant, sessions, keys) in [(&first, 3, 3), (&second, 1, 3)] {
        for (words, field, count) in [
            (&["definitions"][..], "definitions", 1),
            (&["versions", "deploy-gate"], "versions", 1),
            (&["sessions"], "sessions", sessions),
            (&["sessions", "--filter", "definition=\"deploy-gate\""], "sessions", sessions),
            (&["gates"], "gates", 1),
            (&["keys"], "apiKeys", keys),
        ] {
            let list = tenant.admin(&[&["list"], words].concat()).with_code(0).json();
            let entries = list[field].as_array().unwrap_or_else(|| panic!("{words:?}: {list}"));
            assert_eq!(entries.len(), count, "{}: {words:?}: {list}", tenant.name);
            for entry in entries {
                tenant.own(&entry["name"]);
            }
        }
        let decisions = tenant.admin(&["list", "decisions", "release-42"]).with_code(0).json();
        assert_eq!(decisions["decisions"].as_array().map(Vec::len), Some(2), "{decisions}");
    }
}

/// An id that never was, as long as one that is.
fn never(id: &str) -> String {
    let (head, last) = id.split_at(id.len() - 1);
    format!("{head}{}", if last == "0" { "1" } else { "0" })
}

#[test]
fn the_ids_of_another_tenant_are_answered_like_ids_that_never_existed() {
    let dev = Dev::start();
    let [first, second] = Tenant::two(&dev);
    for (tenant, other) in [(&first, &second), (&second, &first)] {
        let (session, gate) = (other.release(), other.asked());
        let history = || other.agent(&["list", "events", "release-42"]).with_code(0).json();
        let before = history();
        let key = other.name.replace('/', "-");
        other.agent(&["start", "deploy-gate", "--key", &key]).with_code(0);
        for (id, unknown) in [
            (session.clone(), never(&session)),
            (
                format!("{}/sessions/{session}", other.name),
                format!("{}/sessions/{}", other.name, never(&session)),
            ),
            (key.clone(), never(&key)),
        ] {
            for words in [
                &["get", "ID"][..],
                &["answer", "ID", "yes"],
                &["authorize", "ID", "bash"],
                &["explain", "ID", "bash"],
                &["report", "ID", "--cost-usd", "1"],
                &["raise", "ID", "--cost-usd", "5"],
                &["pause", "ID"],
                &["resume", "ID"],
                &["cancel", "ID", "--yes"],
                &["watch", "ID"],
                &["list", "events", "ID"],
                &["list", "decisions", "ID"],
            ] {
                same_refusal(tenant, words, &id, &unknown);
            }
        }
        for words in [&["get", "ID"][..], &["decide", "ID", "approve"]] {
            same_refusal(tenant, words, &gate, &never(&gate));
        }
        assert_eq!(history(), before, "nothing came of it");
    }
}

/// Runs the same command for both ids, which must be refused with the same message.
#[track_caller]
fn same_refusal(tenant: &Tenant<'_>, words: &[&str], id: &str, unknown: &str) {
    let refusals = [id, unknown].map(|name| {
        let words: Vec<&str> = words.iter().map(|word| if *word == "ID" { name } else { *word }).collect();
        let refused = tenant.admin(&words).with_code(3);
        assert_eq!(refused.out, "", "{words:?}");
        refused.err.replace(name, "ID")
    });
    assert_eq!(refusals[0], refusals[1], "{words:?}");
}
