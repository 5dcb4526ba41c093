//! Random queries of every kind.

use switchward_machine::{Channel, GateKind, Micros, Status, WorkKind};
use switchward_query::{
    ApprovalQuery, CatalogueQuery, CheckLedger, CheckMailToken, CheckRemoved, CheckReplyToken, Compared,
    DeliveryQuery, ExplainCall, ExportQuery, FindLinkedGate, FindUses, FindWebhookSource, FiredTimers,
    GetAnswered, GetApiKey, GetAssistant, GetDefinition, GetEffect, GetExportPart, GetFirstTimer, GetGate,
    GetHistory, GetHistoryBefore, GetMachine, GetMachines, GetMailKeys, GetMailRetention, GetMissed,
    GetNextSession, GetRemains, GetSession, GetShardTenant, GetSourceVersion, GetStarter, GetTenant,
    GetTenantNumbered, GetTenantRecord, GetVersion, GetWebhookSource, GetWork, HasTenant, HistoryFrom,
    ListApiKeys, ListAssistants, ListChanged, ListDefinitions, ListEffects, ListGates, ListPinned, ListReady,
    ListSessions, ListTenantChanges, ListTenantNames, ListTenants, ListTenantsHeld, ListWebhookSources,
    PinDefinitions, PolicyQuery, Query, SessionQuery, ShowGate, ShowSession, TenantQuery, TimeTerm,
    WorkQuery,
};
use switchward_state::delivery::{EffectKind, EffectStatus};
use switchward_state::{Due, Key, RequestId, Scope};

use crate::draw::Draw;
use crate::parts;

/// A query of any kind.
pub(crate) fn query(draw: &mut Draw) -> Query {
    match draw.below(8) {
        0 => Query::Session(session(draw)),
        1 => Query::Approval(approval(draw)),
        2 => Query::Work(work(draw)),
        3 => Query::Delivery(delivery(draw)),
        4 => Query::Policy(policy(draw)),
        5 => Query::Catalogue(catalogue(draw)),
        6 => Query::Tenant(tenant(draw)),
        _ => Query::Export(export(draw)),
    }
}

fn session(draw: &mut Draw) -> SessionQuery {
    let (tenant, session) = (draw.tenant(), draw.session());
    match draw.below(10) {
        0 => SessionQuery::Get(GetSession { tenant, session }),
        1 => SessionQuery::Show(ShowSession { tenant, session }),
        2 => SessionQuery::List(ListSessions {
            tenant,
            status: draw.option(|draw| draw.pick(&Status::ALL)),
            definition: draw.option(Draw::text),
            labels: draw.list(|draw| (draw.text(), draw.text())),
            created: draw.list(time_term),
        }),
        3 => {
            let request = RequestId { id: draw.text(), body: draw.digest() };
            SessionQuery::Answered(GetAnswered { tenant, scope: scope(draw), request })
        }
        4 => SessionQuery::ReplyToken(CheckReplyToken { tenant, token: draw.reply_token() }),
        5 => SessionQuery::Removed(CheckRemoved { tenant, session, came: draw.time() }),
        6 => {
            let from = draw.number();
            let from = if draw.coin() { HistoryFrom::Event(from) } else { HistoryFrom::After(from) };
            SessionQuery::History(GetHistory { tenant, session, from })
        }
        7 => SessionQuery::HistoryBefore(GetHistoryBefore { tenant, session, end: draw.number() }),
        8 => SessionQuery::ListPinned(ListPinned {
            tenant,
            status: draw.pick(&Status::ALL),
            definition: draw.text(),
            version: draw.option(Draw::small),
        }),
        _ => SessionQuery::Machines(GetMachines { tenant, session, runs: draw.list(Draw::run) }),
    }
}

fn time_term(draw: &mut Draw) -> TimeTerm {
    let compared = draw.pick(&[
        Compared::Equal,
        Compared::Less,
        Compared::LessOrEqual,
        Compared::Greater,
        Compared::GreaterOrEqual,
    ]);
    TimeTerm { compared, time: draw.time() }
}

fn scope(draw: &mut Draw) -> Scope {
    match draw.below(4) {
        0 => Scope::Session(draw.session()),
        1 => Scope::Ledger(draw.text()),
        2 => Scope::Catalogue,
        _ => Scope::Shard,
    }
}

fn approval(draw: &mut Draw) -> ApprovalQuery {
    let (tenant, session, gate) = (draw.tenant(), draw.session(), draw.open());
    match draw.below(5) {
        0 => ApprovalQuery::Get(GetGate { tenant, session, gate }),
        1 => ApprovalQuery::Show(ShowGate { tenant, session, gate }),
        2 => {
            let kind = draw.option(|draw| draw.pick(&GateKind::ALL));
            ApprovalQuery::List(ListGates { tenant, kind, session: draw.option(Draw::session) })
        }
        3 => ApprovalQuery::Linked(FindLinkedGate { token: draw.mail_token() }),
        _ => ApprovalQuery::MailToken(CheckMailToken { token: draw.mail_token(), from: draw.text() }),
    }
}

fn work(draw: &mut Draw) -> WorkQuery {
    let (tenant, session) = (draw.tenant(), draw.session());
    match draw.below(3) {
        0 => WorkQuery::Get(GetWork { tenant, session, work: draw.open() }),
        1 => {
            let kinds = draw.list(|draw| draw.pick(&WorkKind::ALL));
            WorkQuery::ListReady(ListReady { tenant, kinds, queues: draw.texts(), max: draw.small() })
        }
        _ => {
            let mut fired = FiredTimers::default();
            for due in draw.list(due) {
                fired.insert(&due);
            }
            WorkQuery::FirstTimer(GetFirstTimer { by: draw.time(), fired })
        }
    }
}

