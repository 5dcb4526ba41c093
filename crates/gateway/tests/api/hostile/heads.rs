//! Valid messages with invalid heads: paths, methods, content types, timeouts, encodings, credentials.

use http::Method;
use prost_reflect::{ReflectMessage, Value};
use tonic::Code;

use super::dice::Dice;
use super::{Attack, Shot, Target, by, outcome, protocols, targets, targets_that_end};
use crate::protocols::{Protocol, Raw};
use crate::refusal::Refusal;
use crate::rpcs::set;

pub(super) const SENT: usize = 1_500;

/// Heads for a request of a method, and what is odd about each.
fn heads(good: &Raw, dice: &mut Dice) -> Vec<(String, Raw)> {
    let mut heads = Vec::new();
    let mut with = |name: &'static str, value: String| {
        heads.push((format!("{name}: {value:.60}"), good.clone().with(name, value)));
    };
    for kind in [
        "",
        "text/plain",
        "application/json; charset=utf-16",
        "application/grpc+json",
        "application/grpc+thrift",
        "application/grpc-web+json",
        "application/connect+proto",
        "application/x-www-form-urlencoded",
        "*/*",
        "multipart/form-data; boundary=x",
        "application/xml",
        "APPLICATION/GRPC-WEB",
    ] {
        with("content-type", kind.into());
    }
    // Short timeouts are tested elsewhere: a call that ran out of time may write at any time.
    for timeout in ["", "soon", "-1m", "m", "999999999m", "1.5S", "\u{661}m"] {
        with("grpc-timeout", timeout.into());
        with("connect-timeout-ms", timeout.into());
    }
    for encoding in ["gzip", "br", "identity, gzip", "zzz", "\u{fc}"] {
        with("grpc-encoding", encoding.into());
        with("content-encoding", encoding.into());
    }
    with("connect-protocol-version", "2".into());
    with("x-large", "x".repeat(17 * 1024));
    with("traceparent", "0".repeat(200));
    with("traceparent", "00-zz-zz-zz".into());
    for path in ["", "/", "/Nothing", "//", "/../x", "?a=b", "/%00", "#x"] {
        let raw = good.clone();
        heads.push((format!("path + {path}"), Raw { path: format!("{}{path}", raw.path), ..raw }));
    }
    for path in
        ["/", "/switchward.v1.NoService/Get", "/healthz/x", "/grpc.reflection.v1.ServerReflection/Nothing"]
    {
        heads.push((path.into(), Raw { path: path.into(), ..good.clone() }));
    }
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::HEAD, Method::PATCH, Method::OPTIONS] {
        heads.push((method.to_string(), Raw { method, ..good.clone() }));
    }
    let odd = format!("application/{}", *dice.pick(&["grpc;;", "grpc; x", "json;", "grpc-web-text+x"]));
    heads.push((odd.clone(), good.clone().with("content-type", odd)));
    heads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_heads() {
    let mut attack = Attack::start("heads").await;
    let mut dice = Dice::new(3);
    for mut target in targets_that_end(&attack).await {
        let protocol = protocols(&target.rpc)[dice.below(protocols(&target.rpc).len())];
        let all = heads(&by(protocol, &target.rpc, &target.good), &mut dice);
        for (at, (what, _)) in all.iter().enumerate() {
            // After an accepted request, there is a new good one.
            let (_, raw) = heads(&by(protocol, &target.rpc, &target.good), &mut Dice::new(3))
                .remove(at.min(all.len() - 1));
            if raw.method != Method::HEAD {
                target.shoot(&mut attack, raw, format!("{what} by {protocol:?}")).await;
            }
        }
    }
    attack.end(SENT).await;
}

/// A call that ran out of time may have been carried out: with its request id, the caller finds out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ran_out_of_time_is_done_once_or_not_at_all() {
    let mut attack = Attack::start("deadlines").await;
    for mut target in targets(&attack).await {
        for (round, timeout) in ["0n", "1n", "50u", "300u", "1m"].into_iter().enumerate() {
            if target.good.descriptor().get_field_by_name("request_id").is_some() {
                let id = Value::String(attack.harness.fresh("late"));
                set(&mut target.good, "request_id", id);
            }
            let raw = by(Protocol::Grpc, &target.rpc, &target.good).with_key(&target.secret);
            let answer = attack.harness.node.line.send(raw.clone().with("grpc-timeout", timeout)).await;
            // Whether the others are late is a matter of luck.
            let refused = outcome(&answer).err();
            assert!(
                timeout != "0n" || refused.is_some(),
                "{} accepted a call without time",
                target.rpc.method
            );
            if let Some(status) = refused {
                assert_eq!(status.code(), Code::DeadlineExceeded, "{}: {status:?}", target.rpc.method);
                assert_eq!(Refusal::of(&status).reason, "DEADLINE_EXCEEDED");
            }
            again(&mut attack, &target, raw, round).await;
            target = Target::of(&attack, target.rpc).await;
        }
    }
    attack.end(0).await;
}

async fn again(attack: &mut Attack, target: &Target, raw: Raw, round: usize) {
    attack.written().await;
    let what = || format!("again, round {round}");
    let method = target.rpc.method;
    let first = attack.send(Shot { rpc: &target.rpc, raw: raw.clone(), what: what() }).await;
    assert!(first.is_some(), "{method}");
    attack.written().await;
    let after = attack.harness.node.entries();
    let second = attack.send(Shot { rpc: &target.rpc, raw, what: what() }).await;
    assert!(second.is_some(), "{method}");
    assert_eq!(attack.harness.node.entries(), after, "{method} was done twice");
}
