//! The table of addresses by every path to the client: jobs of a worker, names, and redirects.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use switchward_bus::{Bus, Memory, Settings, Stream};
use switchward_delivery::channels::HttpRequest;
use switchward_delivery::guard::Egress;
use switchward_delivery::http::{self, Client};
use switchward_delivery::worker::{
    AnswerError, Answers, Config, Delivered, DeliveryJob, DeliveryWorker, JobInput, Origin, Outcome,
};
use switchward_machine::{OpenId, SessionId, TenantId};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::guard::{TABLE, rules};
use super::server::{Names, Server, answer, client, client_with, get};

const SOON: Duration = Duration::from_secs(30);
/// Rules that the table has, by the number of a tenant that has them.
const TENANTS: [&str; 4] = ["strict", "http", "dev", "listed"];

/// A row of the table: the number of the tenant, what is expected, the address.
fn rows() -> impl Iterator<Item = (u32, &'static str, &'static str)> {
    TABLE.lines().skip(1).map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let tenant = TENANTS.iter().position(|rules| *rules == cells[0]).expect("rules of the table");
        (u32::try_from(tenant).expect("few rules"), cells[1], cells[2])
    })
}

/// The address that an URL of the table spells plainly.
fn address(url: &str) -> Option<IpAddr> {
    let host = url.split_once("://")?.1.split('/').next()?;
    host.trim_matches(['[', ']']).parse().ok()
}

/// Forwards outcomes.
struct Recorder(mpsc::UnboundedSender<(Origin, Outcome)>);

#[async_trait]
impl Answers for Recorder {
    async fn wanted(&self, _job: &DeliveryJob) -> bool {
        true
    }

    async fn answer(&self, job: &DeliveryJob, outcome: Outcome) -> Result<(), AnswerError> {
        self.0.send((job.origin, outcome)).map_err(|_| AnswerError::Gone)
    }
}

