//! What lies in `deploy/`: the unit, the sample configuration and the page that says how both are installed agree with one
//! another and with the program.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use switchward_testkit::finished;

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{folder, program, repository, run};

fn text(name: &str) -> String {
    std::fs::read_to_string(repository(&format!("deploy/{name}"))).expect("the file can be read")
}

/// The values of a key of the unit, in order.
fn values(unit: &str, key: &str) -> Vec<String> {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
    unit.lines().filter_map(value).collect()
}

/// The one value of a key of the unit.
#[track_caller]
fn value(unit: &str, key: &str) -> String {
    let [value] = &values(unit, key)[..] else { panic!("{key} stands once") };
    value.clone()
}

/// The files that the unit passes to the server: their names, and their paths.
fn credentials(unit: &str) -> Vec<(String, String)> {
    let split = |value: String| {
        let (name, path) = value.split_once(':').expect("a name and a path");
        (name.to_owned(), path.to_owned())
    };
    values(unit, "LoadCredential").into_iter().map(split).collect()
}

#[test]
fn the_unit_names_what_the_page_installs() {
    let (unit, page) = (text("switchward.service"), text("README.md"));
    let start = value(&unit, "ExecStart");
    let words: Vec<&str> = start.split(' ').collect();
    let ["/usr/bin/switchward", "server", "--config", config] = words[..] else { panic!("{start}") };
    for line in [
        "install -m 755 target/release/switchward /usr/bin/switchward".to_owned(),
        format!("install -m 644 -D deploy/switchward.toml {config}"),
        "install -m 644 deploy/switchward.service /etc/systemd/system/".to_owned(),
        "systemctl enable --now switchward".to_owned(),
    ] {
        assert!(page.lines().any(|it| it == line), "{line}");
    }
    assert!(page.contains(&format!("`{config}`")), "{config}");
    let keys = credentials(&unit);
    let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["tls.crt", "tls.key", "admin.key", "switchward-keys"]);
    for (name, path) in &keys {
        assert_eq!(path, &format!("/etc/switchward/{name}"));
        let installed = page.lines().any(|line| {
            line.trim_end_matches(')').ends_with(&format!("> {path}"))
                || line == format!("switchward secrets create {path}")
                || line.starts_with("install -m 600 -t /etc/switchward ")
                    && line.split(' ').any(|it| it == name)
        });
        assert!(installed, "nothing installs {path}");
    }
    let seconds = value(&unit, "TimeoutStopSec");
    assert!(page.contains(&format!("After {seconds} s systemd ends it")), "{seconds}");
    let restarts = [value(&unit, "StartLimitBurst"), value(&unit, "StartLimitIntervalSec")];
    assert_eq!(restarts, ["5", "300"]);
    assert!(page.contains("systemd tries five times in five minutes"));
    assert_eq!(value(&unit, "KillSignal"), "SIGTERM");
    assert!(page.contains("SIGTERM drains"));
}

#[test]
fn the_configuration_names_what_the_unit_provides() {
    let (unit, file, page) = (text("switchward.service"), text("switchward.toml"), text("README.md"));
    let folder = format!("/var/lib/{}", value(&unit, "StateDirectory"));
    assert!(file.contains(&format!("\ndata_dir = \"{folder}\"\n")) && page.contains(&format!("`{folder}`")));
    let loaded: BTreeSet<String> = credentials(&unit).into_iter().map(|(name, _)| name).collect();
    let read = file.lines().filter(|line| !line.starts_with('#'));
    let read = read.filter_map(|line| line.split("/run/credentials/switchward.service/").nth(1));
    let read: BTreeSet<String> = read.map(|rest| rest.trim_end_matches('"').to_owned()).collect();
    assert_eq!(read, loaded);
}

/// The sample as it is, except for the paths of its files and a free port.
#[test]
fn a_server_starts_as_the_unit_starts_it() {
    let (unit, site) = (text("switchward.service"), Site::new());
    let mut file = text("switchward.toml").replace("/run/credentials/switchward.service/", &site.path(""));
    file = file.replace("/var/lib/switchward", &site.path("data")).replace("0.0.0.0:7400", "127.0.0.1:0");
    std::fs::write(site.path("sample.toml"), file).expect("a file");
    run(["secrets", "create", &site.path("switchward-keys")]).with_code(0);
    std::fs::write(site.path("admin.key"), format!("{ADMIN_KEY}\n")).expect("a file");
    let start = value(&unit, "ExecStart");
    let mut command = program();
    for word in start.split(' ').skip(1) {
        command.arg(if word.ends_with(".toml") { site.path("sample.toml") } else { word.to_owned() });
    }
    let server = Running::of(&mut command);
    assert!(server.address.starts_with("https://127.0.0.1:"), "{}", server.address);
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// If systemd is installed, it accepts the unit.
#[test]
fn systemd_takes_the_unit() {
    let unit = text("switchward.service").replace("/usr/bin/switchward", env!("CARGO_BIN_EXE_switchward"));
    let files = folder(&[("switchward.service", &unit)]);
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]).arg(files.path().join("switchward.service"));
    let Ok(verify) = verify.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        // The other tests check the rest.
        let known = ["[Unit]", "[Service]", "[Install]"];
        let sections: Vec<&str> = unit.lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(sections, known);
        return;
    };
    let output = finished(verify);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("switchward.service"), "{stderr}");
}
