//! `switchward work`: the commands of a worker.

use prost_types::{ListValue, Struct, Value, value::Kind};
use std::time::Duration;
use switchward_api::v1;

use super::show;
use super::talk::Talk;
use super::values::json_value;
use crate::args::files::STDIN;
use crate::args::{CompleteWork, ExtendLease, FailWork, KindOfWork, PollWork, ReleaseWork};
use crate::exit::{Exit, FINDINGS};
use crate::output::{GOOD, PROBLEM, STRONG, card, clean, shell};

pub(super) async fn poll(talk: &Talk, poll: PollWork) -> Result<(), Exit> {
    let kind = |kind: KindOfWork| match kind {
        KindOfWork::Agent => v1::WorkKind::Agent,
        KindOfWork::Extract => v1::WorkKind::Extract,
        KindOfWork::Judge => v1::WorkKind::Judge,
        KindOfWork::Http => v1::WorkKind::Http,
        KindOfWork::Classify => v1::WorkKind::Classify,
        KindOfWork::Delegate => v1::WorkKind::Delegate,
        KindOfWork::Intent => v1::WorkKind::Intent,
        KindOfWork::Tool => v1::WorkKind::Tool,
        KindOfWork::Interaction => v1::WorkKind::Interaction,
        KindOfWork::Script => v1::WorkKind::Script,
    };
    let wanted = v1::WorkWanted {
        kinds: poll.kinds.into_iter().map(|it| kind(it).into()).collect(),
        queues: poll.queues,
        worker_id: poll.worker.unwrap_or_default(),
        lease: poll.lease.map(length).transpose()?,
    };
    let request = v1::PollWorkRequest {
        parent: String::new(),
        wanted: Some(wanted),
        max_items: poll.max,
        wait: poll.wait.map(length).transpose()?,
    };
    let client = talk.client.waiting(poll.wait.unwrap_or_default());
    let reply = client.call_once(request, |mut it, request| async move { it.work.poll_work(request).await });
    let reply = reply.await?;
    let text = || match reply.items.as_slice() {
        [] => "no work\n".to_owned(),
        items => items.iter().map(item).collect::<Vec<_>>().join("\n"),
    };
    talk.printer.list("PollWorkResponse", &reply, "WorkItem", &reply.items, text)
}

pub(super) async fn complete(talk: &Talk, complete: CompleteWork) -> Result<(), Exit> {
    let name = complete.taken.work;
    let (result, value) = match complete.result.as_deref().map(result).transpose()? {
        Some(Value { kind: Some(Kind::StructValue(object)) }) => (Some(object), None),
        other => (None, other),
    };
    let request = v1::CompleteWorkRequest {
        name: name.clone(),
        lease_token: complete.taken.token,
        result,
        value,
        next: complete.next.unwrap_or_default(),
        cost_usd: complete.spent.cost_usd,
        tokens: complete.spent.tokens,
        request_id: talk.own_request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.work.complete_work(request).await });
    let reply = reply.await?;
    let text = || {
        if reply.accepted {
            format!("{GOOD}accepted{GOOD:#}  {}\n", clean(show::id(&name)))
        } else {
            let head = format!(
                "{PROBLEM}not accepted{PROBLEM:#}  {}  {}\n",
                clean(show::id(&name)),
                clean(&reply.reason)
            );
            head + &card(&[("message", clean(&reply.message))])
        }
    };
    let printed = talk.printer.message("CompleteWorkResponse", &reply, text);
    printed.or_else(Exit::unless_output_closed)?;
    if reply.accepted { Ok(()) } else { Err(Exit::reported(FINDINGS)) }
}

pub(super) async fn fail(talk: &Talk, fail: FailWork) -> Result<(), Exit> {
    let name = fail.taken.work;
    let request = v1::FailWorkRequest {
        name: name.clone(),
        lease_token: fail.taken.token,
        message: fail.message.unwrap_or_default(),
        outcome_unknown: fail.unknown,
        cost_usd: fail.spent.cost_usd,
        tokens: fail.spent.tokens,
        request_id: talk.own_request_id(),
    };
    let reply = talk.client.call(request, |mut it, request| async move { it.work.fail_work(request).await });
    let reply = reply.await?;
    talk.printer.message("FailWorkResponse", &reply, || format!("failed  {}\n", clean(show::id(&name))))
}

pub(super) async fn release(talk: &Talk, release: ReleaseWork) -> Result<(), Exit> {
    let name = release.taken.work;
    let request = v1::ReleaseWorkRequest {
        name: name.clone(),
        lease_token: release.taken.token,
        request_id: talk.own_request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.work.release_work(request).await });
    let reply = reply.await?;
    let text = || format!("released  {}\n", clean(show::id(&name)));
    talk.printer.message("ReleaseWorkResponse", &reply, text)
}

pub(super) async fn extend(talk: &Talk, extend: ExtendLease) -> Result<(), Exit> {
    let name = extend.taken.work;
    let request = v1::ExtendLeaseRequest {
        name: name.clone(),
        lease_token: extend.taken.token,
        lease: extend.lease.map(length).transpose()?,
    };
    let reply =
        talk.client.call_once(request, |mut it, request| async move { it.work.extend_lease(request).await });
    let reply = reply.await?;
    let until = show::time(reply.lease_expire_time.as_ref());
    talk.printer.message("ExtendLeaseResponse", &reply, || {
        format!("leased until {until}  {}\n", clean(show::id(&name)))
    })
}

/// A duration of the API.
fn length(length: Duration) -> Result<prost_types::Duration, Exit> {
    prost_types::Duration::try_from(length).map_err(|_| Exit::usage("the duration is too long"))
}

