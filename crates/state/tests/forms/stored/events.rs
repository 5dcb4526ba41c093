//! Events of assistants, webhooks, deliveries, nested runs, ledgers and the catalogue.

use super::*;

/// Additions of assistants.
pub(super) fn assistants() -> Vec<Event> {
    let due = Deferral::Chosen(vec!["refund".into()]);
    vec![
        Event::Session(SessionEvent::Assisted { assistant: assisted().unwrap() }),
        Event::Run(RunEvent::Deferred { run: RunId(0), due, requester: None }),
        Event::Catalogue(CatalogueEvent::Assistants(AssistantFact::Put {
            assistant: assistant(),
            machine: asking(),
        })),
        Event::Catalogue(CatalogueEvent::Assistants(AssistantFact::Deleted { name: "support".into() })),
    ]
}

/// Additions of webhooks.
pub(super) fn webhook_sources() -> Vec<Event> {
    vec![
        Event::Delivery(DeliveryEvent::WebhookSources(WebhookSourceFact::Put { source: webhook_source() })),
        Event::Delivery(DeliveryEvent::WebhookSources(WebhookSourceFact::Deleted { name: "shop".into() })),
    ]
}

/// Events of an effect that cannot be delivered.
pub(super) fn dead_letters() -> Vec<Event> {
    let (number, code) = (9, "no_such_host".parse::<FailureCode>().expect("a code"));
    let detail = DeliveryDetail::quote("mail.example.com is unknown");
    let flows = [
        Event::Delivery(DeliveryEvent::Failed { number, code, detail }),
        Event::Delivery(DeliveryEvent::Retried { number }),
        Event::Delivery(DeliveryEvent::Dismissed { number }),
    ];
    flows.to_vec()
}

/// Nested runs.
pub(super) fn children() -> Vec<Event> {
    let (run, child, outcome) = (RunId(1), RunId(2), Outcome::Failed);
    let (machine, definition) = (digest(), "shipping".to_owned());
    let flows = [
        Event::Run(RunEvent::CalleesPinned { callees: vec![pinned()] }),
        Event::Run(RunEvent::ChildrenPlanned { run, count: 1 }),
        Event::Run(RunEvent::ChildCreated {
            run: child,
            machine,
            definition,
            version: 2,
            parent: parent(),
            frame: None,
        }),
        Event::Run(RunEvent::ChildCreated {
            run: child,
            machine,
            definition: "review".into(),
            version: 2,
            parent: parent(),
            frame: Some(Frame { label: "check.legal".into() }),
        }),
        Event::Run(RunEvent::ChildEnded { run, index: 0, child, outcome }),
        Event::Run(RunEvent::ChildrenJoined { run }),
        Event::Run(RunEvent::Wrote {
            run,
            key: "amount".into(),
            value: Json(serde_json::json!(1)),
            by: Writer::Child,
            who: None,
        }),
    ];
    flows.into_iter().collect()
}

pub(super) fn shared() -> Vec<Event> {
    let (call, estimate, at) = (digest(), Micros(5), Time(3));
    let name = || "deploy-gate".to_owned();
    vec![
        Event::Policy(PolicyEvent::LedgerReserved { call, rules: rules(), estimate }),
        Event::Policy(PolicyEvent::LedgerConfirmed { call, rules: rules(), estimate, at }),
        Event::Policy(PolicyEvent::LedgerSettled { call: Some(call), rules: rules(), cost: estimate, at }),
        Event::Policy(PolicyEvent::Swept(vec![1, 2, 3])),
        Event::Catalogue(CatalogueEvent::MachineInstalled { machine: machine() }),
        Event::Catalogue(CatalogueEvent::TenantCreated(tenant())),
        Event::Catalogue(CatalogueEvent::TenantChanged("acme".into(), Settings::default())),
        Event::Catalogue(CatalogueEvent::KeyCreated(api_key())),
        Event::Catalogue(CatalogueEvent::KeyRevoked("0011".into())),
        Event::Catalogue(CatalogueEvent::VersionDeployed {
            name: name(),
            format: "checkpoint".into(),
            version: version(),
            machine: machine(),
        }),
        Event::Catalogue(CatalogueEvent::Versions(VersionFact::Activated { name: name(), number: 1 })),
        Event::Catalogue(CatalogueEvent::Versions(VersionFact::Retired {
            name: name(),
            number: 1,
            by: "kim".into(),
        })),
        Event::Catalogue(CatalogueEvent::Versions(VersionFact::Archived { name: name(), by: "kim".into() })),
        Event::Catalogue(CatalogueEvent::Versions(VersionFact::Unarchived { name: name() })),
        Event::Catalogue(CatalogueEvent::Versions(VersionFact::Deleted {
            name: name(),
            versions: vec![DeletedVersion { number: 1, source: digest() }],
            machines: vec![digest()],
        })),
        Event::Catalogue(CatalogueEvent::Versions(VersionFact::DefinitionDeleted {
            name: name(),
            by: "kim".into(),
        })),
    ]
}
