//! A call under a caller's trace, as a collector gets it from the server.

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;
use std::sync::mpsc;
use std::time::Duration;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::support::{Dev, deploy_gate};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// How long the spans of a call may be on their way.
const PATIENCE: Duration = Duration::from_secs(60);

struct Collector(mpsc::Sender<Span>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.into_inner().resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        for span in scopes.flat_map(|scope| scope.spans) {
            self.0.send(span).map_err(|_| Status::unavailable("nobody collects any more"))?;
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_call_is_traced_from_the_door_to_the_disk() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (sender, spans) = mpsc::channel();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tonic::transport::Server::builder().add_service(TraceServiceServer::new(Collector(sender)));
    runtime.spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
    let dev = Dev::start_with(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ]);
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    let credential = format!("Bearer {}", dev.ready["agent_key"].as_str().expect("a key"));
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let headers = [("authorization", credential.as_str()), ("traceparent", parent.as_str())];
    let start = json!({ "definition": "deploy-gate", "sessionId": "release-42" });
    let started = dev.post_with("SessionService/StartSession", &headers, &start);
    assert_eq!(started["session"]["sessionId"], "release-42", "{started}");

    let mut found: Vec<Span> = Vec::new();
    while !whole(&found) {
        let span = spans.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {found:#?}"));
        if hex(&span.trace_id) == TRACE {
            found.push(span);
        }
    }
}

/// Names from the disk to the door; each is the parent of the one before it.
const PATH: [&str; 4] =
    ["log.append", "shard.batch", "shard.command", "switchward.v1.SessionService/StartSession"];

/// Whether these spans lead from a write to the caller's own span.
fn whole(spans: &[Span]) -> bool {
    spans.iter().filter(|span| span.name == PATH[0]).any(|written| {
        let mut at = written;
        for name in &PATH[1..] {
            let Some(parent) = spans.iter().find(|span| span.span_id == at.parent_span_id) else {
                return false;
            };
            if parent.name != *name {
                return false;
            }
            at = parent;
        }
        hex(&at.parent_span_id) == CALLER
    })
}
