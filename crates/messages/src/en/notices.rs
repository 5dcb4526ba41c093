//! What the server writes to people by itself about their answers.

use switchward_machine::{Channel, Decision};
use switchward_state::approval::{Closing, NotCounted, Notice, Receipt};
use switchward_state::limits::QUESTION_LINE_BYTES_MAX;
use switchward_state::policy::{Shortage, time_text};

use super::people::{names, so_far, who};

const HOW_TO_DECIDE: &str = "To decide, reply with a first line that says only \"approve\" or \"reject\".";

/// The subject of a notice; `about` is the subject of the request, or of the mail that it answers.
pub(crate) fn subject(channel: Channel, about: &str, notice: &Notice) -> String {
    match notice {
        Notice::PageCode => format!("Your code for: {about}"),
        Notice::Question { by, comment } if channel == Channel::Chat => question_line(by, comment),
        Notice::Decided { .. }
        | Notice::Counted { .. }
        | Notice::ApprovedBefore { .. }
        | Notice::CannotApprove { .. }
        | Notice::NotCounted { .. }
        | Notice::Answered { .. }
        | Notice::PassedOn
        | Notice::Commented
        | Notice::Late { .. }
        | Notice::ReplyReceived
        | Notice::ReplyUnclear
        | Notice::ReplyUnexpected
        | Notice::ReplyUnproved
        | Notice::Question { .. }
        | Notice::Assigned { .. } => answering(about),
    }
}

/// The subject of a mail that answers another.
fn answering(subject: &str) -> String {
    let subject = subject.trim();
    if subject.get(..3).is_some_and(|first| first.eq_ignore_ascii_case("re:")) {
        return subject.to_owned();
    }
    format!("Re: {subject}")
}

/// What lists show of a question: one line, at most [`QUESTION_LINE_BYTES_MAX`] bytes.
fn question_line(by: &str, comment: &str) -> String {
    let mut line = format!("Question of {by}: {}", comment.trim().lines().next().unwrap_or_default());
    line.truncate(line.floor_char_boundary(QUESTION_LINE_BYTES_MAX));
    line
}

/// The body of a notice. That of a page code is empty: see [`page_code`](super::mails::page_code).
pub(crate) fn body(about: &str, notice: &Notice) -> String {
    match notice {
        Notice::PageCode => String::new(),
        Notice::Decided { decision, receipt } => receipted(&decided(*decision), receipt),
        Notice::Counted { receipt, progress } => {
            let said = receipted(&decided(Decision::Approve), receipt);
            format!("{said}\nIt counts, and the request is still open: {}.", so_far(progress))
        }
        Notice::ApprovedBefore { progress } => format!(
            "You have already approved this request, and each person counts once: approving again changes nothing. To \
             reject it, reply with a first line that says only \"reject\".\nThe request is still open: {}.",
            so_far(progress)
        ),
        Notice::CannotApprove { shortage } => {
            format!("Your approval was received, but the call cannot be approved now: {}.", cannot(shortage))
        }
        Notice::NotCounted { why } => not_counted(*why).to_owned(),
        Notice::Answered { receipt } => receipted("Your answer is recorded.", receipt),
        Notice::PassedOn => format!(
            "Your reply was passed on as a question. It decides nothing, and the request is still open.\n\
             {HOW_TO_DECIDE}"
        ),
        Notice::Commented => format!(
            "Your reply was recorded as a comment. It decides nothing, and the request is still open.\n\
             {HOW_TO_DECIDE}"
        ),
        Notice::Late { at, closing } => format!(
            "Your reply came after this request was closed, and changes nothing.\nClosed at {}: {}.",
            time_text(*at),
            closed(closing)
        ),
        Notice::ReplyReceived => "Your reply was received and passed on.".to_owned(),
        Notice::ReplyUnclear => {
            "Your reply was received, but it has no effect: its meaning is not clear. An answer is still expected."
                .to_owned()
        }
        Notice::ReplyUnexpected => {
            "Your reply was received and stored. It has no effect, because no answer is expected at present."
                .to_owned()
        }
        Notice::ReplyUnproved => {
            "Your reply was received, but it has no effect: it could not be verified that you sent it to this \
             address. Some mail services do not sign the address that a mail goes to. Please answer from another mail \
             service, or tell the person who wrote to you."
                .to_owned()
        }
        Notice::Question { by, comment } => {
            format!("{by} has a question about the request {about:?}, which is still open:\n\n{comment}")
        }
        Notice::Assigned { by, to } => format!(
            "This request is no longer yours: {} has handed it to {to}, who is asked now. You need not answer it, and \
             your answer would decide nothing.",
            who(&by.by, by.via)
        ),
    }
}

