//! SessionService: starts sessions, moves them on, and shows their events.

use prost::Message;
use std::mem;
use std::ops::ControlFlow;
use switchward_api::v1::{self, session_service_server::SessionService};
use switchward_machine::{Micros, Status as Word};
use switchward_query::{Compared, ListSessions, Reader, Source, TimeTerm};
use switchward_state::Body;
use switchward_state::policy::{PolicyCommand, RaiseCap};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::session::{Cancel, Pause, Resume, SessionCommand};
use tonic::{Request, Response, Status};

use super::history::Wanted;
use super::shown::shown;
use super::{conversation, history, shown};
use crate::api::{Api, Call, Driven};
use crate::auth::roles;
use crate::convert::{positions, read_rfc3339};
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{Listed, PAGE_BYTES_MAX, Page, order, terms, unknown_term};
use crate::scans::{Pace, Share};
use crate::{auth, names, reply_tokens};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl SessionService for Api {
    type WatchSessionStream = super::watch::Stream;

    async fn start_session(
        &self,
        request: Request<v1::StartSessionRequest>,
    ) -> Answered<v1::StartSessionResponse> {
        let (call, message) = self.open(request, roles::DRIVE)?;
        Ok(Response::new(super::start::start(&call, message).await?))
    }

    async fn get_session(&self, request: Request<v1::GetSessionRequest>) -> Answered<v1::GetSessionResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Session", message.read_mask)?;
        let id = names::session(&call.caller, "name", &message.name)?;
        let session = shown(&call, id, &message.name).await?;
        Ok(Response::new(v1::GetSessionResponse { session: Some(mask.keep(session)) }))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Answered<v1::ListSessionsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        Ok(Response::new(list(&call, message).await?))
    }

    async fn answer_checkpoint(
        &self,
        request: Request<v1::AnswerCheckpointRequest>,
    ) -> Answered<v1::AnswerCheckpointResponse> {
        let answered = self.drive(request, roles::DRIVE, |_, message| {
            let v1::AnswerCheckpointRequest { state, answer, note, .. } = message;
            if answer.is_empty() {
                return Err(Refusal::field("answer", "is required"));
            }
            let state = (!state.is_empty()).then_some(state);
            Ok(Body::Run(RunCommand::Answer(Answer { state, answer, note })))
        });
        let Driven { caller, view } = answered.await?;
        let session = Box::new(positions::session(&caller, &view));
        Ok(Response::new(v1::AnswerCheckpointResponse { session: Some(session) }))
    }

    async fn watch_session(
        &self,
        request: Request<v1::WatchSessionRequest>,
    ) -> Answered<Self::WatchSessionStream> {
        let (call, message) = self.open(request, roles::ANY)?;
        let id = names::session(&call.caller, "name", &message.name)?;
        let view = call.session(id, &message.name).await?;
        Ok(Response::new(super::watch::start(
            self.clone(),
            call.caller.clone(),
            &view,
            message.from_sequence,
        )))
    }

    async fn list_session_events(
        &self,
        request: Request<v1::ListSessionEventsRequest>,
    ) -> Answered<v1::ListSessionEventsResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        Ok(Response::new(events(&call, message).await?))
    }

    async fn post_message(
        &self,
        request: Request<v1::PostMessageRequest>,
    ) -> Answered<v1::PostMessageResponse> {
        let session = conversation::post_message(self, request).await?;
        Ok(Response::new(v1::PostMessageResponse { session: Some(session) }))
    }

    async fn end_turn(&self, request: Request<v1::EndTurnRequest>) -> Answered<v1::EndTurnResponse> {
        let session = conversation::end_turn(self, request).await?;
        Ok(Response::new(v1::EndTurnResponse { session: Some(session) }))
    }

    async fn record_data(&self, request: Request<v1::RecordDataRequest>) -> Answered<v1::RecordDataResponse> {
        let session = conversation::record_data(self, request).await?;
        Ok(Response::new(v1::RecordDataResponse { session: Some(session) }))
    }

    async fn signal_completion(
        &self,
        request: Request<v1::SignalCompletionRequest>,
    ) -> Answered<v1::SignalCompletionResponse> {
        let session = conversation::signal_completion(self, request).await?;
        Ok(Response::new(v1::SignalCompletionResponse { session: Some(session) }))
    }

    async fn retry_state(&self, request: Request<v1::RetryStateRequest>) -> Answered<v1::RetryStateResponse> {
        let session = conversation::retry_state(self, request).await?;
        Ok(Response::new(v1::RetryStateResponse { session: Some(session) }))
    }

    async fn record_event(
        &self,
        request: Request<v1::RecordEventRequest>,
    ) -> Answered<v1::RecordEventResponse> {
        let session = match reply_tokens::of(auth::credential(request.metadata().as_ref())).transpose()? {
            Some(token) => {
                let call = self.call_by_token(request.metadata(), &token).await?;
                // Counted like a callback, so that nobody gets around the rate by another path.
                self.callback_rates.take(&token, self.cluster.now())?;
                conversation::record_event(&call, request.into_inner(), Some(token)).await?
            }
            None => {
                let (call, message) = self.open(request, roles::EVENTS)?;
                conversation::record_event(&call, message, None).await?
            }
        };
        Ok(Response::new(v1::RecordEventResponse { session: Some(session) }))
    }

    async fn record_reply(
        &self,
        request: Request<v1::RecordReplyRequest>,
    ) -> Answered<v1::RecordReplyResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        Ok(Response::new(conversation::record_reply(&call, message).await?))
    }

    async fn switch_workflow(
        &self,
        request: Request<v1::SwitchWorkflowRequest>,
    ) -> Answered<v1::SwitchWorkflowResponse> {
        let session = conversation::switch_workflow(self, request).await?;
        Ok(Response::new(v1::SwitchWorkflowResponse { session: Some(session) }))
    }

    async fn pause_session(
        &self,
        request: Request<v1::PauseSessionRequest>,
    ) -> Answered<v1::PauseSessionResponse> {
        let pause = self.drive(request, roles::OPERATE, |_, message| {
            Ok(Body::Session(SessionCommand::Pause(Pause { comment: message.reason })))
        });
        let Driven { caller, view } = pause.await?;
        let session = positions::session(&caller, &view);
        Ok(Response::new(v1::PauseSessionResponse { session: Some(session) }))
    }

    async fn resume_session(
        &self,
        request: Request<v1::ResumeSessionRequest>,
    ) -> Answered<v1::ResumeSessionResponse> {
        let resume = self.drive(request, roles::OPERATE, |_, message| {
            Ok(Body::Session(SessionCommand::Resume(Resume { comment: message.reason })))
        });
        let Driven { caller, view } = resume.await?;
        let session = positions::session(&caller, &view);
        Ok(Response::new(v1::ResumeSessionResponse { session: Some(session) }))
    }

    async fn cancel_session(
        &self,
        request: Request<v1::CancelSessionRequest>,
    ) -> Answered<v1::CancelSessionResponse> {
        let cancel = self.drive(request, roles::OPERATE, |_, message| {
            Ok(Body::Session(SessionCommand::Cancel(Cancel::written(message.reason))))
        });
        let Driven { caller, view } = cancel.await?;
        let session = positions::session(&caller, &view);
        Ok(Response::new(v1::CancelSessionResponse { session: Some(session) }))
    }

    async fn raise_cap(&self, request: Request<v1::RaiseCapRequest>) -> Answered<v1::RaiseCapResponse> {
        let raise = self.drive(request, roles::OPERATE, |_, message| {
            let (param, value) = cap(message.cap)?;
            Ok(Body::Policy(PolicyCommand::RaiseCap(RaiseCap { param: param.to_owned(), value })))
        });
        let Driven { caller, view } = raise.await?;
        let session = positions::session(&caller, &view);
        Ok(Response::new(v1::RaiseCapResponse { session: Some(session) }))
    }
}

