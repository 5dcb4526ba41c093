//! Mail by plain HTTP: who may post it, and the answer of each refusal.

use http::{Method, StatusCode};
use serde_json::json;
use switchward_gateway::mail::{Level, MailIngress};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_mail::{
    incoming::{Dns, Settings},
    limits::MESSAGE_BYTES_MAX,
};
use switchward_state::approval::{MailKey, TokenUse};

use crate::callbacks::{raw, refused};
use crate::harness::Harness;
use crate::protocols::Raw;

const DOMAIN: &str = "reply.acme.example";
const OF_THE_HOST: &str = "mx.acme.example";

/// The mail ingress of a node; it uses no DNS and trusts one host.
pub(crate) fn ingress(api: &switchward_gateway::Api) -> MailIngress {
    let settings = Settings { trusted_hosts: vec![OF_THE_HOST.into()], ..Settings::of(DOMAIN) };
    let dns = Dns::of_records(&[], &[]).expect("a resolver without records");
    MailIngress::new(api.clone(), settings, dns, Level::Strict)
}

fn mail(to: &str, proof: &str, text: &str) -> String {
    format!(
        "Authentication-Results: {OF_THE_HOST}; dmarc={proof} header.from=example.com\r\nFrom: lead@example.com\r\n\
         To: {to}\r\nSubject: Re: it\r\nMessage-ID: <1@example.com>\r\n\r\n{text}\r\n"
    )
}

fn post(key: &str, body: impl Into<bytes::Bytes>) -> Raw {
    raw("/v1/mail", body).with("content-type", "message/rfc822").with_key(key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_bring_mail_and_what_is_none_is_refused() {
    let harness = Harness::start().await;
    let (line, operator) = (&harness.node.line, harness.acme.key("operator"));
    let state = harness.node.state().await;
    let note = mail("r+x@reply.acme.example", "pass", "yes");
    refused(&line.send(post("none", note.clone())).await, 401, "CREDENTIAL_INVALID");
    for role in ["agent", "author", "approver", "worker"] {
        refused(&line.send(post(harness.acme.key(role), note.clone())).await, 403, "ROLE_NOT_ALLOWED");
    }
    let json = post(operator, note.clone()).with("content-type", "application/json");
    refused(&line.send(json).await, 415, "FIELD_INVALID");
    for query in ["from=a", "peer=mx.example"] {
        let asked = Raw { path: format!("/v1/mail?{query}"), ..post(operator, note.clone()) };
        refused(&line.send(asked).await, 400, "FIELD_INVALID");
    }
    let got = line.send(Raw { method: Method::GET, ..post(operator, note.clone()) }).await;
    refused(&got, 405, "UNIMPLEMENTED");
    let large = post(operator, vec![b'a'; MESSAGE_BYTES_MAX + 1]);
    refused(&line.send(large).await, 413, "QUOTA_EXCEEDED");
    for (path, body, expected) in [
        ("/v1/mail", note.clone(), "no_token"),
        ("/v1/mail?sender=a%40b&recipient=r%2Bx%40reply.acme.example&peer=::1&helo=mx", note, "no_token"),
        ("/v1/mail", String::new(), "malformed"),
    ] {
        let answer = line.send(Raw { path: path.into(), ..post(operator, body) }).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert_eq!(answer.json(), json!({ "outcome": "quarantined", "why": expected }));
    }
    assert_eq!(harness.node.state().await, state);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_brings_mail_to_its_own_tenant_alone() {
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let state = harness.node.state().await;
    for (tenant, number) in [(&harness.acme, 1), (&harness.globex, 2)] {
        let id: SessionId = tenant.session.name.rsplit('/').next().expect("an id").parse().expect("an id");
        let made =
            MailKey([7; 32]).token(TokenUse::Reply, TenantId(number), id, OpenId(0), 0, "lead@example.com");
        let note = mail(&format!("r+{made}@{DOMAIN}"), "pass", "yes");
        for bringer in [&harness.acme, &harness.globex] {
            // Only the session's own tenant learns that its keys did not make this token.
            let why = if bringer.name == tenant.name { "token_invalid" } else { "no_token" };
            let answer = line.send(post(bringer.key("admin"), note.clone())).await;
            assert_eq!(answer.json(), json!({ "outcome": "quarantined", "why": why }), "{}", tenant.name);
        }
    }
    assert_eq!(harness.node.state().await, state);
    harness.node.end().await;
}
