//! The server and its Redis in containers, and a cluster of them: what the files of `deploy/` say agrees with the page, the
//! sample configuration and the programs.

use serde_json::Value;
use std::process::Command;

use crate::redis::{PASSWORD, Redis};
use crate::server::Site;
use crate::support::{Ended, private, program, repository, run};

const BEGIN: &str = "exec redis-server - <<CONFIGURATION\n";
const END: &str = "CONFIGURATION\n";

fn text(name: &str) -> String {
    std::fs::read_to_string(repository(&format!("deploy/{name}"))).expect("the file can be read")
}

/// The Redis of the file, on a port of this machine and in a folder here.
#[test]
fn its_redis_keeps_what_it_has_evicts_nothing_and_wants_a_password() {
    let mut redis = Redis::absent();
    let compose = text("compose.yaml");
    let (_, rest) = compose.split_once(BEGIN).expect("it begins");
    let (settings, _) = rest.split_once(END).expect("it ends");
    let mut script = BEGIN.to_owned();
    for line in settings.lines() {
        script.push_str(line.trim());
        script.push('\n');
    }
    script = script.replace("$$", "$").replace("/run/secrets/redis.password", &redis.path("password"));
    script = script.replace("dir /data", &format!("dir {:?}", redis.path("")));
    script.push_str(&format!("port {}\nbind 127.0.0.1\n{END}", redis.port()));
    redis.run_as(Command::new("sh").args(["-euc", &script]));
    for (key, value) in [
        ("requirepass", PASSWORD),
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("maxmemory-policy", "noeviction"),
        ("maxmemory", "1073741824"),
    ] {
        // A list of two: the key and its value, each after its length.
        let answer = redis.lines(&format!("CONFIG GET {key}"), 5);
        assert_eq!((answer[2].as_str(), answer[4].as_str()), (key, value));
    }
}

#[test]
fn every_file_that_it_hands_over_is_made_on_the_page_and_read_by_the_configuration() {
    let (compose, page, sample) = (text("compose.yaml"), text("README.md"), text("switchward.toml"));
    let (_, section) = page.split_once("\n## In containers\n").expect("a section");
    let handed: Vec<&str> = compose.lines().filter_map(|line| line.split("target: ").nth(1)).collect();
    assert_eq!(handed.len(), 5, "{handed:?}");
    for target in handed {
        let target = target.trim_end_matches([' ', '}']);
        let name = target.rsplit('/').next().expect("a name");
        assert!(sample.contains(target), "{target}");
        assert!(compose.contains(&format!("  {name}: {{ file: ./secrets/{name} }}\n")), "{name}");
        assert!(section.contains(name), "{name}");
    }
    let commands: Vec<&str> = compose.lines().filter_map(|line| line.strip_prefix("#   ")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for line in commands {
        assert!(section.lines().any(|it| it == line), "{line}");
    }
}

/// A line of a mapping as a name and a value, without quotes.
fn pair(line: &str) -> (&str, &str) {
    let (name, value) = line.trim().split_once(": ").expect("a name and a value");
    (name, value.trim_matches(['\'', '"']))
}

/// What follows a line of the file, up to the next empty line.
fn section<'a>(compose: &'a str, line: &str) -> &'a str {
    let (_, rest) = compose.split_once(&format!("\n{line}\n")).unwrap_or_else(|| panic!("no line {line}"));
    rest.split("\n\n").next().unwrap_or(rest)
}

