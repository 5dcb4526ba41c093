//! What only mails say.

use switchward_machine::Time;
use switchward_state::policy::time_text;

use crate::clean::prose;

/// What the mail with the code of a decision page is made of.
#[derive(Debug, Clone, Copy)]
pub struct PageCodeFacts<'c> {
    /// The code: digits.
    pub code: &'c str,
    /// The subject of the request.
    pub request: &'c str,
    /// Until when the code is valid.
    pub until: Time,
}

/// The body of the mail with the code of a decision page.
#[must_use]
pub fn page_code(facts: PageCodeFacts<'_>) -> String {
    let (first, second) = facts.code.split_at(facts.code.floor_char_boundary(facts.code.len() / 2));
    let (about, until) = (prose(facts.request), time_text(facts.until));
    format!(
        "{first} {second}\n\n\
         is your code for the decision page of this request:\n\n    {about}\n\n\
         It is valid once, until {until}. Enter it on the page and do not share it: anyone who has it can decide in\n\
         your name. If you did not ask for it, somebody else has the link that was mailed to you. They have not\n\
         decided anything, and you can still answer the mail.\n"
    )
}

/// The subject of a mail that asks again.
#[must_use]
pub fn reminder(subject: &str) -> String {
    format!("Reminder: {subject}")
}