fn receipted(said: &str, receipt: &Receipt) -> String {
    let Receipt { gate, session, at } = receipt;
    format!("{said}\nReceipt: gate {} of {session}, {}.", gate.0, time_text(*at))
}

/// A decision, for its sender.
fn decided(decision: Decision) -> String {
    match decision {
        Decision::Discuss => {
            "Your reply was passed on as a question. It approves nothing, and this request is closed. If a \
             decision is still needed, you will be asked again."
                .to_owned()
        }
        Decision::Approve | Decision::Refuse | Decision::Answer => {
            format!("Your decision is recorded: {}.", decision.word())
        }
    }
}

/// Why a call cannot be approved now.
pub(crate) fn cannot(shortage: &Shortage) -> String {
    let open = match shortage {
        Shortage::Grants { .. } => "",
        Shortage::Money { .. } | Shortage::Mails { .. } | Shortage::Limit { .. } => "; the gate stays open",
    };
    format!("{}{open}", super::policy::shortage(shortage))
}

/// Why a reply does not count at an open gate, and what to do.
fn not_counted(why: NotCounted) -> &'static str {
    match why {
        NotCounted::Earlier => {
            "Your reply answers an earlier mail about this request and decides nothing: you have been asked again \
             since then.\nPlease reply to the newest mail."
        }
        NotCounted::Own => {
            "Your reply was received, but it decides nothing: you asked for this decision yourself, and somebody \
             else must make it."
        }
        NotCounted::Foreign => {
            "Your reply was received, but it decides nothing: it answers a mail that was sent to somebody else.\n\
             Please reply to the one that was sent to you."
        }
        NotCounted::Unseen => {
            "Your reply was received, but it approves nothing: the request is too long for a mail, which showed only \
             its beginning.\nPlease read all of it on the decision page, and decide there."
        }
        NotCounted::Empty => {
            "Your reply contained no text of your own, and the request is still open.\n\
             To answer it, write above the quoted text."
        }
        NotCounted::Unproved => {
            "Your reply was received, but it decides nothing: it could not be verified that you sent it to this \
             address. Some mail services do not sign the address that a mail goes to.\nPlease decide on the decision \
             page."
        }
        NotCounted::NoLongerRecipient => {
            "Your reply was received, but it decides nothing: you are not asked any more. The request was given to \
             somebody else, or the directory does not lead to you any more."
        }
        NotCounted::ReceiverUnknown => {
            "Your reply was received, and the request is still yours: the directory has no single person with the \
             name that you wrote.\nTo hand the request over, reply with a first line that says \"assign to\" and the \
             name or the address of one person in the directory."
        }
        NotCounted::ReceiverUnfit => {
            "Your reply was received, but the request has not been handed over: one of you asked for this decision or \
             has already approved it, or the person whom you named is also asked.\nTo hand the request over, name \
             somebody else."
        }
    }
}

/// How a gate was closed, for somebody who wrote too late.
fn closed(closing: &Closing) -> String {
    match closing {
        Closing::Answered => "an answer had come before".to_owned(),
        Closing::Decided { decision, by, approved } => {
            let names = names(approved);
            let all = match (approved.is_empty(), decision) {
                (true, _) => String::new(),
                (false, Decision::Approve) => format!(" (approved by {names})"),
                (false, _) => format!(" ({names} had approved)"),
            };
            let word = match decision {
                Decision::Discuss => "a question, with which the request was closed",
                Decision::Approve | Decision::Refuse | Decision::Answer => decision.word(),
            };
            format!("{} decided before: {word}{all}", who(&by.by, by.via))
        }
        Closing::Lapsed { approved } if approved.is_empty() => "nobody had decided in time".to_owned(),
        Closing::Lapsed { approved } => format!("too few had approved in time ({})", names(approved)),
        Closing::Voided => "the process had moved on".to_owned(),
    }
}
