//! Compares what a page shows with what the program printed or answered.

use serde_json::Value;

/// What stands for anything.
const ANY: &str = "...";

/// Looks for the lines of a `text output` block in what was printed, in their order. White space counts as one space.
///
/// # Errors
/// The first line that is not there.
pub(super) fn lines(shown: &str, printed: &str) -> Result<(), String> {
    let mut rest = printed.lines().map(one_space);
    for line in shown.lines().map(one_space).filter(|line| !line.is_empty() && line != ANY) {
        if !rest.any(|printed| fits(&line, &printed, false)) {
            return Err(line);
        }
    }
    Ok(())
}

/// Looks for what a `json answer` block shows in an answer.
///
/// # Errors
/// Where they differ, and how.
pub(super) fn answer(shown: &Value, got: &Value) -> Result<(), String> {
    at("", shown, got)
}

fn at(path: &str, shown: &Value, got: &Value) -> Result<(), String> {
    let differs = || Err(format!("{}: the page shows {shown}, the answer has {got}", named(path)));
    match (shown, got) {
        (Value::String(text), _) if text == ANY => Ok(()),
        (Value::String(text), Value::String(got)) if fits(text, got, true) => Ok(()),
        (Value::Object(fields), Value::Object(of)) => fields.iter().try_for_each(|(name, value)| {
            at(&format!("{path}.{name}"), value, of.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(items), Value::Array(of)) => {
            // A list that ends with `"..."` goes on.
            let open = items.last().is_some_and(|last| last == ANY);
            let items = &items[..items.len() - usize::from(open)];
            if of.len() < items.len() || (of.len() > items.len() && !open) {
                return differs();
            }
            let mut both = items.iter().zip(of).enumerate();
            both.try_for_each(|(index, (item, of))| at(&format!("{path}[{index}]"), item, of))
        }
        (shown, got) if shown == got => Ok(()),
        _ => differs(),
    }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the answer" } else { path.trim_start_matches('.') }
}

fn one_space(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if the text contains the pattern's parts between `...` in their order, or, if `whole`, consists of them.
fn fits(pattern: &str, text: &str, whole: bool) -> bool {
    let parts: Vec<&str> = pattern.split(ANY).map(str::trim).collect();
    let mut rest = text;
    for part in &parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    let (first, last) = (parts.first().unwrap_or(&""), parts.last().unwrap_or(&""));
    !whole || text == pattern || (parts.len() > 1 && text.starts_with(first) && text.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_occur_in_their_order() {
        let printed = "session   ses_1 started\nat env-check\nleft  49 calls\n";
        for shown in ["left 49", "session ses_... started\n...\nleft  49 calls\n", "", "... at env-check"] {
            assert_eq!(lines(shown, printed), Ok(()), "{shown}");
        }
        for (shown, missing) in
            [("left 50", "left 50"), ("left\nat", "at"), ("started ... ses_", "started ... ses_")]
        {
            assert_eq!(lines(shown, printed), Err(missing.to_owned()));
        }
    }

    #[test]
    fn an_answer_contains_what_is_shown() {
        let got = json!({"name": "sessions/ses_1", "run": {"state": "a", "left": 3}, "list": [1, {"b": 2}]});
        for shown in [
            json!({"name": "..."}),
            json!({"name": "sessions/...", "run": {"left": 3}}),
            json!({"list": [1, {}]}),
            json!({"list": [1, "..."]}),
        ] {
            assert_eq!(answer(&shown, &got), Ok(()), "{shown}");
        }
        for (shown, path) in [
            (json!({"name": "sessions"}), "name: "),
            (json!({"run": {"state": "b"}}), "run.state: "),
            (json!({"list": [1]}), "list: "),
            (json!({"list": [1, {"b": 3}]}), "list[1].b: "),
            (json!({"other": 1}), "other: "),
        ] {
            let error = answer(&shown, &got).expect_err("they differ");
            assert!(error.starts_with(path), "{error}");
        }
    }
}
