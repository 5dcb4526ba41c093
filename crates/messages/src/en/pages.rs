//! What a decision page says, beside what it shows of the gate, and the forms by which people answer on it.

use std::borrow::Cow;
use switchward_machine::{Decision, GateKind, Time};
use switchward_state::limits::{PAGE_CODE_DIGITS, PAGE_CODE_MS};

use super::gates::at;
use crate::clean::{clean, prose};
use crate::piece::Piece;

/// The tag of this language in HTML.
pub const LANGUAGE: &str = "en";

/// Where an open gate stands, for the person whose page it is.
#[derive(Debug, Clone, Copy)]
pub enum PageState<'p> {
    /// They were sent a newer mail about it.
    Newer,
    /// They are the requester.
    Own {
        /// The person whose page it is.
        person: &'p str,
    },
    /// They were asked because the directory led to them, and it does not any more.
    NotListed {
        /// The person whose page it is.
        person: &'p str,
    },
    /// The requester was recognised in this browser.
    OwnBrowser {
        /// The person whom the browser is known as.
        requester: &'p str,
    },
    /// They must be recognised first.
    Unrecognised {
        /// The person whose page it is.
        person: &'p str,
    },
    /// They have approved, and others must.
    Approved {
        /// The person whose page it is.
        person: &'p str,
        /// When.
        at: Time,
        /// Their comment; may be empty.
        comment: &'p str,
    },
    /// They may decide.
    Waiting {
        /// The person whose page it is.
        person: &'p str,
    },
}

/// Where an open gate stands, in a sentence or two that begin with a symbol.
#[must_use]
pub fn page_state<'p>(state: &PageState<'p>) -> Vec<Piece<'p>> {
    match *state {
        PageState::Newer => {
            vec![Piece::plain("■ There is a newer mail about this. Please use the link in the newest mail.")]
        }
        PageState::Own { person } => {
            around("■ You, ", person, ", asked for this yourself. Somebody else must decide.")
        }
        PageState::NotListed { person } => around(
            "■ You, ",
            person,
            ", cannot decide: the directory does not lead to you any more. Somebody else must decide.",
        ),
        PageState::OwnBrowser { requester } => around(
            "■ This browser is known as ",
            requester,
            ", who asked for this. Somebody else must decide.",
        ),
        PageState::Unrecognised { person } => {
            around("● Waiting for a decision by ", person, ". This page does not know you yet.")
        }
        PageState::Approved { person, at: time, comment } => {
            let comment =
                if comment.is_empty() { String::new() } else { format!(" “{}”", prose(comment)) };
            vec![
                Piece::plain("✓ You, "),
                Piece::strong(person),
                Piece::plain(format!(", approved at {}{comment}. More approvals are needed.", at(time))),
            ]
        }
        PageState::Waiting { person } => around("● Waiting for a decision. You are ", person, "."),
    }
}

fn around<'p>(before: &'static str, strong: &'p str, after: &'static str) -> Vec<Piece<'p>> {
    vec![Piece::plain(before), Piece::strong(strong), Piece::plain(after)]
}

/// A problem with what a person did on a page.
#[derive(Debug, Clone, Copy)]
pub enum PageProblem<'p> {
    /// The requester was recognised in this browser.
    OwnBrowser {
        /// The person whom the browser is known as.
        requester: &'p str,
    },
    /// Nobody was recognised.
    Unrecognised,
    /// The server cannot do it now; nothing was changed.
    Later,
    /// The server does not know whether it was recorded.
    Uncertain,
    /// The page does not ask for a code.
    NoCodeNeeded,
    /// What was entered is not the code that was mailed.
    WrongCode {
        /// How many attempts are left.
        left: u32,
    },
    /// The page does not ask for a sign-in.
    NoSignInNeeded,
    /// The provider cannot be used now.
    SignInUnavailable,
    /// The server has no provider.
    NoProvider,
    /// Somebody else signed in.
    SignedInAsOther {
        /// The person whose page it is.
        person: &'p str,
    },
    /// The provider does not confirm the address.
    AddressUnproved {
        /// The person whose page it is.
        person: &'p str,
    },
    /// The sign-in failed for another reason.
    NotSignedIn,
    /// The server failed.
    Internal,
}

