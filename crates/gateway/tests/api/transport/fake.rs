//! A session service whose answers depend on the request.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use prost_types::Timestamp;
use switchward_api::v1::session_service_server::SessionService;
use switchward_api::v1::{self as api, watch_session_response::Update};
use switchward_gateway::{Reason, Refusal};
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

/// See the module.
#[derive(Default)]
pub(crate) struct Sessions {
    /// Notified when the call that never answers has begun.
    pub(crate) stuck: Arc<Notify>,
}

/// The session that never answers.
pub(crate) const STUCK: &str = "stuck";

fn session(id: &str, input: &api::StartSessionRequest) -> api::Session {
    api::Session {
        name: format!("tenants/acme/sessions/{id}"),
        session_id: id.to_owned(),
        definition: input.definition.clone(),
        version: input.version.unwrap_or(1),
        status: api::SessionStatus::Waiting.into(),
        status_word: "active".to_owned(),
        at: vec!["env-check".to_owned()],
        checkpoint: Some(api::Checkpoint {
            state: "env-check".to_owned(),
            question: "Is the environment ready? \u{1f680}".to_owned(),
            prompt: String::new(),
            answers: vec![api::AnswerOption {
                key: "yes".to_owned(),
                effect: api::AnswerEffect::Continue.into(),
            }],
        }),
        role: input.role.clone(),
        budget: Some(api::Budget {
            cap_usd: Some("5".to_owned()),
            used_usd: "0.25".to_owned(),
            ..Default::default()
        }),
        sequence: u64::MAX,
        labels: input.labels.clone(),
        create_time: Some(Timestamp { seconds: 1_767_603_600, nanos: 500_000_000 }),
        ..Default::default()
    }
}

