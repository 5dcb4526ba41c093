//! Replies by mail: the writer's own text, and the decision in it.

use crate::limits::MAIL_BYTES_MAX;

/// The result of reading a reply to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDecision {
    /// A phrase of approval, and nothing else on its line.
    Approve,
    /// A phrase of rejection, and nothing else on its line.
    Reject,
    /// Anything else: a question, a comment, a negation, a phrase of both.
    Undecided,
}

/// Phrases that approve, beside a state's own hints. They include the words by which gates are decided, so that a reply
/// with the word that the mail asks for decides.
pub const APPROVALS: &[&str] = &[
    "agreed",
    "approve",
    "approved",
    "confirmed",
    "go ahead",
    "i approve",
    "i approve this",
    "lgtm",
    "looks good",
    "looks good to me",
    "ok",
    "okay",
    "resume",
    "yes",
    "yes, approve",
    "yes, approved",
];

/// Phrases that reject, beside a state's own hints; they include the words by which gates are decided.
pub const REJECTIONS: &[&str] = &[
    "decline",
    "declined",
    "denied",
    "deny",
    "i reject",
    "i reject this",
    "i refuse",
    "no",
    "no, reject",
    "no, rejected",
    "refuse",
    "refused",
    "reject",
    "rejected",
];

/// Phrases that may follow a decision on its line.
pub const COURTESIES: &[&str] = &["thanks", "thank you", "cheers", "please"];

/// The decision in the first line of a reply's own text. See
/// `docs/approvals-by-mail.md#which-first-lines-decide`.
///
/// The first line that is not empty must be one of the phrases, whole: of `approve` or `reject`, which are a state's
/// hints already split at commas, or of [`APPROVALS`] and [`REJECTIONS`], which always count. Case, the amount of white
/// space between words, the kind of apostrophe, and one `.` or `!` at the end do not matter; one of [`COURTESIES`] may
/// follow after a comma or a space. Later lines are comment. A line that is a phrase of both decides nothing, nor does
/// one that is a phrase of `discuss`.
#[must_use]
pub fn decision_line<S: AsRef<str>>(
    reply: &str,
    approve: &[S],
    reject: &[S],
    discuss: &[S],
) -> ReplyDecision {
    let Some(line) = reply.lines().map(plain).find(|line| !line.is_empty()) else {
        return ReplyDecision::Undecided;
    };
    let readings = readings(&line);
    let is = |phrase: &str| readings.contains(&plain(phrase).as_str());
    let approves = approve.iter().any(|it| is(it.as_ref())) || APPROVALS.iter().any(|it| is(it));
    let rejects = reject.iter().any(|it| is(it.as_ref())) || REJECTIONS.iter().any(|it| is(it));
    let discusses = discuss.iter().any(|it| is(it.as_ref()));
    match (approves, rejects, discusses) {
        (true, false, false) => ReplyDecision::Approve,
        (false, true, false) => ReplyDecision::Reject,
        (true, true, _) | (false, false, _) | (_, _, true) => ReplyDecision::Undecided,
    }
}

/// In lower case, with single spaces; both kinds of apostrophe count as the same, because phones write the other one.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('\u{2019}', "'").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The possible readings of a line: itself, without the mark at its end, without a courtesy. Never empty.
fn readings(line: &str) -> Vec<&str> {
    let bare = without_mark(line);
    let mut all = vec![line, bare];
    for courtesy in COURTESIES {
        let Some(rest) = bare.strip_suffix(courtesy) else { continue };
        let before = rest.trim_end_matches(' ');
        let before = before.strip_suffix(',').unwrap_or(before);
        if before.len() < rest.len() {
            all.extend([before, without_mark(before)]);
        }
    }
    all.retain(|reading| !reading.is_empty());
    all
}

fn without_mark(text: &str) -> &str {
    text.strip_suffix(['.', '!']).unwrap_or(text).trim_end()
}

/// The most lines over which an attribution may be broken.
const ATTRIBUTION_LINES_MAX: usize = 3;
/// Lines after `From:` among which another header makes it a quoted mail.
const HEADER_LINES_MAX: usize = 4;

/// The writer's own words in the body of a mail (`tests/corpus/conversation/sentences.tsv#7c-1d`): without lines that
/// begin with `>`, without `On … wrote:` and what it introduces, without what follows another program's line that
/// begins a quoted mail, without the signature below `-- `. Reads at most [`MAIL_BYTES_MAX`] bytes. Lines end in `\n`;
/// empty ones at both ends are removed.
#[must_use]
pub fn own_text(body: &str) -> String {
    let mut end = body.len().min(MAIL_BYTES_MAX);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    let lines: Vec<&str> = body[..end].lines().map(str::trim_end).collect();
    let mut own = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim_start();
        if line == "--" || begins_quoted_mail(&lines[at..]) {
            break;
        }
        if let Some(length) = attribution(&lines[at..]) {
            at += length;
            let next = lines[at..].iter().find(|line| !line.is_empty());
            // without marks, the end of the quoted text is unknown
            if next.is_none_or(|next| !next.trim_start().starts_with('>')) {
                break;
            }
            continue;
        }
        if !line.starts_with('>') {
            own.push(lines[at]);
        }
        at += 1;
    }
    own.join("\n").trim_matches('\n').to_owned()
}

