//! What the configuration says about egress, and what of that holds for requests.

use async_trait::async_trait;
use serde_json::json;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use switchward_delivery::{
    guard::{Policies, Refused},
    http::{Client, Config as HttpConfig, Request, Resolve},
    model::{Kind, Model, Question},
};
use switchward_machine::TenantId;
use switchward_outbound::Names;
use switchward_state::ViewError;

use super::DeliveryConfig;
use crate::config;

/// The addresses that every client must refuse, and some that pass.
const TABLE: &str = include_str!("../../../delivery/tests/addresses.tsv");
const SOON: Duration = Duration::from_secs(10);

/// What a file says of delivery.
fn configured(delivery: &str) -> DeliveryConfig {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switchward.toml");
    std::fs::write(&file, format!("data_dir = \"/nowhere\"\n{delivery}")).unwrap();
    config::read(Some(&file), &[]).unwrap_or_else(|error| panic!("{error:#}\n{delivery}")).delivery
}

/// Tenants by their numbers from 1; the last number is one that cannot be read.
struct Listed(&'static [&'static str]);

impl Names for Listed {
    fn name_of(&self, tenant: TenantId) -> Result<Option<String>, ViewError> {
        if tenant == TenantId(u32::MAX) {
            return Err(ViewError("the disk is gone".to_owned()));
        }
        let index = usize::try_from(tenant.0).unwrap().checked_sub(1);
        Ok(index.and_then(|index| self.0.get(index)).map(|name| (*name).to_owned()))
    }
}

/// Leads every name to the same address, or nowhere.
struct Leads(Option<IpAddr>);

#[async_trait]
impl Resolve for Leads {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        self.0.map(|address| vec![address]).ok_or_else(|| io::Error::other("the name does not exist"))
    }
}

fn client(policies: Arc<dyn Policies>, names: Leads) -> Client {
    let config = HttpConfig { policies, resolver: Arc::new(names), roots: Vec::new() };
    Client::new(config).expect("the client can be set up")
}

fn get(url: &str) -> Request {
    let (method, url) = ("GET".to_owned(), url.to_owned());
    Request { method, url, headers: Vec::new(), body: None, deadline: SOON }
}

const TENANTS: &str = r#"
[delivery]
allowed_hosts = ["*.example.org", "10.0.0.2"]
[delivery.tenants]
acme = ["api.acme.example", "10.0.0.1"]
closed = []
"#;
const ACME: u32 = 1;
const CLOSED: u32 = 2;
const GLOBEX: u32 = 3;
const NOBODY: u32 = 4;
const UNREADABLE: u32 = u32::MAX;
const NAMES: Listed = Listed(&["acme", "closed", "globex"]);

/// What a file says each tenant may reach.
fn policies(delivery: &str) -> Arc<dyn Policies> {
    configured(delivery).rules().unwrap().policies(NAMES)
}

/// The reason why each tenant may not ask; a host that may be asked has no address here, or one that is refused.
#[tokio::test]
async fn each_tenant_has_the_hosts_that_the_configuration_gives_it() {
    let client = client(policies(TENANTS), Leads(None));
    for (tenant, host, reason) in [
        (ACME, "api.acme.example", "name_unusable"),
        (ACME, "10.0.0.1", "address_refused"),
        (ACME, "a.example.org", "host_refused"),
        (ACME, "10.0.0.2", "host_refused"),
        (CLOSED, "api.acme.example", "host_refused"),
        (CLOSED, "a.example.org", "host_refused"),
        (GLOBEX, "a.example.org", "name_unusable"),
        (GLOBEX, "10.0.0.2", "address_refused"),
        (GLOBEX, "api.acme.example", "host_refused"),
        (GLOBEX, "example.org", "host_refused"),
        (NOBODY, "a.example.org", "rules_unknown"),
        (UNREADABLE, "a.example.org", "rules_unknown"),
        (UNREADABLE, "api.acme.example", "rules_unknown"),
    ] {
        let refused =
            client.send(tenant, &get(&format!("https://{host}/"))).await.expect_err("it is refused");
        assert_eq!(refused.reason.code(), reason, "{tenant} asks {host}");
    }
}

