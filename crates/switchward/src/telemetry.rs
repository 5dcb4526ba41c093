//! Logs to standard error, and traces by OTLP if the standard environment variables name an endpoint.

mod fields;
mod otlp;

use anyhow::Context as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::io::IsTerminal as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::exit::print_error_line;
use fields::Logged;

/// The filter of the libraries below, unless a filter names them. A lone voter has nothing to say of its
/// elections; what fjall says of a failed write or a broken journal is part of the error that this program says. A table
/// that cannot be written or merged is reported by each layer that it fails in: fjall's pool of threads, the uppermost
/// one, says it for all of them. A merge that gives way to another one warns like one that failed, and scrubbing tries
/// again by itself. The parser of HTML mail warns of every text that stands outside the cells of a table.
const LIBRARIES: &str = "openraft=error,fjall=warn,lsm_tree=warn,lsm_tree::compaction=off,fjall::batch=off,\
                         fjall::compaction=off,fjall::db=off,fjall::file=off,fjall::flush=off,\
                         fjall::journal=off,html5ever=error";

/// The filter of what openraft says beside each call of a node that has stopped, unless a filter names openraft. The caller
/// gets it as an error, and a node that was not told to stop says why itself. Without it a server that ends in order, while
/// another one still calls it, would log an error.
const CALLS_OF_RAFT: &str = "openraft::raft=off";

/// Ends the export of traces in order when it is dropped.
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = &self.0
            && let Err(error) = provider.shutdown()
        {
            let message = format!("failed to send the last traces: {error}");
            print_error_line(&message);
        }
    }
}

/// What is traced, however little is logged: the server's own spans, from the API to the disk.
const TRACED: &str =
    "off,switchward=info,switchward_gateway=info,switchward_shard=info,switchward_shard::traces=debug";

/// The filter of a level, or of a filter such as `info,switchward_shard=debug,openraft=info`.
fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    let libraries = match level {
        "off" => "off".to_owned(),
        level if level.contains("openraft") => LIBRARIES.to_owned(),
        _ => format!("{LIBRARIES},{CALLS_OF_RAFT}"),
    };
    let filter = EnvFilter::try_new(format!("{libraries},{level}"));
    filter.with_context(|| format!("log.level: {level:?} is neither a level nor a filter"))
}

/// Starts logging at `level`, which is a level or a filter, and tracing if the environment names an endpoint.
///
/// # Errors
/// The level is none, or the environment asks for an export that there is not.
pub(crate) fn start(level: &str) -> anyhow::Result<Telemetry> {
    let colours = std::io::stderr().is_terminal();
    let logs = tracing_subscriber::fmt::layer().fmt_fields(Logged::default());
    let logs = logs.with_writer(std::io::stderr).with_ansi(colours);
    let logs = logs.with_filter(filter(level)?);
    let environment = |name: &str| std::env::var(name).ok();
    let Some(exporter) = otlp::exporter(&environment)? else {
        tracing_subscriber::registry().with(logs).init();
        return Ok(Telemetry(None));
    };
    let resource = otlp::resource(&environment);
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let traces = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("switchward"))
        .with_filter(EnvFilter::new(TRACED));
    tracing_subscriber::registry().with(logs).with(traces).init();
    Ok(Telemetry(Some(provider)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The words that are logged at a level, of what the server and its libraries log when all goes well, and of
    /// what they log beside an error that the server ends with.
    fn logged(level: &str) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .without_time()
            .with_level(false)
            .with_target(false);
        let logs = tracing_subscriber::registry().with(layer.with_filter(filter(level).unwrap()));
        tracing::subscriber::with_default(logs, || {
            tracing::info!(target: "switchward::commands::server", "ready");
            tracing::info!(target: "openraft::raft", "elected");
            tracing::warn!(target: "openraft::core::raft_core", "ignored");
            tracing::error!(target: "openraft::core::raft_core", "stopped");
            tracing::error!(target: "openraft::raft::raft_inner", "called");
            tracing::info!(target: "fjall::db", "opened");
            tracing::error!(target: "fjall::db", "repeated");
            tracing::error!(target: "fjall::journal::writer", "repeated");
            tracing::error!(target: "fjall::file", "repeated");
            tracing::error!(target: "fjall::flush::worker", "repeated");
            tracing::error!(target: "fjall::compaction::worker", "repeated");
            tracing::error!(target: "lsm_tree::compaction::worker", "repeated");
            tracing::error!(target: "fjall::worker_pool", "crashed");
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn libraries_log_only_errors_that_nobody_else_reports() {
        assert_eq!(logged("info"), "ready stopped crashed");
        assert_eq!(logged("warn"), "stopped crashed");
        assert_eq!(logged("off"), "");
    }

    #[test]
    fn a_line_has_the_fields_of_its_call_without_what_is_for_traces() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().fmt_fields(Logged::default());
        let layer = layer.with_writer(move || writer.clone()).with_ansi(false).without_time();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let call = tracing::info_span!(
                "rpc",
                otel.kind = "server",
                rpc.method = "Get",
                rpc.response.status_code = tracing::field::Empty,
                request_id = "r 1",
            );
            call.in_scope(|| {
                call.record("rpc.response.status_code", "5");
                tracing::warn!(otel.name = "x", server = 3, "two\u{1b}lines");
            });
        });
        let line = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let (_, line) = line.trim().split_once("rpc{").expect("the span of the call");
        assert!(line.starts_with(r#"rpc.method="Get" request_id="r 1"}: "#), "{line}");
        assert!(line.ends_with(r"two\x1blines server=3"), "{line}");
    }

    #[test]
    fn a_filter_that_names_a_library_has_its_way() {
        assert_eq!(logged("warn,openraft=info"), "elected ignored stopped called crashed");
        assert_eq!(logged("openraft=off,fjall=off"), "");
        assert!(filter("loud,,=").is_err());
    }
}
