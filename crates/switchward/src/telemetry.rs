//! Logs to standard error, and traces by OTLP where the standard environment variables say where to.

use anyhow::Context as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::io::IsTerminal as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Ends the export of traces in order when it is dropped.
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = &self.0
            && let Err(error) = provider.shutdown()
        {
            eprintln!("switchward: failed to send the last traces: {error}");
        }
    }
}

/// What is traced, however little is logged: the server's own spans, from the door to the disk.
const TRACED: &str = "off,switchward=info,switchward_gateway=info,switchward_shard=info";

/// Starts logging at `level` (a level, or a filter such as `info,switchward_shard=debug`), and tracing where
/// `OTEL_EXPORTER_OTLP_ENDPOINT` or its variant for traces is set.
///
/// # Errors
/// The level is none, or the exporter cannot be made.
pub(crate) fn start(level: &str) -> anyhow::Result<Telemetry> {
    let filter = || EnvFilter::try_new(level).with_context(|| format!("log.level: {level:?} is no level"));
    let colours = std::io::stderr().is_terminal();
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let logs = logs.with_filter(filter()?);
    let asked = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    let asked = asked.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !asked {
        tracing_subscriber::registry().with(logs).init();
        return Ok(Telemetry(None));
    }
    let exporter =
        SpanExporter::builder().with_tonic().build().context("failed to set up the export of traces")?;
    let resource = Resource::builder().with_service_name("switchward").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let traces = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("switchward"))
        .with_filter(EnvFilter::new(TRACED));
    tracing_subscriber::registry().with(logs).with(traces).init();
    Ok(Telemetry(Some(provider)))
}
