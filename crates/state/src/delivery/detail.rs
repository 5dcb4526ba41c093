//! What exactly goes wrong with deliveries: facts, which the crate `messages` puts into words.

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

use super::detail_of_mail::MailProblem;
use super::detail_of_request::{AddressProblem, ExchangeProblem, RequestProblem};

/// What exactly has gone wrong with a delivery, beside the code of its failure. Processes send it to each other as JSON, too.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryDetail {
    /// A text from outside: the reply of a mail server, an error of a library, the report of a program.
    #[n(0)]
    Quoted {
        /// The text as it came, maybe cut.
        #[n(0)]
        text: String,
    },
    /// Something is larger than it may be.
    #[n(1)]
    TooLarge {
        /// What is too large.
        #[n(0)]
        part: SizedPart,
        /// Its size, bytes.
        #[n(1)]
        bytes: u64,
        /// The limit, bytes.
        #[n(2)]
        max: u64,
    },
    /// The address may not be requested.
    #[n(2)]
    Address(#[n(0)] AddressProblem),
    /// The request may not be sent.
    #[n(3)]
    Request(#[n(0)] RequestProblem),
    /// The connection failed, or the answer was not the expected one.
    #[n(4)]
    Exchange(#[n(0)] ExchangeProblem),
    /// The mail cannot be composed or sent.
    #[n(5)]
    Mail(#[n(0)] MailProblem),
    /// The model cannot be asked, or has not answered the question.
    #[n(6)]
    Model(#[n(0)] ModelProblem),
    /// The job was not begun.
    #[n(7)]
    Job(#[n(0)] JobProblem),
    /// It is not known what became of a single message to an endpoint, or it was not sent.
    #[n(8)]
    Ping(#[n(0)] PingProblem),
}

/// A part of a job whose size in bytes is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizedPart {
    /// The URL of a request.
    #[n(0)]
    Address,
    /// The names and values of all headers of a request.
    #[n(1)]
    Headers,
    /// The body of a request.
    #[n(2)]
    Body,
    /// The data that a question is about, as JSON.
    #[n(3)]
    Data,
    /// The result of a job, as JSON.
    #[n(4)]
    Result,
}

/// Why a model has no answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelProblem {
    /// The server that has the job has no model.
    #[n(0)]
    NotConfigured,
    /// Too many other questions were open until the deadline.
    #[n(1)]
    Busy,
    /// The input of the work is not that of a question.
    #[n(2)]
    Unreadable {
        /// What the JSON parser reports.
        #[n(0)]
        diagnostic: String,
    },
    /// There are too many fields, ports or workflows to choose from.
    #[n(3)]
    TooManyChoices {
        /// How many there are.
        #[n(0)]
        count: u64,
        /// The limit.
        #[n(1)]
        max: u64,
    },
    /// There is nothing to choose from.
    #[n(4)]
    NoChoices,
    /// The name of a choice or of the model is empty or too long.
    #[n(5)]
    NameLength {
        /// The limit, bytes.
        #[n(0)]
        max: u64,
    },
    /// The instructions of the definition's author are too long.
    #[n(6)]
    InstructionsLength {
        /// The limit, bytes.
        #[n(0)]
        max: u64,
    },
    /// The endpoint of the model has answered with the status of an error.
    #[n(7)]
    Status {
        /// The HTTP status.
        #[n(0)]
        status: u16,
        /// The endpoint's own type of the error, if it is a plain word.
        #[n(1)]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The model has declined to answer.
    #[n(8)]
    Declined,
    /// The answer is not complete.
    #[n(9)]
    AnswerCut,
    /// The answer is not of the form that the question's kind has.
    #[n(10)]
    AnswerForm,
    /// The answer does not match the schema of the definition's result.
    #[n(11)]
    ResultSchema,
}

/// Why a job was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobProblem {
    /// Its deadline had passed before.
    #[n(0)]
    Late,
    /// It is of a kind that only workers do.
    #[n(1)]
    WorkersOnly,
}

/// Why it is not known what became of a single message to an endpoint, or why it was not sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PingProblem {
    /// Too many others wait at this server for their answers.
    #[n(0)]
    Busy,
    /// The bus has failed while the answer was waited for.
    #[n(1)]
    AnswerLost {
        /// What the bus reports.
        #[n(0)]
        diagnostic: String,
    },
    /// No process has answered in time.
    #[n(2)]
    NoAnswer,
    /// A delivery process answered with something that cannot be read.
    #[n(3)]
    AnswerForm,
}

impl DeliveryDetail {
    /// Returns a text from outside as a detail; `None` if it is empty.
    #[must_use]
    pub fn quote(text: impl Into<String>) -> Option<Self> {
        let text: String = text.into();
        (!text.is_empty()).then_some(Self::Quoted { text })
    }

    /// The bytes of its text if it is a quotation, else those of its stored form.
    #[must_use]
    pub fn bytes(&self) -> usize {
        if let Self::Quoted { text } = self { text.len() } else { minicbor::len(self) }
    }

    /// Returns the same if it has at most this many bytes; a longer quotation is cut. `None` if anything else is longer.
    #[must_use]
    pub fn within(self, bytes_max: usize) -> Option<Self> {
        if let Self::Quoted { mut text } = self {
            text.truncate(text.floor_char_boundary(bytes_max));
            return Self::quote(text);
        }
        Some(self).filter(|detail| detail.bytes() <= bytes_max)
    }
}

impl From<AddressProblem> for DeliveryDetail {
    fn from(problem: AddressProblem) -> Self {
        Self::Address(problem)
    }
}

impl From<RequestProblem> for DeliveryDetail {
    fn from(problem: RequestProblem) -> Self {
        Self::Request(problem)
    }
}

impl From<ExchangeProblem> for DeliveryDetail {
    fn from(problem: ExchangeProblem) -> Self {
        Self::Exchange(problem)
    }
}

impl From<MailProblem> for DeliveryDetail {
    fn from(problem: MailProblem) -> Self {
        Self::Mail(problem)
    }
}

impl From<ModelProblem> for DeliveryDetail {
    fn from(problem: ModelProblem) -> Self {
        Self::Model(problem)
    }
}

impl From<JobProblem> for DeliveryDetail {
    fn from(problem: JobProblem) -> Self {
        Self::Job(problem)
    }
}

impl From<PingProblem> for DeliveryDetail {
    fn from(problem: PingProblem) -> Self {
        Self::Ping(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_cut_and_an_empty_one_is_no_detail() {
        assert_eq!(DeliveryDetail::quote(""), None);
        let text = DeliveryDetail::quote("550 n\u{f6}").expect("it has words");
        assert_eq!(text.bytes(), 7);
        assert_eq!(text.clone().within(7), Some(text.clone()));
        assert_eq!(text.clone().within(6), DeliveryDetail::quote("550 n"));
        assert_eq!(text.within(0), None);
    }

    #[test]
    fn a_detail_that_is_no_quotation_is_never_cut() {
        let name = "a".repeat(100);
        let detail = DeliveryDetail::from(AddressProblem::Unresolved { name });
        assert!(detail.bytes() > 100);
        assert_eq!(detail.clone().within(detail.bytes()), Some(detail.clone()));
        assert_eq!(detail.clone().within(100), None);
    }
}
