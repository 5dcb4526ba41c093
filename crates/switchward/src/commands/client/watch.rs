//! `switchward watch`: follows a session's history; an interrupted stream is restarted.

use std::ops::ControlFlow;
use switchward_api::v1::{self, watch_session_response::Update};
use tonic::{Code, Status};

use super::show;
use super::talk::Talk;
use crate::args::Watch;
use crate::exit::Exit;
use crate::output::{json, print};

/// The number of restarts without new events: more than half a minute, enough for a restart of the server. A stream
/// that never sent anything may not be from a Switchward server, and is restarted as often as a call is retried.
const ATTEMPTS_MAX: u32 = 20;

/// The progress of a watch.
struct Progress {
    /// The sequence of the next event.
    next: u64,
    /// Whether the server has sent anything.
    received: bool,
}

pub(super) async fn run(talk: &Talk, watch: Watch) -> Result<(), Exit> {
    let mut progress = Progress { next: watch.from, received: false };
    let retries = talk.client.retries();
    let (mut attempt, mut pauses) = (1, retries.pauses());
    loop {
        let before = progress.next;
        match follow(talk, &watch.session, &mut progress).await? {
            ControlFlow::Break(()) => return Ok(()),
            ControlFlow::Continue(status) => {
                // After new events, the count starts again.
                if progress.next > before {
                    (attempt, pauses) = (1, retries.pauses());
                } else {
                    attempt += 1;
                }
                let most = if progress.received { ATTEMPTS_MAX } else { retries.attempts_max };
                let Some(grown) = pauses.next().filter(|_| attempt <= most) else {
                    return Err(status.into());
                };
                tokio::time::sleep(retries.pause(grown, &status)).await;
            }
        }
    }
}

/// Follows one stream to its end: breaks if the session has ended, continues if only the stream has.
async fn follow(
    talk: &Talk,
    session: &str,
    progress: &mut Progress,
) -> Result<ControlFlow<(), Status>, Exit> {
    let request = v1::WatchSessionRequest { name: session.to_owned(), from_sequence: progress.next };
    let mut stream = match talk.client.services().sessions.watch_session(request).await {
        Ok(response) => response.into_inner(),
        Err(status) => return again(status),
    };
    loop {
        let message = stream.message().await;
        progress.received |= matches!(message, Ok(Some(_)));
        match message {
            Ok(Some(v1::WatchSessionResponse { update: Some(Update::Event(event)) })) => {
                progress.next = event.sequence + 1;
                if talk.printer.is_json() {
                    print(&format!("{}\n", json("SessionEvent", &event)?))?;
                } else {
                    print(&show::event(&event))?;
                }
            }
            Ok(Some(v1::WatchSessionResponse { update: Some(Update::Heartbeat(_)) | None })) => {}
            // A server that stops also ends its streams; the session shows which end it was.
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

/// Continues if a stream that failed is worth restarting.
fn again(status: Status) -> Result<ControlFlow<(), Status>, Exit> {
    // The client itself reports a connection that breaks inside a stream as Unknown or Internal, without a reason.
    let broken = matches!(status.code(), Code::Unknown | Code::Internal) && status.details().is_empty();
    if status.code() == Code::Unavailable || broken {
        Ok(ControlFlow::Continue(status))
    } else {
        Err(status.into())
    }
}
