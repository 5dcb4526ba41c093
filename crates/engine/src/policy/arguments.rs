//! Rules about a call's arguments.

use serde_json::Value;
use switchward_machine::{AddressPattern, ArgRule};
use switchward_state::policy::{Args, CallProblem};

/// Why the arguments break the rule, or nothing.
pub(crate) fn broken(rule: &ArgRule, args: &Args) -> Option<CallProblem> {
    match rule {
        ArgRule::Mail { from, to } => mail(from.as_deref(), to.as_deref(), args).err(),
    }
}

/// A mail's sender must be in `from` and every recipient in `to`, if the lists are given. What cannot be read as
/// addresses is in no list.
fn mail(
    from: Option<&[AddressPattern]>,
    to: Option<&[AddressPattern]>,
    args: &Args,
) -> Result<(), CallProblem> {
    let unread = |error: serde_json::Error| CallProblem::Arguments { diagnostic: error.to_string() };
    let value: Value = serde_json::from_slice(args.json()).map_err(unread)?;
    if let Some(list) = from {
        let senders = addresses(&value, "from")?;
        if senders.is_empty() {
            return Err(CallProblem::NoSender);
        }
        within(list, &senders, |address| CallProblem::SenderNotListed { address })?;
    }
    if let Some(list) = to {
        let mut all = Vec::new();
        for field in ["to", "cc", "bcc"] {
            all.extend(addresses(&value, field)?);
        }
        if all.is_empty() {
            return Err(CallProblem::NoRecipient);
        }
        within(list, &all, |address| CallProblem::RecipientNotListed { address })?;
    }
    Ok(())
}

fn within(
    list: &[AddressPattern],
    addresses: &[String],
    problem: fn(String) -> CallProblem,
) -> Result<(), CallProblem> {
    match addresses.iter().find(|address| !list.iter().any(|pattern| pattern.covers(address))) {
        Some(outside) => Err(problem(outside.clone())),
        None => Ok(()),
    }
}

/// The addresses of a field: one text or a list of texts; a text may hold several, parted by commas.
fn addresses(value: &Value, field: &str) -> Result<Vec<String>, CallProblem> {
    let texts: Vec<&Value> = match value.get(field) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one) => vec![one],
    };
    let mut all = Vec::new();
    for text in texts {
        let text = text.as_str().ok_or_else(|| CallProblem::NoAddress { field: field.to_owned() })?;
        all.extend(text.split(',').map(|part| part.trim().to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(from: Option<&[&str]>, to: Option<&[&str]>, args: &str) -> bool {
        let list = |texts: &[&str]| texts.iter().map(|text| AddressPattern::new(text).unwrap()).collect();
        let rule = ArgRule::Mail { from: from.map(list), to: to.map(list) };
        broken(&rule, &Args::parse(args.as_bytes()).unwrap()).is_some()
    }

    #[test]
    fn every_recipient_counts_wherever_it_stands() {
        let to: Option<&[&str]> = Some(&["*@ours.example", "kim@else.example"]);
        assert!(!refused(None, to, r#"{"to":"A@OURS.example","cc":["Kim <kim@else.example>"]}"#));
        for args in [
            r#"{"to":"a@ours.example","bcc":"x@evil.example"}"#,
            r#"{"to":"a@ours.example, x@evil.example"}"#,
            r#"{"to":["a@ours.example", 7]}"#,
            r#"{"to":{"address":"x@evil.example"}}"#,
            r#"{"to":"x@evil.example <a@ours.example> x@evil.example"}"#,
            "{}",
        ] {
            assert!(refused(None, to, args), "{args}");
        }
    }

    #[test]
    fn an_absent_list_restricts_nothing_and_an_empty_one_allows_nobody() {
        assert!(!refused(None, None, "{}"));
        assert!(refused(None, Some(&[]), r#"{"to":"a@ours.example"}"#));
        assert!(refused(Some(&["bot@ours.example"]), None, r#"{"to":"a@b.example"}"#));
        assert!(!refused(Some(&["bot@ours.example"]), None, r#"{"from":"BOT@ours.example"}"#));
    }
}
