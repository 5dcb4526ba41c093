//! The server and its Redis in containers: what `deploy/compose.yaml` says agrees with the page, the sample configuration
//! and both programs.

use std::process::Command;

use crate::redis::{PASSWORD, Redis};
use crate::support::repository;

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
