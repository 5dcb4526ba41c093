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
}

macro_rules! session_requests {
    ($($method:literal $request:ident,)*) => {$(
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
        }
    )*};
}

session_requests! {
    "AnswerCheckpoint" AnswerCheckpointRequest,
    "PostMessage" PostMessageRequest,
    "EndTurn" EndTurnRequest,
    "RecordData" RecordDataRequest,
    "SignalCompletion" SignalCompletionRequest,
    "RetryState" RetryStateRequest,
    "SwitchWorkflow" SwitchWorkflowRequest,
    "PauseSession" PauseSessionRequest,
    "ResumeSession" ResumeSessionRequest,
    "CancelSession" CancelSessionRequest,
    "RaiseCap" RaiseCapRequest,
}
