//! `switchward doctor`: checks a server's configuration from this machine. It changes nothing, and sends nothing unless
//! asked to.

mod certificate;
mod cluster;
mod machine;
mod mail;
mod redis;
mod secrets;
mod sent;

use serde_json::json;
use switchward_messages::cli::doctor as texts;

use super::server::flags;
use crate::args::{DoctorArgs, Output, ServerArgs};
use crate::config::Config;
use crate::exit::{Exit, FINDINGS};
use crate::member::{ProcessKind, ProcessRole};
use crate::output::{CARE, FAINT, GOOD, PROBLEM, clean, print};
use crate::{config, output, private, tls};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckStatus {
    Ok,
    /// It works, but needs attention.
    Warn,
    /// It does not work.
    Fail,
}

impl CheckStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The finding of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckResult {
    /// The name of the check, one word.
    what: &'static str,
    status: CheckStatus,
    /// The finding.
    said: String,
    /// What to do about it.
    advice: String,
}

impl CheckResult {
    fn ok(what: &'static str, said: impl Into<String>) -> Self {
        Self { what, status: CheckStatus::Ok, said: said.into(), advice: String::new() }
    }

    fn warn(what: &'static str, said: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what, status: CheckStatus::Warn, said: said.into(), advice: advice.into() }
    }

    fn fail(what: &'static str, said: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what, status: CheckStatus::Fail, said: said.into(), advice: advice.into() }
    }
}

/// Runs all checks, and ends with exit code 5 if one fails.
pub(crate) fn run(doctor: &DoctorArgs, output: Output) -> Result<(), Exit> {
    let args = &doctor.server;
    tls::install_provider();
    let config = match config::read(args.config.as_ref(), &flags(args)) {
        Ok(config) => config,
        Err(error) => {
            let found = CheckResult::fail("config", format!("{error:#}"), texts::SEE_ALL_SETTINGS);
            return report(&[found], output);
        }
    };
    let runtime = tokio::runtime::Runtime::new()?;
    report(&runtime.block_on(looked_at(doctor, &config)), output)
}

async fn looked_at(doctor: &DoctorArgs, config: &Config) -> Vec<CheckResult> {
    let mut found = vec![configuration(&doctor.server)];
    found.extend(tenants(config));
    let has_data = config.kind() == ProcessKind::Server;
    if has_data {
        found.push(machine::data(&config.data_dir));
        found.extend(machine::space(&config.data_dir, config.disk.options()));
    }
    found.push(machine::memory(config.memory_bytes()));
    if config.has(ProcessRole::Gateway) {
        found.push(machine::port(config).await);
    }
    found.extend(config.tls.as_ref().map(certificate::look));
    found.extend(secrets::look(&private::secret_files(config)));
    found.extend(secrets::incomplete(config));
    if has_data {
        found.push(secrets::ring(config));
    }
    found.push(machine::descriptors());
    let (redis, clock) = redis::look(config.redis.as_ref()).await;
    found.push(machine::clock(clock));
    let sends = config.kind() != ProcessKind::Gateway;
    if sends {
        found.push(redis);
    }
    found.extend(cluster::look(config).await);
    if !sends {
        return found;
    }
    let test_mail = if doctor.send { mail::TestMail::Send } else { mail::TestMail::Skip };
    found.extend(mail::look(config.mail.as_ref(), test_mail).await);
    found
}

fn configuration(args: &ServerArgs) -> CheckResult {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let unread = config::unread(names);
    if !unread.is_empty() {
        return CheckResult::warn("config", texts::ignored_variables(&unread), texts::CORRECT_VARIABLE);
    }
    CheckResult::ok(
        "config",
        match &args.config {
            Some(file) => texts::valid_file(file),
            None => texts::VALID_WITHOUT_FILE.to_owned(),
        },
    )
}

/// The first keys of the tenants, which a server reads at its start.
fn tenants(config: &Config) -> Option<CheckResult> {
    let (what, count) = ("tenants", config.tenants.len());
    match super::server::keys(config) {
        Ok(_) if count == 0 => None,
        Ok(_) => Some(CheckResult::ok(what, texts::readable_keys(&output::count(count, "tenant")))),
        Err(error) => Some(CheckResult::fail(what, format!("{error:#}"), texts::SEE_TENANTS)),
    }
}

fn report(found: &[CheckResult], output: Output) -> Result<(), Exit> {
    let failed = found.iter().any(|it| it.status == CheckStatus::Fail);
    let printed = print(&match output {
        Output::Text => text(found),
        Output::Json => {
            format!("{}\n", json!({ "ok": !failed, "checks": found.iter().map(object).collect::<Vec<_>>() }))
        }
        Output::Jsonl => found.iter().map(|it| format!("{}\n", object(it))).collect(),
    });
    printed.or_else(Exit::unless_output_closed)?;
    if failed { Err(Exit::reported(FINDINGS)) } else { Ok(()) }
}

fn object(found: &CheckResult) -> serde_json::Value {
    let mut object = json!({ "check": found.what, "status": found.status.word(), "message": found.said });
    if !found.advice.is_empty() {
        object["advice"] = found.advice.clone().into();
    }
    object
}

fn text(found: &[CheckResult]) -> String {
    let width = found.iter().map(|it| it.what.len()).max().unwrap_or_default();
    let mut text = String::new();
    for it in found {
        let style = match it.status {
            CheckStatus::Ok => GOOD,
            CheckStatus::Warn => CARE,
            CheckStatus::Fail => PROBLEM,
        };
        let said = clean(&it.said).replace('\n', " ");
        text.push_str(&format!("{style}{:<4}{style:#}  {:<width$}  {said}", it.status.word(), it.what));
        if !it.advice.is_empty() {
            text.push_str(&format!("{FAINT}; {}{FAINT:#}", clean(&it.advice)));
        }
        text.push('\n');
    }
    let count = |status| found.iter().filter(|it| it.status == status).count();
    let (warn, fail) = (count(CheckStatus::Warn), count(CheckStatus::Fail));
    let warnings = output::count(warn, "warning");
    let total = match (warn, fail) {
        (0, 0) => texts::ALL_PASSED.to_owned(),
        (_, 0) => texts::none_failed(&warnings),
        (_, _) => texts::some_failed(fail, &output::count(found.len(), "check"), &warnings),
    };
    text.push_str(&format!("\n{total}\n"));
    text
}
