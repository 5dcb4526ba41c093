//! A call under a caller's trace, as a collector gets it from the server.

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use serde_json::json;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    transport::{Identity, Server, ServerTlsConfig},
};

use crate::support::{Dev, Ended, deploy_gate, folder, program};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// How long the spans of a call may be on their way.
const PATIENCE: Duration = Duration::from_secs(60);

/// A span, and the name of the service that it is said to be of.
struct Seen {
    service: String,
    span: Span,
}

struct Receiver(mpsc::Sender<Seen>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for spans in request.into_inner().resource_spans {
            let service = service_name(spans.resource.unwrap_or_default().attributes);
            for span in spans.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let seen = Seen { service: service.clone(), span };
                self.0.send(seen).map_err(|_| Status::unavailable("nobody collects any more"))?;
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn service_name(attributes: Vec<KeyValue>) -> String {
    let name = attributes.into_iter().find(|attribute| attribute.key == "service.name");
    match name.and_then(|name| name.value).and_then(|value| value.value) {
        Some(Value::StringValue(name)) => name,
        other => panic!("a service has a name: {other:?}"),
    }
}

/// A collector that listens on a port of its own until it is dropped.
struct Collector {
    /// `127.0.0.1:4317`.
    host: String,
    seen: mpsc::Receiver<Seen>,
    _runtime: Runtime,
}

impl Collector {
    /// One that speaks plainly.
    fn start() -> Self {
        Self::on(Server::builder())
    }

    /// One that speaks TLS with this certificate and key, both PEM.
    fn behind_tls(certificate: &str, key: &str) -> Self {
        let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
        Self::on(Server::builder().tls_config(tls).expect("a certificate and its key"))
    }

    fn on(mut server: Server) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (sender, seen) = mpsc::channel();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let host = listener.local_addr().expect("an address").to_string();
        let serving = server.add_service(TraceServiceServer::new(Receiver(sender)));
        runtime.spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { host, seen, _runtime: runtime }
    }

    /// The next span that came.
    fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("a span comes in time")
    }
}

/// A development server that sends its spans soon.
fn traced(environment: &[(&str, &str)]) -> Dev {
    Dev::start_with(&[environment, &[("OTEL_BSP_SCHEDULE_DELAY", "100")]].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_call_is_traced_from_the_api_to_the_disk() {
    let collector = Collector::start();
    let dev = traced(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}", collector.host))]);
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    let credential = format!("Bearer {}", dev.ready["agent_key"].as_str().expect("a key"));
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let headers = [("authorization", credential.as_str()), ("traceparent", parent.as_str())];
    let start = json!({ "definition": "deploy-gate", "sessionId": "release-42" });
    let started = dev.post_with("SessionService/StartSession", &headers, &start);
    assert_eq!(started["session"]["sessionId"], "release-42", "{started}");

    let mut found: Vec<Span> = Vec::new();
    while !whole(&found) {
        let Seen { service, span } = collector.next();
        assert_eq!(service, "switchward");
        if hex(&span.trace_id) == TRACE {
            found.push(span);
        }
    }
}

#[test]
fn the_environment_says_of_which_service_the_traces_are() {
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=releases,deployment.environment=test");
    for (environment, expected) in [
        (&[attributes][..], "releases"),
        (&[attributes, ("OTEL_SERVICE_NAME", "gate-keeper")], "gate-keeper"),
    ] {
        let collector = Collector::start();
        let endpoint = format!("http://{}", collector.host);
        let endpoint = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str());
        let dev = traced(&[environment, &[endpoint]].concat());
        dev.run(&["deploy", &deploy_gate()]).with_code(0);
        assert_eq!(collector.next().service, expected);
    }
}

#[test]
fn traces_go_to_a_collector_behind_tls() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let certificate = made.cert.pem();
    let collector = Collector::behind_tls(&certificate, &made.signing_key.serialize_pem());
    let folder = folder(&[("collector.pem", &certificate)]);
    let authority = folder.path().join("collector.pem");
    let dev = traced(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("https://{}", collector.host)),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", authority.to_str().expect("a plain path")),
    ]);
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    assert_eq!(collector.next().service, "switchward");
}

#[test]
fn nothing_is_exported_where_export_is_switched_off() {
    let collector = Collector::start();
    let endpoint = format!("http://{}", collector.host);
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        let dev = traced(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), off]);
        dev.run(&["deploy", &deploy_gate()]).with_code(0);
        // What is still to be sent is sent before the process ends.
        assert_eq!(dev.stop(), Some(0));
        assert!(collector.seen.try_recv().is_err(), "{off:?}");
    }
}

#[test]
fn a_protocol_that_is_not_spoken_is_named_with_its_variable() {
    let ended = Ended::of(
        program()
            .args(["dev", "--port", "0"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    )
    .with_code(1);
    assert_eq!(
        ended.err,
        "error: OTEL_EXPORTER_OTLP_PROTOCOL: unsupported protocol \"http/protobuf\"; use grpc and the \
         collector's port for it\n"
    );
}

/// Names from the disk to the API; each is the parent of the one before it.
const PATH: [&str; 4] =
    ["log.append", "shard.batch", "shard.command", "switchward.v1.SessionService/StartSession"];

/// Returns true if these spans lead from a write to the caller's own span.
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