/// Has a worker request these addresses, each for its tenant: the reason of each failure, or the status.
async fn asked(client: Client, urls: &[(u32, &str)]) -> Vec<String> {
    let bus: Arc<dyn Bus> = Arc::new(Memory::new(Settings::default()));
    let (sender, mut results) = mpsc::unbounded_channel();
    let worker = DeliveryWorker::new(
        bus.clone(),
        Arc::new(Recorder(sender)),
        client,
        None,
        Config::new("one".to_owned()),
    );
    let (stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(worker.run(stopped));
    let mut outcomes = BTreeMap::new();
    for (item, (tenant, url)) in urls.iter().enumerate() {
        let item = OpenId(u64::try_from(item).expect("few rows"));
        let input = json!({ "method": "GET", "url": url });
        let job = DeliveryJob {
            tenant: TenantId(*tenant),
            session: SessionId([7; 16]),
            origin: Origin::Work { item, fence: 1 },
            input: JobInput::Http(HttpRequest::read(&input).expect("the request is readable")),
            ttl_ms: u64::MAX,
            idempotency_key: format!("ses_1:{}:http", item.0),
            traceparent: None,
        };
        bus.publish(Stream::Http, job.envelope()).await.expect("the bus has capacity");
        let (origin, outcome) = timeout(SOON, results.recv())
            .await
            .expect("the outcome comes soon")
            .expect("the worker is running");
        let word = match outcome {
            Ok(Delivered::Http(answer)) => answer.status.to_string(),
            Ok(other) => panic!("{other:?} is no answer to a request"),
            Err(failed) => failed.reason.code().to_owned(),
        };
        assert_eq!(origin, job.origin);
        outcomes.insert(item, word);
    }
    stop.send_replace(true);
    worker.await.expect("the worker does not panic");
    outcomes.into_values().collect()
}

/// A client under the rules of the table, with these names.
fn ruled(names: Names) -> Client {
    let all = TENANTS.map(|name| Arc::new(rules(name)));
    let of = move |tenant: u32| Arc::clone(&all[usize::try_from(tenant).expect("a small number")]);
    let mut config = http::Config::new(Arc::new(of));
    config.resolver = Arc::new(names);
    Client::new(config).expect("the client can be set up")
}

/// Rows that are allowed get as far as the name; those that spell an address would be asked for real, and are left out.
#[tokio::test]
async fn a_job_with_an_address_of_the_table_is_judged_as_it_says() {
    let mut expected = Vec::new();
    let mut urls = Vec::new();
    for (tenant, word, url) in rows() {
        let is_name = url::Url::parse(url).is_ok_and(|url| url.domain().is_some());
        match (word, is_name) {
            ("allowed", true) => expected.push("name_unusable"),
            ("allowed", false) => continue,
            (refused, _) => expected.push(refused),
        }
        urls.push((tenant, url));
    }
    let results = asked(ruled(Names::default()), &urls).await;
    let wrong: Vec<_> = urls.iter().zip(results.iter().zip(&expected)).filter(|(_, (a, b))| a != b).collect();
    assert!(wrong.is_empty() && results.len() == expected.len(), "{wrong:#?}");
    assert!(expected.len() >= 180, "{}", expected.len());
}

/// Every refused address of the table, with a name before it.
#[tokio::test]
async fn a_job_whose_name_leads_to_an_address_of_the_table_is_refused() {
    let mut count = 0;
    for (tenant, word, url) in rows() {
        let (Some(address), "address_refused") = (address(url), word) else { continue };
        // The list of hosts is looked at before, and holds this name.
        let name = [(tenant, "https://a.example.net/")];
        let public: IpAddr = [1, 1, 1, 1].into();
        for leads in [vec![address], vec![public, address]] {
            let names = Names { rows: vec![leads.clone()], ..Names::default() };
            assert_eq!(asked(ruled(names.clone()), &name).await, ["name_unusable"], "{url}: {leads:?}");
            assert_eq!(names.asked.lock().expect("nobody panicked").len(), 1, "{url}");
        }
        count += 1;
    }
    assert!(count > 70, "{count}");
}

/// A server that redirects to each address of the table: the redirect is the answer, and is not followed.
#[tokio::test]
async fn a_redirect_to_an_address_of_the_table_is_an_answer() {
    let mut count = 0;
    for (_, _, url) in rows().filter(|(_, word, url)| *word != "allowed" && is_header(url)) {
        let status = [301, 302, 303, 307, 308][count % 5];
        let server = Server::always(answer(&format!("{status} x\r\nlocation: {url}"), b"")).await;
        // The rules are those of development, so nothing but the client itself prevents it.
        let results = asked(client(&[server.port, 80, 443]), &[(0, &server.url("/"))]).await;
        assert_eq!((results, server.seen().len()), (vec![status.to_string()], 1), "{url}");
        count += 1;
    }
    assert!(count > 140, "{count}");
}

/// Whether it can stand in a header's line.
fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// If the rules are unknown, nothing is requested.
#[tokio::test]
async fn a_tenant_whose_rules_are_unknown_asks_nothing() {
    struct Unknown;
    impl switchward_delivery::guard::Policies for Unknown {
        fn egress(&self, _tenant: u32) -> Result<Arc<Egress>, switchward_delivery::guard::RulesUnknown> {
            Err(switchward_delivery::guard::RulesUnknown)
        }
    }
    let server = Server::always(answer("200 x", b"")).await;
    let unknown = Client::new(http::Config::new(Arc::new(Unknown))).expect("the client can be set up");
    assert_eq!(asked(unknown, &[(0, &server.url("/"))]).await, ["rules_unknown"]);
    assert!(server.seen().is_empty());
    let known = client_with(super::server::open(&[server.port]), Names::default());
    assert_eq!(known.send(0, &get(&server.url("/"))).await.map(|it| it.status), Ok(200));
}