/// What went wrong and what to do, in a sentence or two.
#[must_use]
pub fn page_problem(problem: &PageProblem<'_>) -> String {
    match problem {
        PageProblem::OwnBrowser { requester } => {
            format!("This browser is known as {requester}, who asked for this. Somebody else must decide.")
        }
        PageProblem::Unrecognised => "This page does not know you yet.".to_owned(),
        PageProblem::Later => "The server cannot do this now. Please try again in a moment.".to_owned(),
        PageProblem::Uncertain => {
            "It is not known whether this was recorded. Please look at the request below before you send it again."
                .to_owned()
        }
        PageProblem::NoCodeNeeded => "This page does not need a code.".to_owned(),
        PageProblem::WrongCode { left: 0 } => {
            "That is not the code, and the code is no longer valid. Ask for another one.".to_owned()
        }
        PageProblem::WrongCode { left: 1 } => "That is not the code. You can try once more.".to_owned(),
        PageProblem::WrongCode { left } => {
            format!("That is not the code. You can try {left} more times.")
        }
        PageProblem::NoSignInNeeded => "This page does not need a sign-in.".to_owned(),
        PageProblem::SignInUnavailable => {
            "Sign-in is not possible now. Please try again in a moment.".to_owned()
        }
        PageProblem::NoProvider => "Sign-in is not possible: this server has no OpenID provider.".to_owned(),
        PageProblem::SignedInAsOther { person } => {
            format!("You signed in as somebody else. This page is for {person}.")
        }
        PageProblem::AddressUnproved { person } => {
            format!("The provider does not confirm that your mail address is {person}.")
        }
        PageProblem::NotSignedIn => "You were not signed in. Please try again.".to_owned(),
        PageProblem::Internal => "Something went wrong.".to_owned(),
    }
}

/// Why there is no request to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAbsence {
    /// The link leads to nothing.
    Unknown,
    /// The request cannot be read now.
    Later,
    /// The form did not arrive completely.
    Incomplete,
    /// The sign-in was not begun in this browser, or too long ago.
    SignInUnknown,
    /// The server failed.
    Internal,
}

/// A page that shows no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptyPage {
    /// The heading.
    pub title: &'static str,
    /// The reason, or what to do.
    pub why: Option<&'static str>,
}

/// The page that is shown instead of a request.
#[must_use]
pub fn page_absence(absence: PageAbsence) -> EmptyPage {
    let (title, why) = match absence {
        PageAbsence::Unknown => (
            "There is no request for this link.",
            Some("A mail program may have cut it off, or it belongs to another server."),
        ),
        PageAbsence::Later => (
            "The request cannot be shown now.",
            Some("No decision was recorded. Please try again in a moment."),
        ),
        PageAbsence::Incomplete => ("The form did not arrive completely.", None),
        PageAbsence::SignInUnknown => (
            "This sign-in is not known.",
            Some(
                "It was started in another browser, or more than 10 minutes ago. Please open the link in your mail \
                 again. (state_unknown)",
            ),
        ),
        PageAbsence::Internal => ("Something went wrong.", None),
    };
    EmptyPage { title, why }
}

/// The kind of a gate with a capital letter, as a page shows it.
#[must_use]
pub fn gate_kind(kind: GateKind) -> &'static str {
    match kind {
        GateKind::Notify => "Review",
        GateKind::ToolAsk => "Tool call",
        GateKind::Approval => "Approval",
        GateKind::Task => "Task",
    }
}

/// The heading of a page whose request has no subject: about a call of this capability, if it is about one.
#[must_use]
pub fn page_heading(capability: Option<&str>) -> String {
    match capability {
        Some(capability) => format!("May {} be called?", clean(capability)),
        None => "A decision is needed".to_owned(),
    }
}

/// Who commented, and when.
#[must_use]
pub fn commented(by: &str, time: Time) -> String {
    format!("{by} at {}", at(time))
}

/// Asks a person to sign in.
#[must_use]
pub fn sign_in_as(person: &str) -> Vec<Piece<'_>> {
    around("To decide here, sign in as ", person, ".")
}

/// Asks a person to have a code sent.
#[must_use]
pub fn confirm_by_code(person: &str) -> Vec<Piece<'_>> {
    around("To decide here, confirm that you are ", person, ": a code is mailed to that address.")
}

/// The label of the field for a code.
#[must_use]
pub fn code_label(person: &str) -> String {
    format!("The code that was sent to {person}")
}

/// What a code looks like, and how long it is valid.
#[must_use]
pub fn code_hint() -> String {
    format!(
        "{PAGE_CODE_DIGITS} digits, valid for {} minutes. Entering it decides nothing.",
        PAGE_CODE_MS / 60_000
    )
}