fn due(draw: &mut Draw) -> Due {
    let (tenant, session) = (draw.tenant(), draw.session());
    let key = match draw.below(3) {
        0 => Key::session(tenant, session),
        1 => Key::item(tenant, session, draw.open()),
        _ => Key::outbox(tenant, session, draw.number()),
    };
    Due { at: draw.time(), key }
}

fn delivery(draw: &mut Draw) -> DeliveryQuery {
    let (tenant, session) = (draw.tenant(), draw.session());
    match draw.below(7) {
        0 => DeliveryQuery::Effect(GetEffect { tenant, session, number: draw.number() }),
        1 => DeliveryQuery::ListEffects(ListEffects {
            tenant,
            status: draw.option(|draw| draw.pick(&[EffectStatus::Pending, EffectStatus::DeadLetter])),
            kind: draw.option(effect_kind),
            session: draw.option(Draw::session),
        }),
        2 => DeliveryQuery::ListChanged(ListChanged { tenant, since: draw.time() }),
        3 => DeliveryQuery::Missed(Box::new(GetMissed {
            tenant,
            session,
            endpoint: parts::endpoint(draw),
            since: draw.time(),
            after: draw.number(),
            delivered: draw.coin(),
        })),
        4 => DeliveryQuery::Source(GetWebhookSource { tenant, name: draw.text() }),
        5 => DeliveryQuery::ListSources(ListWebhookSources { tenant, bounds: draw.bounds() }),
        _ => DeliveryQuery::FindSource(FindWebhookSource { tenant: draw.text(), name: draw.text() }),
    }
}

fn effect_kind(draw: &mut Draw) -> EffectKind {
    match draw.below(3) {
        0 => EffectKind::Notice,
        1 => EffectKind::Message(draw.pick(&[Channel::Chat, Channel::Email, Channel::Webhook])),
        _ => EffectKind::Event,
    }
}

fn policy(draw: &mut Draw) -> PolicyQuery {
    let tenant = draw.tenant();
    if draw.coin() {
        return PolicyQuery::Explain(Box::new(ExplainCall {
            tenant,
            session: draw.session(),
            settings: parts::settings(draw),
            capability: draw.text(),
            args: parts::args(draw),
            estimate: draw.option(|draw| Micros(draw.number())),
            now: draw.time(),
            address: draw.option(parts::address),
        }));
    }
    let (rules, estimate) = (draw.list(parts::ledger_rule), Micros(draw.number()));
    PolicyQuery::Ledger(CheckLedger { tenant, rules, estimate, now: draw.time() })
}

fn catalogue(draw: &mut Draw) -> CatalogueQuery {
    let (tenant, name) = (draw.tenant(), draw.text());
    match draw.below(9) {
        0 => CatalogueQuery::Definition(GetDefinition { tenant, name }),
        1 => CatalogueQuery::ListDefinitions(ListDefinitions {
            tenant,
            bounds: draw.bounds(),
            archived: draw.coin(),
        }),
        2 => CatalogueQuery::Version(GetVersion { tenant, name, number: draw.small() }),
        3 => CatalogueQuery::SourceVersion(GetSourceVersion { tenant, name, files: draw.digest() }),
        4 => CatalogueQuery::Machine(GetMachine { tenant, digest: draw.digest() }),
        5 => CatalogueQuery::Assistant(GetAssistant { tenant, name }),
        6 => CatalogueQuery::ListAssistants(ListAssistants { tenant, bounds: draw.bounds() }),
        7 => CatalogueQuery::Uses(FindUses {
            tenant,
            name,
            version: draw.option(Draw::small),
            bounds: draw.bounds(),
        }),
        _ => {
            let machines = draw.list(Draw::digest);
            CatalogueQuery::Pin(PinDefinitions { tenant, machines, definitions: draw.texts() })
        }
    }
}

fn tenant(draw: &mut Draw) -> TenantQuery {
    let tenant = draw.tenant();
    match draw.below(12) {
        0 => TenantQuery::Get(GetTenant { name: draw.text() }),
        1 => TenantQuery::Numbered(GetTenantNumbered { tenant }),
        2 => TenantQuery::Has(HasTenant { tenant }),
        3 => TenantQuery::List(ListTenants { bounds: draw.bounds() }),
        4 => TenantQuery::Names(ListTenantNames {}),
        5 => TenantQuery::Record(GetTenantRecord { tenant }),
        6 => TenantQuery::ShardRecord(GetShardTenant { tenant, bucket: draw.bucket() }),
        7 => TenantQuery::MailRetention(GetMailRetention { tenant }),
        8 => TenantQuery::MailKeys(GetMailKeys { tenant }),
        9 => TenantQuery::ApiKey(GetApiKey { id: draw.text() }),
        10 => TenantQuery::ListApiKeys(ListApiKeys { tenant }),
        _ => TenantQuery::Held(ListTenantsHeld {}),
    }
}

fn export(draw: &mut Draw) -> ExportQuery {
    let (tenant, session) = (draw.tenant(), draw.session());
    match draw.below(5) {
        0 => ExportQuery::ListTenantChanges(ListTenantChanges { tenant, from: draw.number() }),
        1 => ExportQuery::NextSession(GetNextSession { tenant, bucket: draw.bucket(), after: session }),
        2 => ExportQuery::Remains(GetRemains { tenant, session }),
        3 => ExportQuery::Starter(GetStarter { tenant, session }),
        _ => ExportQuery::Part(GetExportPart { tenant, session, row: draw.number() }),
    }
}
