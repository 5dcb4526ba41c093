//! Words for people: what the server says by itself in mails, in conversations, on pages and in the API, and what the
//! command line says, rendered from typed facts.
//!
//! `en` has all words; another language is a folder beside it, with the same functions. What an author, a person or an
//! agent has written is passed through. The functions that make foreign text safe to show are here, too.
//!
//! This crate must never know: how a command is decided, who reads a text, how it is sent.

mod clean;
mod en;
mod fact;
mod piece;
mod text;

pub use clean::{clean, exact, prose};
pub use en::answering::{
    AnswerFacts, ChoiceFacts, DECISION_PAGE, DETAILS, Instruction, REPLY_ABOVE, answer_lines, asking,
    instruction, origin, other_words, page_label, page_line,
};
pub use en::closed::outcome;
pub use en::command_line as cli;
pub use en::deliveries::delivery_failure;
pub use en::delivery_details::delivery_detail;
pub use en::directory::directory_warning;
pub use en::evidence::reply_evidence;
pub use en::faults::{end_comment, fault, remedy, result_problem, work_problem};
pub use en::gate_lines::{
    APPROVED_BY_YOU, CALL_TO_REPEAT, GateLine, GateMatter, NOBODY, Notified, gate_about, gate_decided,
    gate_deciders, gate_message, gate_question, gate_voided, gate_waited, inputs_held, quorum,
    reminders_left, vote_way,
};
pub use en::gates::{at, facts, request, rule};
pub use en::mails::{PageCodeFacts, page_code, reminder};
pub use en::pages::{
    EmptyPage, FormProblem, FormText, LANGUAGE, PageAbsence, PageLabel, PageProblem, PageState, code_hint,
    code_label, commented, confirm_by_code, form_problem, form_text, gate_kind, page_absence, page_heading,
    page_problem, page_state, page_text, sign_in_as,
};
pub use en::people::approvals;
pub use en::policy::{CallOutcome, call_grounds, call_outcome, shortage};
pub use en::public_events::public_value;
pub use en::refusals::refusal;
pub use en::server_pages;
pub use en::session_warnings::session_warning;
pub use en::warnings::{mail_cap, warning};
pub use fact::{Fact, GateFacts, Medium};
pub use piece::Piece;
pub use text::{Text, subject, text};
