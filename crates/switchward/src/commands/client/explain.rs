//! `switchward explain`: the decision about a call, rule by rule.

use switchward_api::v1;
use switchward_messages::{CallOutcome, call_outcome, cli};

use super::show;
use super::talk::Talk;
use crate::args::{Explain, files};
use crate::exit::Exit;
use crate::output::{STRONG, Table, card, clean, period};

pub(super) async fn run(talk: &Talk, explain: Explain) -> Result<(), Exit> {
    let call = explain.call;
    let request = v1::ExplainDecisionRequest {
        session: call.session,
        capability: call.capability.clone(),
        args: call.args.as_deref().map(files::value).transpose()?.unwrap_or_default().into(),
        est_cost_usd: call.est_cost_usd,
        address: call.of.address(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.policy.explain_decision(request).await });
    let reply = reply.await?;
    talk.printer.message("ExplainDecisionResponse", &reply, || text(&call.capability, &reply))
}

fn text(capability: &str, reply: &v1::ExplainDecisionResponse) -> String {
    let would = call_outcome(CallOutcome::Would(show::effect(reply.decision())));
    let grant = if reply.grant_available { cli::client::UNUSED_APPROVAL } else { "" };
    let mut text = card(&[
        ("capability", clean(capability)),
        ("decision", format!("{STRONG}{would}{STRONG:#}")),
        ("reason", clean(&reply.reason)),
        ("message", clean(&reply.message)),
        ("matched_rule", reply.matched_rule.as_ref().map(show::rule).unwrap_or_default()),
        ("layers", show::layers(&reply.layers)),
        ("grant_available", grant.to_owned()),
        ("session_limits", limits(&reply.session_limits)),
    ]);
    if !reply.rules.is_empty() {
        let mut table = Table::new(&["LIST", "CAPABILITY", "LAYER", "MATCHES", "DECIDES", "LIMITS"]);
        let yes = |truth| if truth { "yes".to_owned() } else { "no".to_owned() };
        for explained in &reply.rules {
            let rule = explained.rule.clone().unwrap_or_default();
            let list = show::word(rule.list().as_str_name(), "RULE_LIST_");
            let (matches, decides) = (yes(explained.matches), yes(explained.decides));
            table.row([list, rule.capability, rule.layer, matches, decides, limits(&explained.limits)]);
        }
        text.push('\n');
        text.push_str(&table.text(""));
    }
    text
}

fn limits(limits: &[v1::LimitUse]) -> String {
    let uses = limits.iter().map(|limit| {
        let (used, max) = (clean(&limit.used), clean(&limit.max));
        let window =
            limit.window.map(|window| format!(" in {}", period(show::length(window)))).unwrap_or_default();
        let unit = match limit.kind() {
            v1::LimitKind::Rate => "calls",
            v1::LimitKind::Budget | v1::LimitKind::SessionBudget => "USD",
            v1::LimitKind::Emails => "mails",
            v1::LimitKind::Unspecified => "",
        };
        let full = if limit.available { "" } else { ", exhausted" };
        let reset = limit
            .reset_time
            .as_ref()
            .map(|at| format!(" until {}", show::time(Some(at))))
            .unwrap_or_default();
        let by = if limit.layer.is_empty() || limit.layer == "policy" {
            String::new()
        } else {
            format!(" ({})", clean(&limit.layer))
        };
        format!("{used} of {max} {unit}{window}{full}{reset}{by}")
    });
    uses.collect::<Vec<_>>().join("; ")
}