/// The program with the environment and the secrets of a service of the cluster, its files in the site's folder. It listens on
/// free ports, and reaches no other container.
fn of_service(compose: &str, site: &Site, service: &str) -> Command {
    let own = section(compose, &format!("  {service}:"));
    let kind = if service.starts_with("server-") { "server" } else { "gateway" };
    let shared = section(compose, &format!("x-{kind}: &{kind}"));
    let shared = shared.lines().filter(|line| !line.trim_start().starts_with('#'));
    let environment = own.lines().find_map(|line| line.trim().strip_prefix("environment: { <<: *server, "));
    let environment = environment.unwrap_or_default().trim_end_matches(" }").split(", ");
    let mut command = program();
    for (name, value) in shared.chain(environment).filter(|line| !line.is_empty()).map(pair) {
        let mut value = value.replace("0.0.0.0:7401", "127.0.0.1:0").replace("redis:6379", "127.0.0.1:1");
        for listen in ["0.0.0.0:7400", "127.0.0.1:7400"] {
            value = value.replace(listen, "127.0.0.1:0");
        }
        for server in 1..=3 {
            value = value.replace(&format!("server-{server}:7401"), &format!("127.0.0.{server}:1"));
        }
        value = value.replace("/run/secrets/", &site.path(""));
        command.env(name, value.replace("/var/lib/switchward", &site.path(&format!("data-{service}"))));
    }
    command.env("SWITCHWARD_METRICS__LISTEN", "127.0.0.1:0");
    for handed in own.lines().filter_map(|line| line.trim().strip_prefix("- ")) {
        let pair = handed.strip_prefix("{ source: ").map(|pair| pair.trim_end_matches(" }"));
        let (source, target) = pair.map_or((handed, handed), |pair| {
            pair.split_once(", target: ").expect("the names of a secret and of its file")
        });
        if compose.contains(&format!("\n  {source}: {{ file: ./secrets/cluster/{source} }}\n")) {
            std::fs::copy(site.path(&format!("cluster/{source}")), site.path(target)).expect("a certificate");
        }
    }
    command
}

/// The servers found and join their cluster by the commands of the file, and find nothing to correct in what it says.
#[test]
fn servers_and_gateways_of_the_cluster_are_set_up_as_its_file_says() {
    let (compose, site) = (text("cluster.compose.yaml"), Site::new());
    run(["secrets", "create", &site.path("switchward-keys")]).with_code(0);
    private(site.path("redis.password"), PASSWORD);
    let commands: Vec<&str> = compose.lines().filter_map(|line| line.strip_prefix("#   ")).collect();
    let certs = commands.iter().find_map(|line| line.strip_prefix("target/release/switchward "));
    let certs =
        certs.expect("it makes certificates").replace("deploy/secrets/cluster", &site.path("cluster"));
    run(certs.split(' ')).with_code(0);
    let mut servers = Vec::new();
    for line in commands {
        let Some((_, line)) = line.split_once("docker compose -f deploy/cluster.compose.yaml run --rm ")
        else {
            continue;
        };
        let (service, words) = line.split_once(' ').expect("a service and a command");
        let made = Ended::of(of_service(&compose, &site, service).args(words.split(' '))).with_code(0);
        let says = format!("is the folder of {} of cluster", service.replace('-', " "));
        assert!(made.out.contains(&says), "{made:?}");
        servers.push(service);
    }
    assert_eq!(servers, ["server-1", "server-2", "server-3"]);
    for service in servers.into_iter().chain(["gateway-1", "gateway-2"]) {
        let ended = Ended::of(of_service(&compose, &site, service).args(["doctor", "-o", "json"]));
        let found = ended.json()["checks"].as_array().cloned().expect("a list");
        let status = |what: &str| {
            let found = found.iter().filter(|check| check["check"] == what);
            found.map(|check| check["status"].clone()).collect::<Vec<Value>>()
        };
        assert_eq!(status("config"), ["ok"], "{service}: {found:?}");
        assert_eq!(status("cluster"), ["ok"], "{service}: {found:?}");
        assert_eq!(status("folder"), Vec::<Value>::new(), "{service}: {found:?}");
        let sends = service.starts_with("server");
        for what in ["redis", "mail"] {
            assert_eq!(status(what).is_empty(), !sends, "{what} of {service}: {found:?}");
        }
    }
}