#[tokio::test]
async fn without_lists_of_single_tenants_the_rules_of_all_hold_for_everybody() {
    for (delivery, host, reason) in [
        ("", "anywhere.example", "name_unusable"),
        ("[delivery]\nallowed_hosts = [\"a.example\"]", "a.example", "name_unusable"),
        ("[delivery]\nallowed_hosts = [\"a.example\"]", "b.example", "host_refused"),
        ("[delivery]\nports = [8443]", "a.example", "port_refused"),
    ] {
        let client = client(policies(delivery), Leads(None));
        for tenant in [ACME, NOBODY, UNREADABLE] {
            let refused =
                client.send(tenant, &get(&format!("https://{host}/"))).await.expect_err("it is refused");
            assert_eq!(refused.reason.code(), reason, "{delivery}: {tenant} asks {host}");
        }
    }
}

/// The log of a test.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_tenant_whose_rules_cannot_be_read_is_logged() {
    let rules = policies(TENANTS);
    for (tenant, expected) in [
        (ACME, ""),
        (NOBODY, "the tenant does not exist"),
        (UNREADABLE, "failed to read the tenants: requests of this one are refused"),
    ] {
        let logged = Logged::default();
        let writer = logged.clone();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let known = tracing::subscriber::with_default(log, || rules.egress(tenant)).is_ok();
        let lines = String::from_utf8(logged.0.lock().expect("nobody panicked").clone()).expect("text");
        assert_eq!((known, lines.is_empty()), (expected.is_empty(), expected.is_empty()), "{lines}");
        assert!(
            lines.contains(expected) && (known || lines.contains(&format!("tenant={tenant}"))),
            "{lines}"
        );
    }
}

#[test]
fn an_invalid_host_is_reported() {
    for delivery in ["[delivery]\nallowed_hosts = [\"a.*.b\"]", "[delivery.tenants]\nacme = [\"a.*.b\"]"] {
        let Err(error) = configured(delivery).rules() else { panic!("the host is invalid") };
        assert!(format!("{error:#}").contains("\"a.*.b\" is neither a host"), "{error:#}");
    }
}

/// A model at this address.
fn model(url: &str, local: bool) -> anyhow::Result<switchward_delivery::model::Config> {
    let url = serde_json::Value::from(url);
    let delivery =
        format!("[delivery.model]\nprovider = \"openai\"\nname = \"m\"\nbase_url = {url}\nlocal = {local}\n");
    configured(&delivery).model.expect("a model is configured").read()
}

/// The table has rules for definitions. A model's address is the operator's: it has no list of hosts, its own port may be
/// asked, and one switch, `local`, allows this machine and plain http together.
#[test]
fn a_model_has_no_address_that_the_table_refuses() {
    let mut rows = 0;
    for row in TABLE.lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        let [rules, expected, url, what] = cells[..] else { panic!("a row has four cells: {row}") };
        let local = match rules {
            "strict" => false,
            "dev" => true,
            "http" | "listed" => continue,
            other => panic!("unknown rules {other}"),
        };
        let expected = if expected == "port_refused" { "allowed" } else { expected };
        let outcome = match model(url, local) {
            Ok(_) => "allowed",
            Err(error) => error.downcast_ref::<Refused>().expect("the address is refused").reason.code(),
        };
        assert_eq!(outcome, expected, "{url} ({what})");
        rows += 1;
    }
    assert!(rows > 150, "{rows}");
}

#[tokio::test]
async fn a_model_whose_name_leads_to_a_refused_address_is_not_asked() {
    let input = json!({ "rubric": "It holds.", "data": {} });
    let question = Question::read(Kind::Judge, &input).expect("the question is readable");
    let mut rows = 0;
    for row in TABLE.lines().skip(1) {
        let cells: Vec<&str> = row.split('\t').collect();
        let (["strict" | "dev", "address_refused", url, _], Some(address)) = (&cells[..], address(cells[2]))
        else {
            continue;
        };
        let local = cells[0] == "dev";
        let endpoint = model("https://model.example", local).expect("a host name is allowed");
        let client = client(policies(""), Leads(Some(address)));
        let answer = Model::new(client, endpoint).perform(ACME, &question, &json!({}), SOON).await;
        assert_eq!(answer.map_err(|failed| failed.reason.code()), Err("name_unusable"), "{url}");
        rows += 1;
    }
    assert!(rows > 70, "{rows}");
}

/// The address that an URL of the table spells plainly.
fn address(url: &str) -> Option<IpAddr> {
    let host = url.split_once("://")?.1.split('/').next()?;
    host.trim_matches(['[', ']']).parse().ok()
}
