//! What the standard environment variables of OpenTelemetry say about traces.
//!
//! The libraries read the endpoint, `INSECURE`, headers, timeout and compression of the exporter, the service's name and
//! attributes, and the limits of spans. Here is what they do not read (`OTEL_SDK_DISABLED`, `OTEL_TRACES_EXPORTER`,
//! certificates), and what they only warn of: another protocol than gRPC is an error here. They trust no authority unless
//! one is given, so the system's are given here if the endpoint uses TLS.

use anyhow::{Context as _, bail};
use opentelemetry_otlp::{SpanExporter, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use std::fs;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::tls;

/// The service name of traces, if the environment does not set one.
const SERVICE: &str = "switchward";
/// What the SDK's own name of a service without one begins with.
const UNNAMED: &str = "unknown_service";
/// What each variable for traces alone begins with; the one for everything has its end.
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_";
const EVERYTHING: &str = "OTEL_EXPORTER_OTLP_";

/// Where variables are read.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The exporter that the environment asks for, or none.
///
/// # Errors
/// It asks for one that there is not, or names files that cannot be read.
pub(super) fn exporter(environment: Environment<'_>) -> anyhow::Result<Option<SpanExporter>> {
    if !wanted(environment)? {
        return Ok(None);
    }
    speaks_grpc(environment)?;
    let mut builder = SpanExporter::builder().with_tonic();
    if is_secure(environment) {
        builder = builder.with_tls_config(trust(environment)?);
    }
    let exporter = builder.build().context("failed to set up the export of traces")?;
    Ok(Some(exporter))
}

/// The resource of traces: the service name and the other attributes that the environment gives.
pub(super) fn resource(environment: Environment<'_>) -> Resource {
    // The specification prefers this variable to `OTEL_RESOURCE_ATTRIBUTES`, the SDK does not.
    if let Some((_, name)) = set(environment, "OTEL_SERVICE_NAME") {
        return Resource::builder().with_service_name(name).build();
    }
    let detected = Resource::builder().build();
    let name = detected.get(&"service.name".into());
    if name.is_some_and(|name| !name.as_str().starts_with(UNNAMED)) {
        return detected;
    }
    Resource::builder().with_service_name(SERVICE).build()
}

/// A variable and its value; one that is empty is as good as none.
fn set(environment: Environment<'_>, name: &str) -> Option<(String, String)> {
    let value = environment(name)?.trim().to_owned();
    if value.is_empty() { None } else { Some((name.to_owned(), value)) }
}

/// The variable for traces, else the one for everything.
fn either(environment: Environment<'_>, end: &str) -> Option<(String, String)> {
    let traces = set(environment, &format!("{TRACES}{end}"));
    traces.or_else(|| set(environment, &format!("{EVERYTHING}{end}")))
}

/// Returns true if traces are exported: an endpoint or an exporter is configured, and nothing switches it off.
fn wanted(environment: Environment<'_>) -> anyhow::Result<bool> {
    if set(environment, "OTEL_SDK_DISABLED").is_some_and(|(_, value)| value.eq_ignore_ascii_case("true")) {
        return Ok(false);
    }
    match set(environment, "OTEL_TRACES_EXPORTER") {
        None => Ok(either(environment, "ENDPOINT").is_some()),
        Some((_, value)) if value == "otlp" => Ok(true),
        Some((_, value)) if value == "none" => Ok(false),
        Some((name, value)) => bail!("{name}: unknown exporter {value:?}; use otlp or none"),
    }
}

fn speaks_grpc(environment: Environment<'_>) -> anyhow::Result<()> {
    match either(environment, "PROTOCOL") {
        Some((name, value)) if value != "grpc" => {
            bail!("{name}: unsupported protocol {value:?}; use grpc and the collector's port for it")
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns true if the endpoint uses TLS: as its scheme says or, without a scheme, unless it is configured as insecure.
fn is_secure(environment: Environment<'_>) -> bool {
    let Some((_, endpoint)) = either(environment, "ENDPOINT") else { return false };
    let insecure = || either(environment, "INSECURE").is_some_and(|(_, it)| it.eq_ignore_ascii_case("true"));
    match endpoint.split_once("://") {
        Some((scheme, _)) => scheme.eq_ignore_ascii_case("https"),
        None => !insecure(),
    }
}

/// The certificates that the exporter trusts, and its own identity.
fn trust(environment: Environment<'_>) -> anyhow::Result<ClientTlsConfig> {
    tls::install_provider();
    let file = |end: &str| match either(environment, end) {
        Some((name, path)) => {
            let bytes = fs::read(&path).with_context(|| format!("{name}: failed to read {path}"))?;
            anyhow::Ok(Some(bytes))
        }
        None => Ok(None),
    };
    let config = match file("CERTIFICATE")? {
        Some(authority) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    match (file("CLIENT_CERTIFICATE")?, file("CLIENT_KEY")?) {
        (Some(chain), Some(key)) => Ok(config.identity(Identity::from_pem(chain, key))),
        (None, None) => Ok(config),
        (Some(_), None) | (None, Some(_)) => {
            bail!("set both {EVERYTHING}CLIENT_CERTIFICATE and {EVERYTHING}CLIENT_KEY, or neither")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads from this list.
    fn of<'a>(list: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| list.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");

    #[test]
    fn an_endpoint_or_an_exporter_asks_for_export_and_either_of_two_switches_it_off() {
        for (list, expected) in [
            (&[][..], false),
            (&[ENDPOINT], true),
            (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://x")], true),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], false),
            (&[("OTEL_TRACES_EXPORTER", "otlp")], true),
            (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")], false),
            (&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")], false),
            (&[ENDPOINT, ("OTEL_SDK_DISABLED", "false")], true),
        ] {
            assert_eq!(wanted(&of(list)).unwrap(), expected, "{list:?}");
        }
    }

    #[test]
    fn what_there_is_not_is_refused_with_its_variable() {
        for (name, value) in [
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ] {
            let error = exporter(&of(&[ENDPOINT, (name, value)])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: ")) && error.contains(value), "{error}");
        }
        let own = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ];
        speaks_grpc(&of(&own)).unwrap();
    }

    #[test]
    fn the_scheme_says_whether_it_is_tls() {
        let general = |endpoint| ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        for (list, expected) in [
            (&[general("https://x:4317")][..], true),
            (&[general("http://x:4317")], false),
            (&[general("x:4317")], true),
            (&[general("x:4317"), ("OTEL_EXPORTER_OTLP_INSECURE", "true")], false),
            (&[general("https://x"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://y")], false),
            (&[], false),
        ] {
            assert_eq!(is_secure(&of(list)), expected, "{list:?}");
        }
    }

    #[test]
    fn a_certificate_that_cannot_be_read_is_named() {
        let list = [("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem")];
        let error = trust(&of(&list)).unwrap_err().to_string();
        assert_eq!(error, "OTEL_EXPORTER_OTLP_CERTIFICATE: failed to read /nowhere/ca.pem");
        let half = [("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/dev/null")];
        assert!(trust(&of(&half)).unwrap_err().to_string().contains("or neither"));
    }
}
