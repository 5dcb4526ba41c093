//! Replies of what is the tenant's own, and of gates and effects, for all tests that write replies.

use switchward_machine::{Channel, Decision, Digest, GateKind, Micros, OpenId, SessionId, TenantId, Time};
use switchward_state::approval::{GateEnd, GateEnding, GateSummary, RequestSubject, Via, VoteSummary};
use switchward_state::catalogue::{
    AssistantSummary, ClusterChange, ClusterMap, Definition, Directory, DirectoryEntry, Finding,
    FindingSeverity, KeySummary, Retired, Role, Server, ServerState, Settings, Tenant, VersionSummary,
};
use switchward_state::delivery::{
    Correlation, DeliveryDetail, DeliveryFailure, DisabledReason, EffectKind, EffectSummary, EndpointSummary,
    SecretsSummary, SourceSummary, TextSource, WebhookSourceKind,
};
use switchward_state::policy::TenantPolicy;
use switchward_state::session::{Meters, Retention, RetentionRule};
use switchward_state::{Level, Levels, Loaded, Reply};

const DIGEST: Digest = Digest([2; 32]);

fn tenant() -> Reply {
    Reply::Tenant(Box::new(Tenant {
        id: TenantId(1),
        name: "acme".into(),
        display_name: "Acme".into(),
        settings: Settings::default(),
        created: Time(1),
        updated: Time(2),
        deleted: None,
    }))
}

fn key() -> Reply {
    Reply::Key(Box::new(KeySummary {
        id: "0011".into(),
        role: Role::Agent,
        subject: "kim".into(),
        display_name: "Kim's key".into(),
        created: Time(1),
        expires: Some(Time(9)),
        revoked: Some(Time(8)),
    }))
}

fn version() -> Reply {
    let retired = Retired { number: 1, at: Time(4), by: "kim".into() };
    let summary = VersionSummary {
        definition: "deploy-gate".into(),
        number: 1,
        source: DIGEST,
        machine: Digest([3; 32]),
        format: "checkpoint".into(),
        active: true,
        created: Time(3),
        by: "kim".into(),
        retired: Some(retired),
    };
    let finding = Finding {
        code: "SW1204".into(),
        severity: FindingSeverity::Warning,
        file: "gate.yaml".into(),
        line: 3,
        column: 5,
        message: "`other` is not in the catalogue".into(),
        allowed: vec!["one".into()],
        nearest: Some("one".into()),
        hint: Some("deploy it".into()),
        lacking: Some("other".into()),
        archived: None,
    };
    Reply::Version {
        name: "deploy-gate".into(),
        number: 1,
        created: true,
        summary: Box::new(summary),
        findings: vec![finding],
    }
}

fn definition() -> Reply {
    Reply::Definition(Box::new(Definition {
        name: "deploy-gate".into(),
        format: "checkpoint".into(),
        active: Some(2),
        latest: 3,
        created: Time(1),
        updated: Time(2),
        policies: vec!["limits".into()],
        retired: vec![Retired { number: 1, at: Time(4), by: "kim".into() }],
        archived: None,
        deleted: None,
    }))
}

fn policy() -> Reply {
    Reply::Policy(Box::new(TenantPolicy {
        name: "limits".into(),
        version: 2,
        machine: DIGEST,
        by: "kim".into(),
        at: Time(3),
    }))
}

fn assistant() -> Reply {
    Reply::Assistant(AssistantSummary { created: Time(1), updated: Time(2), etag: "0123456789abcdef".into() })
}

fn secrets() -> SecretsSummary {
    SecretsSummary { newest: Some(DIGEST), old_until: Some(Time(9)) }
}

fn endpoint() -> Reply {
    Reply::Endpoint(Box::new(EndpointSummary {
        id: "orders".into(),
        url: "https://example.com/hook".into(),
        filters: vec!["session.*".into()],
        disabled: Some(DisabledReason::Gone),
        created: Time(1),
        etag: "0123456789abcdef".into(),
        secrets: secrets(),
    }))
}