/// Reads a result: JSON, or a file or the standard input with it.
fn result(text: &str) -> Result<Value, Exit> {
    json_value("--result", if text == STDIN { "@-" } else { text })
}

/// A work item, and the command that hands in its result.
fn item(item: &v1::WorkItem) -> String {
    let (work, token) = (show::id(&item.name), &item.lease_token);
    let (_, number) = item.version.rsplit_once('/').unwrap_or_default();
    let schema = item.result_schema.as_ref();
    let mut complete = format!("switchward work complete {} {}", shell(work), shell(token));
    let result = sample(&Value { kind: schema.cloned().map(Kind::StructValue) });
    if result.kind != Some(Kind::NullValue(0)) {
        complete.push_str(&format!(" --result {}", shell(&show::json(&result))));
    }
    let process = match number {
        "" => String::new(),
        number => clean(&format!("{}, version {number}", show::definition_of(&item.version))),
    };
    card(&[
        ("work", format!("{STRONG}{}{STRONG:#}", clean(work))),
        ("kind", show::word(item.kind().as_str_name(), "WORK_KIND_")),
        ("session", clean(show::id(&item.session))),
        ("definition", process),
        ("assistant", clean(show::id(&item.assistant))),
        ("assistant_instructions", clean(&item.assistant_instructions)),
        ("state", clean(&item.state)),
        ("attempt", item.attempt.to_string()),
        ("lease_expire_time", show::time(item.lease_expire_time.as_ref())),
        ("model", clean(&item.model)),
        ("exits", exits(&item.exits)),
        ("input", item.input.as_ref().map(show::data).unwrap_or_default()),
        ("data", item.data.as_ref().map(show::data).unwrap_or_default()),
        ("last_message", clean(&item.last_message)),
        ("result_schema", schema.map(show::data).unwrap_or_default()),
        ("idempotency_key", clean(&item.idempotency_key)),
        ("lease_token", clean(token)),
        ("complete", clean(&complete)),
    ])
}

/// The transitions that a result can name.
fn exits(exits: &[v1::WorkExit]) -> String {
    let names: Vec<String> = exits.iter().map(|exit| clean(&exit.name)).collect();
    names.join(", ")
}

/// A sample value that matches a schema, to fill in.
fn sample(schema: &Value) -> Value {
    let Some(Kind::StructValue(schema)) = &schema.kind else {
        return Value { kind: Some(Kind::NullValue(0)) };
    };
    let text = |name: &str| match schema.fields.get(name).and_then(|value| value.kind.as_ref()) {
        Some(Kind::StringValue(text)) => text.as_str(),
        // The first of several types counts; the others allow empty values.
        Some(Kind::ListValue(ListValue { values })) => match values.first().and_then(|it| it.kind.as_ref()) {
            Some(Kind::StringValue(text)) => text,
            Some(_) | None => "",
        },
        Some(_) | None => "",
    };
    let kind = match (text("type"), text("format")) {
        ("object", _) => {
            let properties = match schema.fields.get("properties").and_then(|value| value.kind.as_ref()) {
                Some(Kind::StructValue(properties)) => properties.clone(),
                Some(_) | None => Struct::default(),
            };
            let member = |(key, value): (String, Value)| (key, sample(&value));
            Kind::StructValue(Struct { fields: properties.fields.into_iter().map(member).collect() })
        }
        ("string", "date") => Kind::StringValue("YYYY-MM-DD".to_owned()),
        ("string", _) => Kind::StringValue("...".to_owned()),
        ("number" | "integer", _) => Kind::NumberValue(0.0),
        ("boolean", _) => Kind::BoolValue(true),
        ("array", _) => Kind::ListValue(ListValue::default()),
        _ => Kind::NullValue(0),
    };
    Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::super::values::value_of;
    use super::*;
    use serde_json::json;

    fn sampled(schema: serde_json::Value) -> String {
        show::json(&sample(&value_of(schema)))
    }

    #[test]
    fn a_sample_has_the_shape_that_the_schema_wants() {
        let schema = json!({
            "type": "object",
            "properties": {
                "order": { "type": ["string", "null"] },
                "due": { "type": ["string", "null"], "format": "date" },
                "amount": { "type": ["number", "null"] },
                "gift": { "type": ["boolean", "null"] },
                "items": { "type": ["array", "null"] },
                "body": {},
            },
        });
        let expected =
            r#"{"amount": 0, "body": null, "due": "YYYY-MM-DD", "gift": true, "items": [], "order": "..."}"#;
        assert_eq!(sampled(schema), expected);
        assert_eq!(sampled(json!({ "type": ["object", "null"] })), "{}");
        assert_eq!(sampled(json!({})), "null");
        assert_eq!(sampled(json!({ "type": [7] })), "null");
    }

    #[test]
    fn what_an_item_holds_cannot_dress_up_as_a_command() {
        let text = value_of(json!({ "text": "a\u{1b}[2K\nwork  wrk_2" }));
        let Some(Kind::StructValue(input)) = text.kind else { panic!("it is an object") };
        let shown = item(&v1::WorkItem { input: Some(input), ..v1::WorkItem::default() });
        assert!(!shown.contains("\u{1b}[2K") && shown.contains(r"a\u001b[2K\nwork"), "{shown:?}");
        let said = item(&v1::WorkItem { last_message: "a\nwork  wrk_2".into(), ..v1::WorkItem::default() });
        let plain = anstream::adapter::strip_str(&said).to_string();
        assert!(plain.lines().filter(|line| line.starts_with("work")).count() == 1, "{plain}");
    }
}
