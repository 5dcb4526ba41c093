//! What a definition may ask of a running server: the table of addresses, and the hosts of single tenants.

use prost_types::{Struct, value::Kind};
use serde_json::json;
use std::time::Duration;
use switchward_api::v1::{
    self, definition_service_client::DefinitionServiceClient, session_service_client::SessionServiceClient,
    watch_session_response::Update,
};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::private;

/// The addresses that every client must refuse, and some that pass.
const TABLE: &str = include_str!("../../../delivery/tests/addresses.tsv");
/// How long a session may take to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// The key of a second tenant.
pub(crate) const OTHER_KEY: &str =
    "swk_fedcba9876543210_fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";

/// What a file says for each of the rules that the table has.
const RULES: [(&str, &str); 4] = [
    ("strict", ""),
    ("http", "[delivery]\nallow_http = true\n"),
    ("dev", "[delivery]\nallow_http = true\nallow_loopback = true\n"),
    (
        "listed",
        "[delivery]\nallowed_hosts = [\"example.org\", \"*.example.net\", \"8.8.8.8\", \"10.0.0.1\"]\n",
    ),
];

/// A request to the address that the session is started with; the session ends with any outcome.
fn definition() -> String {
    let request = json!({ "method": "GET", "url": "{gathered_data.url}", "into": "answer" });
    let output =
        |name: &str| json!({ "name": name, "type": "output", "target": "conversation", "template": name });
    json!({
        "name": "ask",
        "states": [
            { "name": "push", "type": "logic", "on_error": "port",
              "operations": [{ "type": "http_request", "config": request }] },
            output("fine"),
            output("sorry"),
        ],
        "transitions": [
            { "from": "push", "to": "fine", "guards": [{ "type": "always" }] },
            { "from": "push", "port": "error", "to": "sorry" },
        ],
    })
    .to_string()
}

/// A tenant of a running server.
struct Tenant {
    channel: Channel,
    key: &'static str,
}

impl Tenant {
    /// With the definition deployed.
    async fn of(server: &Running, key: &'static str) -> Self {
        let endpoint = Endpoint::from_shared(server.address.clone()).expect("an address");
        let tenant = Self { channel: endpoint.connect().await.expect("the server listens"), key };
        let file = v1::DefinitionFile { path: "ask.json".into(), content: definition().into() };
        let request = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
        let mut definitions = DefinitionServiceClient::new(tenant.channel.clone());
        definitions.deploy_definition(tenant.with_key(request)).await.expect("it is deployed");
        tenant
    }

    fn with_key<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let header = format!("Bearer {}", self.key).parse().expect("a header");
        request.metadata_mut().insert("authorization", header);
        request
    }

    fn sessions(&self) -> SessionServiceClient<Channel> {
        SessionServiceClient::new(self.channel.clone())
    }

    /// Starts a session that sends a request to this address.
    async fn asks(&self, url: &str) -> String {
        let url = prost_types::Value { kind: Some(Kind::StringValue(url.to_owned())) };
        let input = Some(Struct { fields: [("url".to_owned(), url)].into() });
        let start = v1::StartSessionRequest { definition: "ask".into(), input, ..Default::default() };
        let started = self.sessions().start_session(self.with_key(start)).await.expect("it starts");
        started.into_inner().session.expect("a session").name
    }

    /// The outcome: the reason before the colon in the `wrong` field of the session's events.
    async fn outcome(&self, session: String) -> String {
        let watch = v1::WatchSessionRequest { name: session, from_sequence: 0 };
        let mut stream =
            self.sessions().watch_session(self.with_key(watch)).await.expect("a stream").into_inner();
        let mut outcome = String::new();
        let read = async {
            while let Some(next) = stream.message().await.expect("no refusal") {
                let Some(Update::Event(event)) = next.update else { continue };
                let wrong = event.data.as_ref().and_then(|data| data.fields.get("wrong"));
                if let Some(Kind::StringValue(wrong)) = wrong.and_then(|wrong| wrong.kind.as_ref()) {
                    outcome = wrong.split(':').next().unwrap_or_default().to_owned();
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("it ends in time");
        outcome
    }
}

/// A server whose file says this of delivery.
pub(crate) fn server(site: &Site, delivery: &str) -> Running {
    private(site.path("other.key"), OTHER_KEY);
    let tenant = |name: &str, key: &str| {
        format!("[[tenants]]\nname = {name:?}\nadmin_key_file = {:?}\n", site.path(key))
    };
    let file = tenant("acme", "admin.key") + &tenant("globex", "other.key") + delivery;
    std::fs::write(site.path("tenants.toml"), file).expect("a file");
    Running::of(&mut site.plain("127.0.0.1:0"))
}

/// Allowed rows are skipped, as they would send real requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_cannot_ask_an_address_that_the_table_refuses() {
    let mut count = 0;
    for (rules, delivery) in RULES {
        let site = Site::new();
        let server = server(&site, delivery);
        let tenant = Tenant::of(&server, ADMIN_KEY).await;
        let mut asked = Vec::new();
        for row in TABLE.lines().skip(1) {
            let cells: Vec<&str> = row.split('\t').collect();
            let [of, expected, url, _] = cells[..] else { panic!("four cells: {row}") };
            assert!(RULES.iter().any(|(name, _)| *name == of), "there are no rules called {of}");
            if of == rules && expected != "allowed" {
                asked.push((expected, url, tenant.asks(url).await));
            }
        }
        count += asked.len();
        let mut wrong = Vec::new();
        for (expected, url, session) in asked {
            let outcome = tenant.outcome(session).await;
            if outcome != expected {
                wrong.push(format!("{rules} {url:?}: {outcome}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let (log, code) = server.stop();
        assert_eq!(code, Some(0), "{log}");
    }
    assert!(count >= 150, "{count}");
}

/// Each host is a private address: one that is on a tenant's list is refused for that, and any other for not being there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tenants_definitions_have_the_hosts_of_the_configuration() {
    let site = Site::new();
    let delivery = "[delivery]\nallowed_hosts = [\"10.0.0.2\"]\n[delivery.tenants]\nacme = [\"10.0.0.1\"]\n";
    let server = server(&site, delivery);
    let (acme, globex) = (Tenant::of(&server, ADMIN_KEY).await, Tenant::of(&server, OTHER_KEY).await);
    for (tenant, host, reason) in [
        (&acme, "10.0.0.1", "address_refused"),
        (&acme, "10.0.0.2", "host_refused"),
        (&globex, "10.0.0.1", "host_refused"),
        (&globex, "10.0.0.2", "address_refused"),
    ] {
        let session = tenant.asks(&format!("https://{host}/")).await;
        assert_eq!(tenant.outcome(session).await, reason, "{host} by {}", tenant.key);
    }
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}
