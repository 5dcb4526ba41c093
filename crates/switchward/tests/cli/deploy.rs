//! What lies in `deploy/`: the unit, the sample configuration and the page that says how both are installed agree with one
//! another and with the program.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use switchward_testkit::{finished, within};

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, folder, program, repository, run};

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

/// The values that a host of a cluster gives to its server: those of the drop-in, and those of the host, without quotes.
fn cluster_environment() -> Vec<(String, String)> {
    let (conf, host) = (text("switchward.service.d/cluster.conf"), text("server.env"));
    let host = host.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned);
    let split = |line: String| {
        let (name, value) = line.split_once('=').expect("a name and a value");
        (name.to_owned(), value.trim_matches('\'').to_owned())
    };
    values(&conf, "Environment").into_iter().chain(host).map(split).collect()
}

/// Makes the certificates of the page in a folder of the site, under the names that the units give them.
fn certificates(site: &Site, stem: &str) {
    let certs = site.path("certs");
    run([
        "cluster",
        "certs",
        "--dir",
        &certs,
        "--servers",
        "3",
        "--gateway",
        "edge-1",
        "--delivery",
        "out-1",
    ])
    .with_code(0);
    let (certificate, key) = (format!("{stem}.crt"), format!("{stem}.key"));
    for (from, to) in [("ca.crt", "ca.crt"), (certificate.as_str(), "own.crt"), (key.as_str(), "own.key")] {
        std::fs::copy(format!("{certs}/{from}"), site.path(to)).expect("a certificate");
    }
}

#[test]
fn the_page_installs_what_the_units_of_a_cluster_name() {
    let (conf, page) = (text("switchward.service.d/cluster.conf"), text("README.md"));
    let [gateway, delivery] = ["gateway", "delivery"].map(|kind| text(&format!("switchward-{kind}.service")));
    let (_, section) = page.split_once("\n## A cluster on hosts\n").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("its end");
    let (of_server, section) = section.split_once("\nA gateway holds no data").expect("two parts");
    let (of_gateway, of_delivery) = section.split_once("\nA delivery process holds no").expect("two parts");
    let installs = |part: &str, line: &str| assert!(part.lines().any(|it| it == line), "{line}");
    for (part, unit, stem, secrets) in [
        (of_server, &conf, "server-1", "tls.crt tls.key"),
        (of_gateway, &gateway, "gateway-edge-1", "tls.crt tls.key"),
        (of_delivery, &delivery, "delivery-out-1", "redis.password smtp.password"),
    ] {
        for (name, path) in credentials(unit) {
            let source = match name.as_str() {
                "ca.crt" => "certs/ca.crt".to_owned(),
                "own.crt" | "own.key" => format!("certs/{}", name.replace("own", stem)),
                _ => {
                    installs(part, &format!("install -m 600 -t /etc/switchward {secrets}"));
                    continue;
                }
            };
            installs(part, &format!("install -m 600 {source} {path}"));
        }
    }
    for (part, unit, kind) in [(of_gateway, &gateway, "gateway"), (of_delivery, &delivery, "delivery")] {
        let config = value(unit, "ExecStart");
        let config = config.rsplit(' ').next().expect("a path");
        installs(part, &format!("install -m 644 -D deploy/{kind}.toml {config}"));
        installs(part, &format!("install -m 644 deploy/switchward-{kind}.service /etc/systemd/system/"));
    }
    installs(of_server, &format!("install -m 644 deploy/server.env {}", value(&conf, "EnvironmentFile")));
    let drop_in = "switchward.service.d/cluster.conf";
    installs(of_server, &format!("install -m 644 -D deploy/{drop_in} /etc/systemd/system/{drop_in}"));
    let seconds = value(&conf, "TimeoutStopSec");
    assert!(of_server.contains(&format!("After {seconds} s systemd ends it")), "{seconds}");
    let listen = values(&conf, "Environment").concat();
    assert!(listen.contains("SWITCHWARD_CLUSTER__LISTEN=0.0.0.0:7401") && of_server.contains("| 7401, at "));
}

/// The units protect the host alike; only what a process without data does not have is missing.
#[test]
fn processes_without_data_are_locked_in_as_the_server_is() {
    for kind in ["gateway", "delivery"] {
        locked_in(kind);
    }
}

/// The unit and the sample of one kind of process.
fn locked_in(kind: &str) {
    let (server, unit) = (text("switchward.service"), text(&format!("switchward-{kind}.service")));
    let from = |unit: &str| {
        let begin = unit.find("NoNewPrivileges").expect("the protections begin");
        unit[begin..].to_owned()
    };
    assert_eq!(from(&server), from(&unit));
    for key in ["DynamicUser", "UMask", "KillSignal", "KillMode", "TimeoutStopSec", "Restart", "Type"] {
        assert_eq!(value(&server, key), value(&unit, key), "{key}");
    }
    assert_eq!(values(&unit, "StateDirectory"), Vec::<String>::new());
    let (read, folder) =
        (text(&format!("{kind}.toml")), format!("/run/credentials/switchward-{kind}.service/"));
    let read = read.lines().filter(|line| !line.starts_with('#'));
    let read = read.filter_map(|line| line.split(&folder).nth(1));
    let read: BTreeSet<String> = read.map(|rest| rest.trim_end_matches('"').to_owned()).collect();
    let loaded: BTreeSet<String> = credentials(&unit).into_iter().map(|(name, _)| name).collect();
    assert_eq!(read, loaded);
}

