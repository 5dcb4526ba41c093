//! Quotas of tenants: set by the command line or the configuration, shown, and refused with their names.

use serde_json::{Value, json};

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Dev, Ended, deploy_gate, program};

fn of(shown: &Value, quota: &str) -> Value {
    let uses = shown["quotaUses"].as_array().expect("quotas are shown");
    uses.iter().find(|one| one["quota"] == quota).cloned().expect("it is shown")
}

#[test]
fn a_quota_is_set_shown_and_named_if_it_is_used_up() {
    let dev = Dev::start();
    let made = dev.json(&["tenant", "create", "globex"]);
    let key = made["adminSecret"].as_str().expect("a secret").to_owned();
    let globex = |words: &[&str]| dev.run(&[words, &["--api-key", &key, "-o", "json"]].concat());
    let nothing = dev.json(&["tenant", "quotas", "globex"]);
    assert_eq!(
        of(&nothing, "sessions"),
        json!({ "quota": "sessions", "setIn": "QUOTA_SOURCE_DEFAULT", "used": "0" })
    );

    let words = ["tenant", "quotas", "globex", "--sessions", "1", "--bytes", "2MiB"];
    let set = dev.json(&words);
    assert_eq!(set["tenant"]["quotas"], json!({ "sessions": "1", "bytes": "2097152" }));
    globex(&["tenant", "quotas", "globex", "--sessions", "0"]).with_code(6);

    globex(&["deploy", &deploy_gate()]).with_code(0);
    globex(&["start", "deploy-gate", "--key", "release-1"]).with_code(0);
    let refused = globex(&["start", "deploy-gate", "--key", "release-2"]).with_code(4).error();
    assert_eq!(refused["reason"], "QUOTA_EXCEEDED", "{refused}");
    assert!(refused.to_string().contains("\"sessions\""), "{refused}");
    let own = globex(&["tenant", "get"]).with_code(0).json();
    let sessions = json!({ "quota": "sessions", "limit": "1", "setIn": "QUOTA_SOURCE_TENANT", "used": "1" });
    assert_eq!(of(&own, "sessions"), sessions);

    let read = dev.run(&["tenant", "quotas", "globex"]).with_code(0).out;
    let row = read.lines().find(|line| line.starts_with("sessions")).expect("a row");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["sessions", "1", "1", "tenant"]);
    let (_, page) = dev.metrics();
    assert!(page.contains("switchward_quota_refusals_total{quota=\"sessions\"} 1\n"), "{page}");

    assert!(read.lines().any(|line| line.split_whitespace().eq(["weight", "1", "(default)"])), "{read}");
    let heavy = dev.run(&["tenant", "quotas", "globex", "--weight", "4"]).with_code(0).out;
    assert!(heavy.lines().any(|line| line.split_whitespace().eq(["weight", "4"])), "{heavy}");
    dev.run(&["tenant", "quotas", "globex", "--weight", "0"]).with_code(2);
    dev.json(&["tenant", "quotas", "globex", "--weight", "default"]);

    let back = dev.json(&["tenant", "quotas", "globex", "--sessions", "default"]);
    assert_eq!(back["tenant"]["quotas"], json!({ "bytes": "2097152" }));
    globex(&["start", "deploy-gate", "--key", "release-2"]).with_code(0);
    let wrong = dev.run(&["tenant", "quotas", "globex", "--bytes", "2GB"]).with_code(2);
    assert!(wrong.err.contains("20GiB") || wrong.err.contains("a number"), "{wrong:?}");
}

#[test]
fn the_configuration_limits_tenants_that_set_nothing() {
    let site = Site::new();
    let mut command = site.plain("127.0.0.1:0");
    command.env("SWITCHWARD_QUOTAS__SESSIONS", "1").env("SWITCHWARD_QUOTAS__BYTES", "0");
    let running = Running::of(&mut command);
    let call = |words: &[&str]| {
        let connection = ["--address", &running.address, "-o", "json"];
        Ended::of(program().args(words).args(connection).env("SWITCHWARD_API_KEY", ADMIN_KEY))
    };
    call(&["deploy", &deploy_gate()]).with_code(0);
    call(&["start", "deploy-gate", "--key", "release-1"]).with_code(0);
    call(&["start", "deploy-gate", "--key", "release-2"]).with_code(4);
    let shown = call(&["tenant", "get"]).with_code(0).json();
    let sessions =
        json!({ "quota": "sessions", "limit": "1", "setIn": "QUOTA_SOURCE_CONFIGURATION", "used": "1" });
    assert_eq!(of(&shown, "sessions"), sessions);
    let bytes = of(&shown, "bytes");
    assert_eq!((&bytes["limit"], &bytes["setIn"]), (&Value::Null, &json!("QUOTA_SOURCE_CONFIGURATION")));
    let requests = of(&shown, "requests_per_second");
    assert_eq!((&requests["limit"], &requests["setIn"]), (&json!("2000"), &json!("QUOTA_SOURCE_DEFAULT")));
    call(&["tenant", "quotas", "acme", "--sessions", "2"]).with_code(0);
    call(&["start", "deploy-gate", "--key", "release-2"]).with_code(0);
}
