//! `switchward watch`: a session's history as it comes, begun anew where a stream breaks off.

use std::ops::ControlFlow;
use switchward_api::v1;
use switchward_api::v1::watch_session_response::Update;
use tonic::{Code, Status};

use super::show;
use super::talk::Talk;
use crate::args::Watch;
use crate::exit::Exit;
use crate::output::{json, print};

/// How often a stream is begun anew that brings nothing: more than half a minute, in which a server can start again.
const ATTEMPTS_MAX: u32 = 20;

pub(super) async fn run(talk: &Talk, watch: Watch) -> Result<(), Exit> {
    let mut next = watch.from;
    let mut attempt = 1;
    loop {
        let before = next;
        match follow(talk, &watch.session, &mut next).await? {
            ControlFlow::Break(()) => return Ok(()),
            ControlFlow::Continue(status) => {
                // A stream that brought something was a good one: patience starts anew.
                attempt = if next > before { 1 } else { attempt + 1 };
                if attempt > ATTEMPTS_MAX {
                    return Err(status.into());
                }
                tokio::time::sleep(talk.client.retries().pause(attempt, &status)).await;
            }
        }
    }
}

/// Follows one stream to its end: breaks off where the session has ended, goes on where only the stream has.
async fn follow(talk: &Talk, session: &str, next: &mut u64) -> Result<ControlFlow<(), Status>, Exit> {
    let request = v1::WatchSessionRequest { name: session.to_owned(), from_sequence: *next };
    let mut stream = match talk.client.services().sessions.watch_session(request).await {
        Ok(response) => response.into_inner(),
        Err(status) => return again(status),
    };
    loop {
        match stream.message().await {
            Ok(Some(v1::WatchSessionResponse { update: Some(Update::Event(event)) })) => {
                *next = event.sequence + 1;
                if talk.printer.is_json() {
                    print(&format!("{}\n", json("SessionEvent", &event)?))?;
                } else {
                    print(&show::event(&event))?;
                }
            }
            Ok(Some(v1::WatchSessionResponse { update: Some(Update::Heartbeat(_)) | None })) => {}
            // A server that stops ends its streams, too: the session says which end it was.
            Ok(None) => return ended(talk, session).await,
            Err(status) => return again(status),
        }
    }
}

async fn ended(talk: &Talk, session: &str) -> Result<ControlFlow<(), Status>, Exit> {
    let request = v1::GetSessionRequest { name: session.to_owned(), ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.get_session(request).await });
    match reply.await {
        Ok(reply) if reply.session.as_ref().is_some_and(|session| session.end_time.is_some()) => {
            Ok(ControlFlow::Break(()))
        }
        Ok(_) => again(Status::unavailable("the server ended the stream")),
        Err(status) => again(status),
    }
}

/// Whether a stream that failed is worth beginning anew.
fn again(status: Status) -> Result<ControlFlow<(), Status>, Exit> {
    // A connection that breaks inside a stream is told as Unknown or Internal by the client itself, without a reason.
    let broken = matches!(status.code(), Code::Unknown | Code::Internal) && status.details().is_empty();
    if status.code() == Code::Unavailable || broken {
        Ok(ControlFlow::Continue(status))
    } else {
        Err(status.into())
    }
}