#[tonic::async_trait]
impl SessionService for Sessions {
    /// Answers with the request's data, including the credential and the input's size.
    async fn start_session(
        &self,
        request: Request<api::StartSessionRequest>,
    ) -> Result<Response<api::StartSessionResponse>, Status> {
        let seen = |name: &str| {
            let value = request.metadata().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let (credential, timeout) = (seen("authorization"), seen("grpc-timeout"));
        let message = request.into_inner();
        let mut session = session(&message.session_id, &message);
        let input = message.input.unwrap_or_default();
        session.reason = format!("{}:{credential}", prost::Message::encoded_len(&input));
        session.status_word = timeout;
        let mut response =
            Response::new(api::StartSessionResponse { session: Some(session), warnings: Vec::new() });
        response
            .metadata_mut()
            .insert("x-shown-by", "r-1".parse().map_err(|_| Status::internal("metadata"))?);
        Ok(response)
    }

    async fn get_session(
        &self,
        request: Request<api::GetSessionRequest>,
    ) -> Result<Response<api::GetSessionResponse>, Status> {
        let name = request.into_inner().name;
        if name == STUCK {
            self.stuck.notify_one();
            futures::future::pending::<()>().await;
        }
        Err(Refusal::not_found("session", name).into())
    }

    async fn list_sessions(
        &self,
        _: Request<api::ListSessionsRequest>,
    ) -> Result<Response<api::ListSessionsResponse>, Status> {
        Ok(Response::new(api::ListSessionsResponse::default()))
    }

    async fn answer_checkpoint(
        &self,
        request: Request<api::AnswerCheckpointRequest>,
    ) -> Result<Response<api::AnswerCheckpointResponse>, Status> {
        let answer = request.into_inner().answer;
        let refusal =
            Refusal::new(Reason::AnswerNotAllowed, format!("{answer:?} is not an answer of env-check: ü"))
                .allowed(["yes", "no"])
                .violation("answer", "must be one of yes, no")
                .meta("state", "env-check")
                .retry_after(Duration::from_millis(1_500));
        Err(refusal.into())
    }

    type WatchSessionStream = Pin<Box<dyn Stream<Item = Result<api::WatchSessionResponse, Status>> + Send>>;

    /// Two events and a heartbeat, then the server drains.
    async fn watch_session(
        &self,
        request: Request<api::WatchSessionRequest>,
    ) -> Result<Response<Self::WatchSessionStream>, Status> {
        let from = request.into_inner().from_sequence;
        let event = |sequence| {
            Update::Event(api::SessionEvent {
                sequence,
                r#type: "session.state_entered".to_owned(),
                ..Default::default()
            })
        };
        let heartbeat = Update::Heartbeat(api::Heartbeat { sequence: from + 1, time: None });
        let updates = [event(from), event(from + 1), heartbeat];
        let sent = updates.map(|update| Ok(api::WatchSessionResponse { update: Some(update) }));
        let end = Err(Refusal::new(Reason::Draining, "the server is stopping")
            .retry_after(Duration::from_secs(1))
            .into());
        Ok(Response::new(Box::pin(futures::stream::iter(sent.into_iter().chain([end])))))
    }

    async fn list_session_events(
        &self,
        _: Request<api::ListSessionEventsRequest>,
    ) -> Result<Response<api::ListSessionEventsResponse>, Status> {
        Err(Status::invalid_argument("in words alone"))
    }

    async fn post_message(
        &self,
        _: Request<api::PostMessageRequest>,
    ) -> Result<Response<api::PostMessageResponse>, Status> {
        Ok(Response::new(api::PostMessageResponse::default()))
    }

    async fn end_turn(
        &self,
        _: Request<api::EndTurnRequest>,
    ) -> Result<Response<api::EndTurnResponse>, Status> {
        Ok(Response::new(api::EndTurnResponse::default()))
    }

    async fn record_data(
        &self,
        _: Request<api::RecordDataRequest>,
    ) -> Result<Response<api::RecordDataResponse>, Status> {
        Ok(Response::new(api::RecordDataResponse::default()))
    }

    async fn signal_completion(
        &self,
        _: Request<api::SignalCompletionRequest>,
    ) -> Result<Response<api::SignalCompletionResponse>, Status> {
        Ok(Response::new(api::SignalCompletionResponse::default()))
    }

    async fn retry_state(
        &self,
        _: Request<api::RetryStateRequest>,
    ) -> Result<Response<api::RetryStateResponse>, Status> {
        Ok(Response::new(api::RetryStateResponse::default()))
    }

    async fn record_event(
        &self,
        _: Request<api::RecordEventRequest>,
    ) -> Result<Response<api::RecordEventResponse>, Status> {
        Ok(Response::new(api::RecordEventResponse::default()))
    }

    async fn record_reply(
        &self,
        _: Request<api::RecordReplyRequest>,
    ) -> Result<Response<api::RecordReplyResponse>, Status> {
        Ok(Response::new(api::RecordReplyResponse::default()))
    }

    async fn switch_workflow(
        &self,
        _: Request<api::SwitchWorkflowRequest>,
    ) -> Result<Response<api::SwitchWorkflowResponse>, Status> {
        Ok(Response::new(api::SwitchWorkflowResponse::default()))
    }

    async fn pause_session(
        &self,
        request: Request<api::PauseSessionRequest>,
    ) -> Result<Response<api::PauseSessionResponse>, Status> {
        let labels = (0..200).map(|at| (format!("k{at}"), "v".repeat(200))).collect::<BTreeMap<_, _>>();
        let started = api::StartSessionRequest { labels, ..Default::default() };
        Ok(Response::new(api::PauseSessionResponse {
            session: Some(session(&request.into_inner().name, &started)),
        }))
    }

    async fn resume_session(
        &self,
        _: Request<api::ResumeSessionRequest>,
    ) -> Result<Response<api::ResumeSessionResponse>, Status> {
        Ok(Response::new(api::ResumeSessionResponse::default()))
    }

    async fn cancel_session(
        &self,
        _: Request<api::CancelSessionRequest>,
    ) -> Result<Response<api::CancelSessionResponse>, Status> {
        Ok(Response::new(api::CancelSessionResponse::default()))
    }

    async fn raise_cap(
        &self,
        _: Request<api::RaiseCapRequest>,
    ) -> Result<Response<api::RaiseCapResponse>, Status> {
        let huge = "ä".repeat(10_000);
        let refusal = (0..100).fold(Refusal::new(Reason::FieldInvalid, huge.clone()), |refusal, at| {
            refusal.violation(format!("fields[{at}]"), huge.clone())
        });
        Err(refusal.into())
    }
}