fn source() -> Reply {
    let correlation = Correlation {
        session: TextSource::Pointer("/order/id".into()),
        event_key: TextSource::Fixed("paid".into()),
        data: "/order".into(),
        known_ms: Some(60_000),
    };
    Reply::Source(Box::new(SourceSummary {
        name: "shop".into(),
        kind: WebhookSourceKind::Github,
        correlation,
        created: Time(1),
        updated: Time(2),
        etag: "0123456789abcdef".into(),
        secrets: secrets(),
    }))
}

fn effect() -> Reply {
    let wrong = |at| DeliveryFailure {
        code: "smtp_refused".parse().expect("a code"),
        detail: DeliveryDetail::quote("550 no"),
        at: Time(at),
    };
    let effect = EffectSummary {
        number: 7,
        kind: EffectKind::Message(Channel::Email),
        node: "ready".into(),
        gate: Some(OpenId(6)),
        to: "kim@example.com".into(),
        since: Time(3),
        next: Time(5),
        round: 1,
        attempts: 2,
        dead_letter: Some(wrong(4)),
        last: Some(wrong(3)),
    };
    Reply::Effect { session: SessionId([1; 16]), sequence: 4, effect: Some(Box::new(effect)) }
}

fn metered() -> Reply {
    let meters = Meters { usd_micros: 1, reserved_micros: 2, tokens: 3, mails: 4 };
    let (usd_cap, mail_cap) = (Some(Micros(5).0), Some(6));
    Reply::Metered { session: SessionId([1; 16]), sequence: 4, meters, usd_cap, mail_cap }
}

fn removed() -> Reply {
    Reply::Removed { at: Time(4) }
}

fn cluster() -> Reply {
    let server = Server {
        number: 2,
        folder: [2; 16],
        address: "10.0.0.2:7001".into(),
        state: ServerState::Active,
        levels: Levels::OF_PROGRAM,
        joined: Time(5),
        replaced_by: None,
    };
    let map = ClusterMap::founded([1; 16], 1, 2, Level(1), 3).changed(&server);
    Reply::Cluster(Box::new(ClusterChange { server, map }))
}

fn directory() -> Reply {
    let members = vec!["kim@example.com".into()];
    let entry = DirectoryEntry { name: "kim".into(), members, ..DirectoryEntry::default() };
    let audience = vec!["kim".into()];
    Reply::Directory(Box::new(Directory { entries: vec![entry], audience, ..Directory::default() }))
}

fn retention() -> Reply {
    let rule = RetentionRule { sessions_ms: Some(9), ..RetentionRule::default() };
    Reply::Retention(Retention { rules: vec![rule] })
}

fn leased() -> Reply {
    Reply::Leased { item: OpenId(10), fence: 2, until: Time(9), loaded: Loaded::default() }
}

/// One of each.
pub(crate) fn all() -> Vec<Reply> {
    let of_tenant = [tenant(), key(), version(), definition(), policy(), assistant(), endpoint(), source()];
    let others = [effect(), metered(), gate(), removed(), leased(), cluster(), directory(), retention()];
    of_tenant.into_iter().chain(others).collect()
}

fn gate() -> Reply {
    let how = GateEnd::Decided { decision: Decision::Approve, by: "kim".into(), via: Via::Rpc };
    let summary = GateSummary {
        kind: GateKind::Approval,
        state: "ready".into(),
        definition: "deploy-gate".into(),
        version: 2,
        capability: Some("bash".into()),
        answer: Some("yes".into()),
        shown: Some(DIGEST),
        requester: "agent".into(),
        at: Time(1),
        subject: Some(RequestSubject::Written("Deploy?".into())),
        to: Some(vec!["kim@example.com".into()]),
        open: true,
        due: Some(Time(8)),
        needed: 2,
        votes: vec![VoteSummary { by: "lee".into(), at: Time(2), via: Via::Mail }],
        ending: Some(GateEnding { at: Time(3), how }),
    };
    Reply::Gate { gate: OpenId(6), sequence: 4, summary: Some(Box::new(summary)) }
}
