//! The bare echo: the same service, messages of the same size, and nothing behind them; or, if it has one, a bare log.

use std::net::SocketAddr;
use switchward_api::v1;
use switchward_api::v1::session_service_server::{SessionService, SessionServiceServer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::cluster::bare::Log;

/// Answers with messages of the same size as those of the product.
struct Echo {
    /// Where each request is written before it is answered; `None` if it is only answered.
    log: Option<Log>,
}

impl Echo {
    async fn written(&self, request: &impl prost::Message) -> Result<(), Status> {
        match &self.log {
            Some(log) => log.append(request.encode_to_vec()).await,
            None => Ok(()),
        }
    }
}

fn session(name: &str) -> v1::Session {
    let answer = |key: &str| v1::AnswerOption { key: key.into(), effect: v1::AnswerEffect::Continue.into() };
    let time = || Some(std::time::SystemTime::UNIX_EPOCH.into());
    v1::Session {
        name: name.into(),
        session_id: String::new(),
        definition: "tenants/dev/definitions/deploy-gate".into(),
        version: 1,
        status: v1::SessionStatus::Waiting.into(),
        status_word: "active".into(),
        at: vec!["migration-check".into()],
        checkpoint: Some(v1::Checkpoint {
            state: "migration-check".into(),
            question: "Have all database migrations been reviewed and tested?".into(),
            prompt: String::new(),
            answers: vec![answer("yes"), answer("n/a"), answer("no")],
        }),
        role: "agent".into(),
        budget: Some(v1::Budget { used_usd: "0".into(), reserved_usd: "0".into(), ..v1::Budget::default() }),
        sequence: 6,
        create_time: time(),
        update_time: time(),
        ..v1::Session::default()
    }
}

type Answered<T> = Result<Response<T>, Status>;

fn unmeasured<T>() -> Answered<T> {
    Err(Status::unimplemented("the echo answers only the measured calls"))
}

#[tonic::async_trait]
impl SessionService for Echo {
    type WatchSessionStream = tokio_stream::Empty<Result<v1::WatchSessionResponse, Status>>;

    async fn start_session(
        &self,
        request: Request<v1::StartSessionRequest>,
    ) -> Answered<v1::StartSessionResponse> {
        self.written(request.get_ref()).await?;
        let name = "tenants/dev/sessions/ses_00000000000000000000000000";
        Ok(Response::new(v1::StartSessionResponse { session: Some(session(name)), warnings: Vec::new() }))
    }

    async fn answer_checkpoint(
        &self,
        request: Request<v1::AnswerCheckpointRequest>,
    ) -> Answered<v1::AnswerCheckpointResponse> {
        self.written(request.get_ref()).await?;
        let session = Box::new(session(&request.get_ref().name));
        Ok(Response::new(v1::AnswerCheckpointResponse { session: Some(session) }))
    }

    async fn get_session(&self, _: Request<v1::GetSessionRequest>) -> Answered<v1::GetSessionResponse> {
        unmeasured()
    }

    async fn list_sessions(&self, _: Request<v1::ListSessionsRequest>) -> Answered<v1::ListSessionsResponse> {
        unmeasured()
    }

    async fn watch_session(&self, _: Request<v1::WatchSessionRequest>) -> Answered<Self::WatchSessionStream> {
        unmeasured()
    }

    async fn list_session_events(
        &self,
        _: Request<v1::ListSessionEventsRequest>,
    ) -> Answered<v1::ListSessionEventsResponse> {
        unmeasured()
    }

    async fn post_message(&self, _: Request<v1::PostMessageRequest>) -> Answered<v1::PostMessageResponse> {
        unmeasured()
    }

    async fn end_turn(&self, _: Request<v1::EndTurnRequest>) -> Answered<v1::EndTurnResponse> {
        unmeasured()
    }

    async fn record_data(&self, _: Request<v1::RecordDataRequest>) -> Answered<v1::RecordDataResponse> {
        unmeasured()
    }

    async fn signal_completion(
        &self,
        _: Request<v1::SignalCompletionRequest>,
    ) -> Answered<v1::SignalCompletionResponse> {
        unmeasured()
    }

    async fn retry_state(&self, _: Request<v1::RetryStateRequest>) -> Answered<v1::RetryStateResponse> {
        unmeasured()
    }

    async fn record_event(&self, _: Request<v1::RecordEventRequest>) -> Answered<v1::RecordEventResponse> {
        unmeasured()
    }

    async fn record_reply(&self, _: Request<v1::RecordReplyRequest>) -> Answered<v1::RecordReplyResponse> {
        unmeasured()
    }

    async fn switch_workflow(
        &self,
        _: Request<v1::SwitchWorkflowRequest>,
    ) -> Answered<v1::SwitchWorkflowResponse> {
        unmeasured()
    }

    async fn pause_session(&self, _: Request<v1::PauseSessionRequest>) -> Answered<v1::PauseSessionResponse> {
        unmeasured()
    }

    async fn resume_session(
        &self,
        _: Request<v1::ResumeSessionRequest>,
    ) -> Answered<v1::ResumeSessionResponse> {
        unmeasured()
    }

    async fn cancel_session(
        &self,
        _: Request<v1::CancelSessionRequest>,
    ) -> Answered<v1::CancelSessionResponse> {
        unmeasured()
    }

    async fn raise_cap(&self, _: Request<v1::RaiseCapRequest>) -> Answered<v1::RaiseCapResponse> {
        unmeasured()
    }
}

/// The product's own settings of HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const STREAMS_MAX: u32 = 1_024;

/// Serves until it is killed, with this log if there is one.
pub(crate) async fn serve(log: Option<Log>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{{\"address\":\"http://{}\"}}", listener.local_addr()?);
    Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .add_service(SessionServiceServer::new(Echo { log }))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await?;
    Ok(())
}
