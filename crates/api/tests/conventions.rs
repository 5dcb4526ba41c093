//! What `proto/README.md` promises of every RPC, checked against the descriptors.

use std::collections::BTreeSet;

use prost_reflect::{Kind, MethodDescriptor};
use switchward_api::{PACKAGE, descriptor_pool};

/// `idempotency_level = IDEMPOTENT` of `google.protobuf.MethodOptions`.
const IDEMPOTENT: i32 = 2;

fn methods() -> Vec<MethodDescriptor> {
    descriptor_pool().services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect()
}

/// The idempotency level that is stated.
fn level(method: &MethodDescriptor) -> Option<i32> {
    method.method_descriptor_proto().options.clone().unwrap_or_default().idempotency_level
}

fn check(rule: &str, holds: impl Fn(&MethodDescriptor) -> bool) {
    let broken: Vec<String> = methods()
        .iter()
        .filter(|method| !holds(method))
        .map(|method| method.full_name().to_owned())
        .collect();
    assert!(broken.is_empty(), "{rule}: broken by {broken:?}");
}

#[test]
fn every_mutation_takes_a_request_id() {
    // Taking and extending work are distinguished by lease tokens.
    let of_leases = ["PollWork", "StreamWork", "ExtendLease"];
    // These change nothing here, or nothing the second time.
    let of_endpoints = ["PingWebhookEndpoint", "RecoverWebhookEndpoint", "DeleteQuarantinedMail"];
    check(
        "a method only reads, or is about leases, endpoints or quarantine, or is idempotent, or has request_id = 15",
        |method| match method.input().get_field_by_name("request_id") {
            Some(field) => level(method).is_none() && field.number() == 15 && field.kind() == Kind::String,
            None => {
                let known = of_leases.iter().chain(&of_endpoints).any(|one| *one == method.name());
                level(method).is_some() || known
            }
        },
    );
}

#[test]
fn a_method_that_may_fail_a_replica_does_not_only_read() {
    let verifies: Vec<_> =
        methods().iter().filter(|method| method.name() == "VerifyGroup").map(level).collect();
    assert_eq!(verifies, [Some(IDEMPOTENT)]);
}

#[test]
fn every_list_has_pages() {
    check("a List method has page_size, page_token and next_page_token", |method| {
        !method.name().starts_with("List")
            || (method.input().get_field_by_name("page_size").is_some()
                && method.input().get_field_by_name("page_token").is_some()
                && method.output().get_field_by_name("next_page_token").is_some())
    });
}

#[test]
fn streams_only_come_from_the_server() {
    check("no method takes a stream", |method| !method.is_client_streaming());
}

#[test]
fn money_is_text() {
    for message in descriptor_pool().all_messages().filter(|message| message.package_name() == PACKAGE) {
        for field in message.fields() {
            let floats = matches!(field.kind(), Kind::Double | Kind::Float);
            assert!(!floats, "{} is a floating-point number", field.full_name());
            if field.name().ends_with("usd") {
                assert_eq!(field.kind(), Kind::String, "{} is not text", field.full_name());
            }
        }
    }
}

/// The shipped service config without white space.
fn service_config() -> String {
    include_str!("../../../proto/service_config.json").split_whitespace().collect()
}

/// What stands in a text after each of these openings, up to the next quote.
fn quoted_after<'t>(text: &'t str, opening: &str) -> BTreeSet<&'t str> {
    text.split(opening).skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect()
}

#[test]
fn the_service_config_names_every_service() {
    let config = service_config();
    let services: Vec<_> = descriptor_pool().services().collect();
    let served: BTreeSet<&str> = services.iter().map(|service| service.full_name()).collect();
    assert_eq!(quoted_after(&config, "{\"service\":\""), served);
}

/// A library says UNAVAILABLE also of a connection that broke after the request was sent.
#[test]
fn the_service_config_retries_unavailable_alone_and_nothing_that_would_be_done_twice() {
    let config = service_config();
    assert_eq!(config.matches("\"retryPolicy\"").count(), 1);
    assert!(config.contains("\"retryableStatusCodes\":[\"UNAVAILABLE\"]"), "{config}");
    let (_, not_retried) = config.rsplit_once("{\"name\":").unwrap();
    assert!(!not_retried.contains("retryPolicy"), "{not_retried}");
    assert_eq!(
        quoted_after(not_retried, "\"method\":\""),
        BTreeSet::from(["PingWebhookEndpoint", "RecoverWebhookEndpoint"])
    );
}
