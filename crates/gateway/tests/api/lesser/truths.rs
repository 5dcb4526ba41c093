//! Invariants that hold whatever lesser keys have done.

use switchward_api::v1;

use super::fields::{Pool, STRANGER};
use super::site::{DEFINITIONS, FORBIDDEN, Site};
use crate::harness::Harness;

/// Returns the current etags of the tenant and its directory.
pub(super) async fn etags(harness: &Harness) -> [String; 2] {
    let tenant = v1::GetTenantRequest { name: "-".into(), ..Default::default() };
    let tenant: v1::GetTenantResponse = harness.ask("admin", "GetTenant", &tenant).await;
    let directory = v1::GetDirectoryRequest::default();
    let directory: v1::GetDirectoryResponse = harness.ask("admin", "GetDirectory", &directory).await;
    [tenant.tenant.expect("a tenant").etag, directory.directory.expect("a directory").etag]
}

impl Site {
    /// Checks that lesser keys have decided, weakened and triggered nothing.
    pub(super) async fn assert_unweakened(&self, pool: &Pool) {
        assert_eq!(etags(&self.harness).await, self.etags, "the tenant or its directory was changed");
        for definition in DEFINITIONS {
            let name = definition.to_owned();
            let request = v1::GetDefinitionRequest { name, ..Default::default() };
            let reply: v1::GetDefinitionResponse = self.harness.ask("admin", "GetDefinition", &request).await;
            let active = reply.definition.expect("a definition").active_version;
            let wanted = if definition == "release" { 2 } else { 1 };
            assert_eq!(active, wanted, "{definition}");
        }
        for name in &pool.sessions {
            let session = self.harness.look(name).await;
            self.assert_session(&session).await;
        }
    }

    async fn assert_session(&self, session: &v1::Session) {
        let (name, definition) = (&session.name, session.definition.as_str());
        assert!(
            session.at.iter().all(|state| state != FORBIDDEN),
            "{name} of {definition} reached a forbidden state"
        );
        if definition.ends_with("/release") {
            assert_eq!(session.version, 2, "{name} runs an older version");
        }
        let sources = [
            session.audience_source(),
            session.quorum_source(),
            session.reminders_source(),
            session.escalation_source(),
        ];
        assert!(
            !sources.contains(&v1::SettingSource::Start),
            "the start of {name} chose who decides: {sources:?}"
        );
        assert!(!session.without_policy, "{name} runs without its policy");
        let filter = format!("session=\"{name}\"");
        let request = v1::ListGatesRequest { filter, ..Default::default() };
        let reply: v1::ListGatesResponse = self.harness.ask("admin", "ListGates", &request).await;
        for gate in reply.gates {
            assert_ne!(gate.status(), v1::GateStatus::Decided, "{} was decided", gate.name);
            let asked = gate.approvers.iter().chain(&gate.notified);
            assert!(asked.clone().all(|one| one != STRANGER), "{} asks {STRANGER}", gate.name);
            assert!(asked.clone().all(|one| !one.starts_with("agent@")), "{} asks the agent", gate.name);
        }
    }

    /// Approves the payment of the run's first session if it is still open: the amount used is the amount shown.
    pub(super) async fn assert_used_as_shown(&self, pool: &Pool) {
        let session = self.harness.look(&pool.sessions[0]).await;
        let Some(open) = session.waiting_on.first() else { return };
        let get = v1::GetGateRequest { name: open.name.clone(), ..Default::default() };
        let shown: v1::GetGateResponse = self.harness.ask("admin", "GetGate", &get).await;
        let gate = shown.gate.expect("a gate");
        let decide = v1::DecideGateRequest {
            name: gate.name.clone(),
            decision: v1::GateDecision::Approve.into(),
            ..Default::default()
        };
        let boss = &self.boss;
        let decided: Result<v1::DecideGateResponse, _> =
            self.harness.node.line.ask(boss, "DecideGate", &decide).await;
        decided.unwrap_or_else(|status| panic!("{}: {status:?}", gate.name));
        let session = self.harness.look(&pool.sessions[0]).await;
        let data = session.data.expect("data");
        let paid = data.fields.get("paid").and_then(|value| value.kind.clone());
        let Some(prost_types::value::Kind::StringValue(paid)) = paid else { panic!("{paid:?}") };
        assert!(
            gate.text.contains(&format!("Pay {paid} to")),
            "{paid} was paid, but the approval showed {}",
            gate.text
        );
    }
}
