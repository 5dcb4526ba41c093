//! The requests of calls that move a session, by what all of them have.

use prost::Message;
use switchward_api::v1;

/// A request of a call that carries out one command of a session.
pub(crate) trait SessionRequest: Message {
    /// The name of the method.
    const METHOD: &'static str;

    /// The request id; empty if the caller gave none.
    fn request_id(&self) -> &str;

    /// The sequence that the session must have.
    fn expected_sequence(&self) -> Option<u64>;

    /// Takes the name of the session out of the request.
    fn take_name(&mut self) -> String;

    /// Takes out which of the session's runs it is about; `None` if the request names none or is about the session.
    fn take_address(&mut self) -> Option<v1::RunAddress> {
        None
    }
}

macro_rules! session_requests {
    ($($method:literal $request:ident $($address:ident)?,)*) => {$(
        impl SessionRequest for v1::$request {
            const METHOD: &'static str = $method;

            fn request_id(&self) -> &str {
                &self.request_id
            }

            fn expected_sequence(&self) -> Option<u64> {
                self.expected_sequence
            }

            fn take_name(&mut self) -> String {
                std::mem::take(&mut self.name)
            }

            $(fn take_address(&mut self) -> Option<v1::RunAddress> {
                self.$address.take()
            })?
        }
    )*};
}

session_requests! {
    "AnswerCheckpoint" AnswerCheckpointRequest address,
    "PostMessage" PostMessageRequest,
    "EndTurn" EndTurnRequest address,
    "RecordData" RecordDataRequest address,
    "SignalCompletion" SignalCompletionRequest address,
    "RetryState" RetryStateRequest address,
    "SwitchWorkflow" SwitchWorkflowRequest,
    "PauseSession" PauseSessionRequest,
    "ResumeSession" ResumeSessionRequest,
    "CancelSession" CancelSessionRequest,
    "RaiseCap" RaiseCapRequest,
}