/// How many lines an `On … wrote:` takes, if one begins here.
fn attribution(lines: &[&str]) -> Option<usize> {
    if !lines[0].trim_start().starts_with("On ") {
        return None;
    }
    let lines = lines.iter().take(ATTRIBUTION_LINES_MAX).take_while(|line| !line.is_empty());
    lines.enumerate().find(|(_, line)| line.ends_with("wrote:")).map(|(at, _)| at + 1)
}

/// Returns true if another program's quoted mail begins here: a line that says so, a rule of underscores, or headers.
fn begins_quoted_mail(lines: &[&str]) -> bool {
    let line = lines[0].trim();
    let rule = line.len() >= 10 && line.bytes().all(|byte| byte == b'_');
    let said = line.starts_with("-----")
        && ["Original Message", "Forwarded message", "Original message"].iter().any(|it| line.contains(it));
    let header = |line: &&str| {
        ["Sent:", "To:", "Date:", "Subject:"].iter().any(|name| line.trim_start().starts_with(name))
    };
    rule || said || (line.starts_with("From:") && lines.iter().skip(1).take(HEADER_LINES_MAX).any(header))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(reply: &str) -> ReplyDecision {
        decision_line(
            reply,
            &["ship it", "either", "no objections", "by and by"],
            &["Not  Now", "don't pay", "either", "later"],
            &["By and by", "later", "lgtm"],
        )
    }

    #[test]
    fn a_whole_line_decides() {
        for reply in [
            "yes",
            "Approve",
            "APPROVED!",
            "\n\n  Looks   good.\nbut mind the gap",
            "ship it",
            "Ship it.",
            "no objections",
            "yes, thanks",
            "Approved, thank you!",
            "ok cheers",
            "Approve! Thanks.",
            "go ahead please",
            "agreed , thanks",
        ] {
            assert_eq!(verdict(reply), ReplyDecision::Approve, "{reply}");
        }
        for reply in ["no", "Rejected.", "deny, thanks", "not now", "Don\u{2019}t pay.", "No!\nyes"] {
            assert_eq!(verdict(reply), ReplyDecision::Reject, "{reply}");
        }
    }

    #[test]
    fn anything_else_is_undecided() {
        for reply in [
            "",
            "\n",
            "either",
            "not approved",
            "I do not approve",
            "yes but",
            "yes?",
            "yes!!",
            "approve it",
            "yes, thanks a lot",
            "yesthanks",
            "thanks",
            ", thanks",
            "yes no",
            "yes, thanks, thanks",
            "maybe\nyes",
            "looks good; ship it",
            "by and by",
            "Later.",
            "lgtm",
        ] {
            assert_eq!(verdict(reply), ReplyDecision::Undecided, "{reply}");
        }
    }

    #[test]
    fn an_empty_hint_decides_nothing() {
        for reply in [".", "!", ", thanks", "thanks", ""] {
            assert_eq!(decision_line(reply, &["", " "], &[], &[]), ReplyDecision::Undecided, "{reply}");
        }
    }

    #[test]
    fn quoted_text_and_signatures_are_not_the_writers_own() {
        assert_eq!(own_text("Yes\r\n\r\nOn Mon, Ann <a@x.org> wrote:\r\n> Approve?\r\n> Please\r\n"), "Yes");
        assert_eq!(own_text("> Approve?\nYes\n> And this?\nNo"), "Yes\nNo");
        assert_eq!(
            own_text(
                "On Mon, 1 May 2023 at 10:00, Somebody\n<somebody@example.org> wrote:\n\n> Approve?\n\nYes"
            ),
            "Yes"
        );
        assert_eq!(own_text("Yes\n\nOn Mon Ann wrote:\nApprove?\nno"), "Yes", "quoted without marks");
        assert_eq!(own_text("Yes\n-- \nAnn\nReject Ltd"), "Yes");
        assert_eq!(own_text("Yes\n-----Original Message-----\nno"), "Yes");
        assert_eq!(own_text("Yes\n________________________________\nFrom: x\nno"), "Yes");
        assert_eq!(own_text("Yes\n\nFrom: Ann\nSent: Monday\nTo: Bob\nSubject: x\n\nno"), "Yes");
    }

    #[test]
    fn what_only_looks_like_a_quote_stays() {
        for text in [
            "On Monday I wrote to him\nand he came",
            "From: me it is fine",
            "--- no ---",
            "a -- b",
            "__init__",
            "On it.\n\nShe wrote:",
        ] {
            assert_eq!(own_text(text), text);
        }
    }

    #[test]
    fn a_long_mail_is_cut_between_characters() {
        let long = "é".repeat(MAIL_BYTES_MAX);
        assert_eq!(own_text(&format!("x{long}")).len(), MAIL_BYTES_MAX - 1);
    }

    proptest! {
        #[test]
        fn nothing_behind_a_quote_mark_decides(quoted in "[ -~]{0,40}") {
            let mail = format!("> {quoted}\n>{quoted}\n");
            prop_assert_eq!(own_text(&mail), "");
        }

        #[test]
        fn a_word_more_decides_nothing(more in "[a-z]{1,8}") {
            prop_assume!(!["please", "cheers", "thanks"].contains(&more.as_str()));
            let said = decision_line::<&str>(&format!("approved {more}"), &[], &[], &[]);
            prop_assert_eq!(said, ReplyDecision::Undecided);
        }
    }
}