/// The parameter of a cap, and its new value.
fn cap(cap: Option<v1::raise_cap_request::Cap>) -> Result<(&'static str, u64), Refusal> {
    match cap {
        Some(v1::raise_cap_request::Cap::CostUsd(text)) => {
            let amount = Micros::exact(&text);
            Ok(("cost_usd", amount.map_err(|error| Refusal::field("cost_usd", format!("is {error}")))?.0))
        }
        Some(v1::raise_cap_request::Cap::Tokens(tokens)) => Ok(("tokens", tokens)),
        None => Err(Refusal::field("cap", "is required: cost_usd or tokens")),
    }
}

/// The sessions of the caller's tenant that a filter lists.
fn wanted(call: &Call<'_>, text: &str) -> Result<ListSessions, Refusal> {
    let (tenant, labels, created) = (call.caller.tenant, Vec::new(), Vec::new());
    let mut wanted = ListSessions { tenant, status: None, definition: None, labels, created };
    for (name, compared, value) in terms(text)? {
        if compared != Compared::Equal && name != "create_time" {
            return Err(Refusal::field("filter", format!("may compare {name} only by =")));
        }
        match name.as_str() {
            "create_time" => {
                wanted.created.push(TimeTerm { compared, time: read_rfc3339("filter", &value)? });
            }
            "status" => {
                let word = Word::ALL.into_iter().find(|word| word.word().eq_ignore_ascii_case(&value));
                wanted.status =
                    Some(word.ok_or_else(|| unknown_term(&value, "waiting, suspended, completed, ..."))?);
            }
            "definition" => wanted.definition = Some(value),
            name => match name.strip_prefix("labels.") {
                Some(label) => wanted.labels.push((label.to_owned(), value)),
                None => return Err(unknown_term(name, "status, definition, create_time and labels.KEY")),
            },
        }
    }
    Ok(wanted)
}

