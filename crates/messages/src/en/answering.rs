//! What the server adds to a mail that asks: how to answer it, the names of its parts, the line above what replies quote.

use std::borrow::Cow;

use crate::piece::Piece;

/// The line above everything that a reply quotes.
pub const REPLY_ABOVE: &str = "--- reply above this line ---";
/// The heading of what the engine knows.
pub const DETAILS: &str = "Details";
/// The link to a decision page in a mail that asks for nothing.
pub const DECISION_PAGE: &str = "Decision page";

const TOO_LONG: &str =
    "The request is too long for a mail: read all of it on the decision page, and approve it there.";

/// A choice, and the words that decide it.
#[derive(Debug, Clone, Copy)]
pub struct ChoiceFacts<'c> {
    /// The word that approves.
    pub approve: &'c str,
    /// The word that rejects.
    pub refuse: &'c str,
    /// The other words that approve, and those that reject; either may be empty.
    pub also: (&'c str, &'c str),
    /// Whether a reply cannot approve, because the request is too long for a mail.
    pub page_only: bool,
    /// Whether any other reply is passed on as a question that moves the process.
    pub discusses: bool,
    /// What it takes to decide: see [`rule`](crate::rule).
    pub rule: &'c str,
}

/// How the reader of a mail that asks can answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerFacts<'a> {
    /// The choice; `None` if the mail asks for a text.
    pub choice: Option<ChoiceFacts<'a>>,
    /// Whether replies are read.
    pub replies: bool,
    /// The address of the decision page, if there is one.
    pub page: Option<&'a str>,
}

/// How to answer, with a heading of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction<'i> {
    /// A line above the text.
    pub heading: &'static str,
    /// One or more sentences.
    pub text: Vec<Piece<'i>>,
}

/// The subject of a mail that asks for a decision.
#[must_use]
pub fn asking(subject: &str) -> Cow<'_, str> {
    if subject.to_lowercase().contains("approve") {
        Cow::Borrowed(subject)
    } else {
        Cow::Owned(format!("Approve? {subject}"))
    }
}

/// The heading of a text that does not come from the engine.
#[must_use]
pub fn origin(facts: &AnswerFacts<'_>) -> &'static str {
    if facts.choice.is_some() { "The request, as the process wrote it" } else { "The question" }
}

/// How to answer, as lines of plain text: words, the page, the rule.
#[must_use]
pub fn answer_lines(facts: &AnswerFacts<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    match (&facts.choice, facts.replies) {
        (Some(choice), true) if choice.page_only => {
            lines.push(TOO_LONG.to_owned());
            lines.push(format!("To reject, answer with {} on the first line.", choice.refuse.to_uppercase()));
            lines.push(other_text(choice).to_owned());
        }
        (Some(choice), true) => {
            lines.push("To decide, answer this mail with one word on the first line:".to_owned());
            let (approve, refuse) = (choice.approve.to_uppercase(), choice.refuse.to_uppercase());
            lines
                .push(format!("  {approve}    or    {refuse}      (a comment may follow on the next lines)"));
            lines.extend(other_words(choice));
            lines.push(other_text(choice).to_owned());
        }
        (None, true) => lines.push("To answer, reply to this mail; your text is the answer.".to_owned()),
        (_, false) => {}
    }
    lines.extend(facts.page.map(page_line));
    lines.extend(facts.choice.map(|choice| format!("Rule: {}", choice.rule)));
    lines
}

/// How to answer by mail, in sentences; `None` if no reply is read.
#[must_use]
pub fn instruction(facts: &AnswerFacts<'_>) -> Option<Instruction<'static>> {
    let strong = |word: &str| Piece::strong(word.to_uppercase());
    let (heading, text) = match (&facts.choice, facts.replies) {
        (_, false) => return None,
        (Some(choice), true) if choice.page_only => (
            "To decide",
            vec![
                Piece::plain(format!("{TOO_LONG} To reject, answer this mail with ")),
                strong(choice.refuse),
                Piece::plain(format!(" on the first line. {}", other_text(choice))),
            ],
        ),
        (Some(choice), true) => (
            "To decide",
            vec![
                Piece::plain("Answer this mail with one word on the first line: "),
                strong(choice.approve),
                Piece::plain(" or "),
                strong(choice.refuse),
                Piece::plain(format!(". A comment may follow on the next lines. {}", other_text(choice))),
            ],
        ),
        (None, true) => ("To answer", vec![Piece::plain("Reply to this mail; your text is the answer.")]),
    };
    Some(Instruction { heading, text })
}

/// The link to a page, as a line of plain text.
#[must_use]
pub fn page_line(page: &str) -> String {
    format!("{DECISION_PAGE}: {page}")
}

/// The label of the link to the page.
#[must_use]
pub fn page_label(facts: &AnswerFacts<'_>) -> &'static str {
    if facts.choice.is_some() { "Open the decision page" } else { "Answer on a page" }
}

/// Names the other words that decide; `None` if there are none for one of the decisions, or no reply can approve.
#[must_use]
pub fn other_words(choice: &ChoiceFacts<'_>) -> Option<String> {
    let (approve, refuse) = choice.also;
    (!choice.page_only && !approve.is_empty() && !refuse.is_empty()).then(|| {
        format!(
            "These words, alone on the first line, decide as well. To approve: {approve}. To reject: {refuse}."
        )
    })
}

/// What becomes of a reply that decides nothing.
fn other_text(choice: &ChoiceFacts<'_>) -> &'static str {
    if choice.discusses {
        "Any other text is passed on as a question and approves nothing."
    } else {
        "Any other text is recorded as a comment and decides nothing."
    }
}
