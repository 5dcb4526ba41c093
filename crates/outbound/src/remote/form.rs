//! What delivery processes and servers send each other. Sent forms: a form byte, then JSON.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchward_delivery::channels::Answer as HttpAnswer;
use switchward_delivery::worker::{Delivered, JobHead, Outcome};
use switchward_delivery::{DeliveryDetail, DeliveryReason, Failed};

/// The form of a question and of its answer.
const FORM: u8 = 1;

/// What a delivery process asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// Whether the outcome of this job is still wanted.
    Wanted(JobHead),
    /// It takes this outcome.
    Report {
        /// Whose outcome it is.
        job: JobHead,
        /// What became of it.
        outcome: SentOutcome,
    },
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The outcome is wanted.
    Wanted {
        /// The name of the job's tenant, by which the egress rules of a single tenant are found; `None` if it was deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
    },
    /// The outcome is recorded.
    Accepted,
    /// Nobody waits for it any more.
    Gone,
    /// The leader cannot answer now.
    Later,
}

/// How a job ended, as it is sent to the leader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SentOutcome {
    /// The answer to a request.
    Http {
        /// The HTTP status.
        status: u16,
        /// The body as JSON.
        body: Value,
    },
    /// The result of a question to a model.
    Model {
        /// What the model answered, as JSON.
        result: Value,
    },
    /// The mail server accepted the mail.
    Mail {
        /// The message id, without the angle brackets.
        message_id: String,
    },
    /// The receiver of a message answered with success.
    Webhook {
        /// The HTTP status.
        status: u16,
    },
    /// The attempt did not succeed.
    Failed {
        /// Why, as its code.
        #[serde(with = "switchward_delivery::reason_code")]
        reason: DeliveryReason,
        /// What has gone wrong.
        detail: DeliveryDetail,
        /// How long the other side asks to wait, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl From<Outcome> for SentOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(Delivered::Http(HttpAnswer { status, body })) => Self::Http { status, body },
            Ok(Delivered::Model(result)) => Self::Model { result },
            Ok(Delivered::Mail { message_id }) => Self::Mail { message_id },
            Ok(Delivered::Webhook { status }) => Self::Webhook { status },
            Err(Failed { reason, detail, retry_after }) => {
                let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                Self::Failed { reason, detail, retry_after_ms: retry_after.map(ms) }
            }
        }
    }
}

impl From<SentOutcome> for Outcome {
    fn from(sent: SentOutcome) -> Self {
        match sent {
            SentOutcome::Http { status, body } => Ok(Delivered::Http(HttpAnswer { status, body })),
            SentOutcome::Model { result } => Ok(Delivered::Model(result)),
            SentOutcome::Mail { message_id } => Ok(Delivered::Mail { message_id }),
            SentOutcome::Webhook { status } => Ok(Delivered::Webhook { status }),
            SentOutcome::Failed { reason, detail, retry_after_ms } => {
                Err(Failed { reason, detail, retry_after: retry_after_ms.map(Duration::from_millis) })
            }
        }
    }
}

/// The bytes of a question or an answer.
pub(super) fn encode(sent: &impl Serialize) -> Bytes {
    let mut bytes = vec![FORM];
    serde_json::to_writer(&mut bytes, sent).expect("all maps of these forms have keys that are strings");
    bytes.into()
}

/// Reads a question or an answer.
///
/// # Errors
/// The bytes have another form; the text does not repeat them.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let (form, rest) = bytes.split_first().ok_or("nothing was sent")?;
    if *form != FORM {
        return Err(format!("what was sent has the unknown form {form}"));
    }
    let unreadable =
        |error: serde_json::Error| format!("{:?} at column {}", error.classify(), error.column());
    serde_json::from_slice(rest).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchward_delivery::worker::{JobChannel, Origin};
    use switchward_machine::{OpenId, SessionId, TenantId};
    use switchward_state::delivery::ExchangeProblem;

    use super::*;

    const GOLDEN: &str = include_str!("../../tests/golden/delivery_question.v1.jsonl");

    fn job(origin: Origin, channel: JobChannel) -> JobHead {
        JobHead { tenant: TenantId(7), session: SessionId([9; 16]), origin, channel }
    }

    /// One of each kind.
    fn questions() -> Vec<Question> {
        let work = Origin::Work { item: OpenId(3), fence: 5 };
        let effect = Origin::Effect { number: 3, round: 1, attempt: 2 };
        let event = || JobChannel::Event { endpoint: "ops".to_owned() };
        let report = |job: JobHead, outcome: Outcome| Question::Report { job, outcome: outcome.into() };
        let late = ExchangeProblem::AnswerTime { max_ms: 10_000 };
        let failed = Failed::new(DeliveryReason::Timeout, late);
        let asked = Failed { retry_after: Some(Duration::from_millis(1_500)), ..failed.clone() };
        let greylisted = Failed::quoting(DeliveryReason::MailDeferred, "450 try again later");
        vec![
            Question::Wanted(job(work, JobChannel::Http)),
            Question::Wanted(job(effect, event())),
            Question::Wanted(job(Origin::Ping { number: 9 }, event())),
            report(
                job(work, JobChannel::Http),
                Ok(Delivered::Http(HttpAnswer { status: 204, body: Value::Null })),
            ),
            report(job(work, JobChannel::Model), Ok(Delivered::Model(json!({ "met": true })))),
            report(job(effect, JobChannel::Mail), Ok(Delivered::Mail { message_id: "a@b".to_owned() })),
            report(job(effect, JobChannel::Message), Ok(Delivered::Webhook { status: 200 })),
            report(job(effect, event()), Err(failed)),
            report(job(effect, event()), Err(asked)),
            report(job(effect, JobChannel::Mail), Err(greylisted)),
        ]
    }

    fn answers() -> Vec<Answer> {
        let wanted = |tenant: Option<&str>| Answer::Wanted { tenant: tenant.map(str::to_owned) };
        vec![wanted(Some("acme")), wanted(None), Answer::Accepted, Answer::Gone, Answer::Later]
    }

    /// The lines of what is sent, without the form byte.
    fn lines() -> String {
        let text = |bytes: Bytes| String::from_utf8(bytes[1..].to_vec()).expect("JSON");
        let sent = questions().iter().map(encode).chain(answers().iter().map(encode)).collect::<Vec<_>>();
        sent.into_iter().map(text).fold(String::new(), |all, line| all + &line + "\n")
    }

    #[test]
    fn questions_and_answers_have_their_golden_form() {
        if std::env::var_os("BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/delivery_question.v1.jsonl");
            std::fs::write(file, lines()).expect("the golden file can be written");
            return;
        }
        assert_eq!(lines(), GOLDEN);
    }

    #[test]
    fn what_was_sent_is_read_back_and_other_bytes_are_not() {
        for question in questions() {
            assert_eq!(decode(&encode(&question)), Ok(question.clone()));
            if let Question::Report { outcome, .. } = question {
                assert_eq!(SentOutcome::from(Outcome::from(outcome.clone())), outcome);
            }
        }
        for answer in answers() {
            assert_eq!(decode(&encode(&answer)), Ok(answer));
        }
        let unknown = b"\x01{\"failed\":{\"reason\":\"x\",\"detail\":{\"job\":\"late\"}}}";
        assert!(decode::<SentOutcome>(unknown).is_err());
        for wrong in [&b""[..], b"\x01", b"\x02\"accepted\"", b"\x01{\"wanted\":", b"\x01\"no\"", b"\x01\xff"]
        {
            assert!(decode::<Answer>(wrong).is_err() && decode::<Question>(wrong).is_err(), "{wrong:?}");
        }
    }
}