/// The sample with the drop-in and the values of the first host, except for the paths of its files and its ports.
#[test]
fn the_first_server_of_a_cluster_starts_as_its_host_starts_it() {
    let (site, credentials) = (Site::new(), "/run/credentials/switchward.service/");
    certificates(&site, "server-1");
    let mut file = text("switchward.toml").replace(credentials, &site.path(""));
    file = file.replace("/var/lib/switchward", &site.path("data")).replace("0.0.0.0:7400", "127.0.0.1:0");
    std::fs::write(site.path("sample.toml"), file).expect("a file");
    run(["secrets", "create", &site.path("switchward-keys")]).with_code(0);
    std::fs::write(site.path("admin.key"), format!("{ADMIN_KEY}\n")).expect("a file");
    let environment = cluster_environment();
    let first = environment.iter().find(|(name, _)| name == "FIRST_START").expect("the first start");
    assert_eq!(first.1, "init");
    let configured = |words: &[&str]| {
        let mut command = program();
        command.args(words).args(["--config", &site.path("sample.toml")]);
        for (name, value) in environment.iter().filter(|(name, _)| name.starts_with("SWITCHWARD_")) {
            let value = value.replace(credentials, &site.path("")).replace("0.0.0.0:7401", "127.0.0.1:0");
            command.env(name, value);
        }
        command.env("SWITCHWARD_METRICS__LISTEN", "127.0.0.1:0");
        command
    };
    let made = Ended::of(&mut configured(&["cluster", &first.1])).with_code(0);
    assert!(made.out.contains("is the folder of server 1 of cluster"), "{made:?}");
    let server = Running::of(&mut configured(&["server"]));
    assert!(std::path::Path::new(&site.path("data/FORMAT")).exists(), "the next start makes no folder");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("is not a setting"), "{log}");
}

#[test]
fn a_gateway_starts_as_its_unit_starts_it() {
    let line = starts_as_its_unit("gateway", "gateway-edge-1");
    assert!(line.contains("\"address\":\"https://127.0.0.1:"), "{line}");
}

#[test]
fn a_delivery_process_starts_as_its_unit_starts_it() {
    let line = starts_as_its_unit("delivery", "delivery-out-1");
    assert!(line.contains("\"durable\":false") && !line.contains("address"), "{line}");
}

/// Starts the sample of a process without data as it is, except for the paths of its files and its ports, and stops it. Returns
/// what it has printed.
fn starts_as_its_unit(kind: &str, certificate: &str) -> String {
    let (unit, site) = (text(&format!("switchward-{kind}.service")), Site::new());
    certificates(&site, certificate);
    for password in ["redis.password", "smtp.password"] {
        switchward_store::write_secret(site.path(password).as_ref(), b"secret\n").expect("a file");
    }
    let credentials = format!("/run/credentials/switchward-{kind}.service/");
    let file = text(&format!("{kind}.toml")).replace(&credentials, &site.path(""));
    let file = file
        .replace("0.0.0.0:7400", "127.0.0.1:0")
        .replace("rediss://redis.acme.example:6379", "redis://127.0.0.1:1");
    std::fs::write(site.path("sample.toml"), file).expect("a file");
    let start = value(&unit, "ExecStart");
    let mut command = program();
    for word in start.split(' ').skip(1) {
        command.arg(if word.ends_with(".toml") { site.path("sample.toml") } else { word.to_owned() });
    }
    command.args(["-o", "json"]).env("SWITCHWARD_METRICS__LISTEN", "127.0.0.1:0");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (id, mut line) = (child.id(), String::new());
    let mut stdout = BufReader::new(child.stdout.take().expect("it has an output"));
    within(id, "it is ready", || stdout.read_line(&mut line)).expect("text");
    let kill = Command::new("kill").args(["-TERM", &id.to_string()]).status();
    assert!(kill.expect("there is a kill").success());
    let ended = finished(child);
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    line
}

/// If systemd is installed, it accepts the units, that of the server with and without the drop-in.
#[test]
fn systemd_takes_the_units() {
    let here = |name: &str| text(name).replace("/usr/bin/switchward", env!("CARGO_BIN_EXE_switchward"));
    let drop_in = "switchward.service.d/cluster.conf";
    let server = ("switchward.service", here("switchward.service"));
    let gateway = ("switchward-gateway.service", here("switchward-gateway.service"));
    let delivery = ("switchward-delivery.service", here("switchward-delivery.service"));
    for files in [vec![server.clone()], vec![server, (drop_in, here(drop_in))], vec![gateway], vec![delivery]]
    {
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let (name, unit) = files[0];
        let folder = folder(&files);
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", "--recursive-errors=no"]).arg(folder.path().join(name));
        let Ok(verify) = verify.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
            // The other tests check the rest.
            let sections: Vec<&str> = unit.lines().filter(|line| line.starts_with('[')).collect();
            assert_eq!(sections, ["[Unit]", "[Service]", "[Install]"]);
            continue;
        };
        let output = finished(verify);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains(name), "{stderr}");
    }
}