/// The newest sessions of all shards: each shard's part is in order, and the parts are merged.
async fn list(
    call: &Call<'_>,
    message: v1::ListSessionsRequest,
) -> Result<v1::ListSessionsResponse, Refusal> {
    names::parent(&call.caller, "parent", &message.parent)?;
    let wanted = wanted(call, &message.filter)?;
    let mask = Mask::read("Session", message.read_mask)?;
    order(&message.order_by, "create_time desc")?;
    let list = ["sessions", call.caller.tenant_name.as_str(), message.filter.as_str()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let show = |call: &Call<'_>, session| shown::message(&call.caller, session);
    let Listed { entries, next_page_token, unreachable } = page.of_shards(call, wanted, show).await?;
    Ok(v1::ListSessionsResponse { sessions: mask.keep_each(entries), next_page_token, unreachable })
}

async fn events(
    call: &Call<'_>,
    message: v1::ListSessionEventsRequest,
) -> Result<v1::ListSessionEventsResponse, Refusal> {
    let id = names::session(&call.caller, "name", &message.name)?;
    call.session(id, &message.name).await?;
    let mask = Mask::read("SessionEvent", message.read_mask)?;
    order(&message.order_by, "sequence")?;
    let list = ["events", &call.caller.tenant_name, &id.to_string()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let from = match &page.after {
        Some(after) => <[u8; 8]>::try_from(after.as_slice())
            .map(|bytes| u64::from_be_bytes(bytes).saturating_add(1))
            .map_err(|_| Refusal::field("page_token", "is not a page token of this list"))?,
        None => message.from_sequence,
    };
    let rows = call.api.reader(Source::session(id)).await?;
    let wanted = Wanted { session: id, from, max: page.size + 1 };
    let (events, more) = call.look_for(events_from(rows, wanted)).await?;
    let entries = events.into_iter().map(|event| (event.sequence.to_be_bytes().to_vec(), event));
    let (events, mut next_page_token) = page.cut(entries.collect());
    if let Some(last) = events.last().filter(|_| more && next_page_token.is_empty()) {
        next_page_token = page.token(&last.sequence.to_be_bytes());
    }
    Ok(v1::ListSessionEventsResponse { events: mask.keep_each(events), next_page_token })
}

/// Events, and whether there may be more behind them.
type EventsPage = (Vec<v1::SessionEvent>, bool);

/// Reads the wanted events, one slice a call.
fn events_from(
    rows: Reader,
    wanted: Wanted,
) -> impl FnMut(&Call<'_>, &mut Share) -> Result<ControlFlow<EventsPage>, Refusal> {
    let (mut all, mut bytes, mut from) = (Vec::new(), 0, wanted.from);
    move |call, share| {
        let mut pace = Pace::On;
        let left = Wanted { from, max: wanted.max - all.len(), ..wanted };
        let (events, more) = history::read(&rows, &call.caller, left, || {
            pace = share.pace()?;
            Ok(pace != Pace::On)
        })?;
        from = events.last().map_or(from, |last| last.sequence + 1);
        bytes += events.iter().map(Message::encoded_len).sum::<usize>();
        all.extend(events);
        let ends = !more || all.len() >= wanted.max || bytes >= PAGE_BYTES_MAX || pace == Pace::Ends;
        Ok(if ends { ControlFlow::Break((mem::take(&mut all), more)) } else { ControlFlow::Continue(()) })
    }
}