/// A fixed text of a decision page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLabel {
    /// Before a problem, if nothing was recorded.
    NothingRecorded,
    /// The heading of the author's text.
    Request,
    /// The heading of what the engine knows.
    Details,
    /// The heading of the comments.
    Comments,
    /// The button that goes to the provider.
    SignIn,
    /// What a sign-in does.
    SignInHint,
    /// A sign-in is required, but the server has no provider.
    NoProvider,
    /// The button that mails a code.
    SendCode,
    /// The button that mails another code.
    SendAnotherCode,
    /// The button below the field for a code.
    Continue,
}

/// A fixed text of a decision page.
#[must_use]
pub fn page_text(label: PageLabel) -> &'static str {
    match label {
        PageLabel::NothingRecorded => "Nothing was recorded.",
        PageLabel::Request => "The request, as the process wrote it",
        PageLabel::Details => super::answering::DETAILS,
        PageLabel::Comments => "Comments so far",
        PageLabel::SignIn => "Sign in",
        PageLabel::SignInHint => "You come back to this page. Signing in decides nothing.",
        PageLabel::NoProvider => "This page requires a sign-in, but this server has no OpenID provider.",
        PageLabel::SendCode => "Send the code",
        PageLabel::SendAnotherCode => "Send another code",
        PageLabel::Continue => "Continue",
    }
}

/// A text of the forms by which a person answers on a decision page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormText<'f> {
    /// The heading of the choices.
    Decision,
    /// The choice of a decision.
    Choice {
        /// What the person would decide.
        decision: Decision,
    },
    /// The choice that decides nothing.
    Neither,
    /// The label of the field for a comment on a decision.
    Comment,
    /// When that comment is required.
    CommentHint,
    /// The button that sends a decision.
    Decide,
    /// What a decision does.
    DecideHint {
        /// The rule of the gate; may be empty.
        rule: &'f str,
    },
    /// The label of the field for the answer to a task.
    Answer,
    /// The button that sends an answer.
    SendAnswer,
    /// The label of the field for the person who gets the request.
    HandOverTo,
    /// Who can be named there.
    HandOverToHint,
    /// Beside a field that can stay empty.
    Optional,
    /// The button that hands the request over.
    HandOver,
    /// What that does.
    HandOverHint,
    /// The title of the page after that.
    HandedOver,
    /// What that page says.
    HandedTo {
        /// Who has the request now, as the person wrote it.
        to: &'f str,
    },
}

/// A text of a form: a label, a button or a hint.
#[must_use]
pub fn form_text(text: FormText<'_>) -> Cow<'static, str> {
    match text {
        FormText::Decision => "Your decision".into(),
        FormText::Choice { decision } => capital(decision.word()).into(),
        FormText::Neither => "Neither: ask a question or comment".into(),
        FormText::Comment => "Comment".into(),
        FormText::CommentHint => "(required for a question, otherwise optional)".into(),
        FormText::Decide => "Record the decision".into(),
        FormText::DecideHint { rule } => {
            let recorded =
                "Your decision and your comment are recorded with your address and cannot be withdrawn.";
            format!("{rule} {recorded}").trim_start().to_owned().into()
        }
        FormText::Answer => "Your answer".into(),
        FormText::SendAnswer => "Send the answer".into(),
        FormText::HandOverTo => "Hand over to".into(),
        FormText::HandOverToHint => "(a name or an address from your directory)".into(),
        FormText::Optional => "(optional)".into(),
        FormText::HandOver => "Hand the request over".into(),
        FormText::HandOverHint => {
            "They are asked instead of you. It is recorded with your address and decides nothing.".into()
        }
        FormText::HandedOver => "You have handed the request over.".into(),
        FormText::HandedTo { to } => {
            format!("{} is asked now. Your link is no longer valid.", clean(to)).into()
        }
    }
}

/// Why a form is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormProblem {
    /// It is not a form of the page.
    Changed,
    /// It asks a question, and has no text.
    NoQuestion,
    /// It answers a task, and has no text.
    NoAnswer,
    /// It has no decision.
    NoDecision,
    /// It hands the request over, and names nobody.
    NoReceiver,
}

/// Why a form is not accepted, and what to do.
#[must_use]
pub fn form_problem(problem: FormProblem) -> &'static str {
    match problem {
        FormProblem::Changed => {
            "The form does not belong to this page, or it was changed. Please open the page again."
        }
        FormProblem::NoQuestion => "Write your question first.",
        FormProblem::NoAnswer => "Write your answer first.",
        FormProblem::NoDecision => "Choose one of the decisions first.",
        FormProblem::NoReceiver => "Write first who gets the request.",
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
