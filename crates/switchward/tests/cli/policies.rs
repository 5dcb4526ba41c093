//! Policies of their own at the command line, and what holds for calls that no rule names.

use crate::support::{Dev, Ended, folder, program, run};

const TALK: &str = r#"{"name": "talk", "states": [{"name": "a", "type": "conversation"}, {"name": "b", "type": "conversation"}],
  "transitions": [{"from": "a", "to": "b", "guards": [{"type": "data_contains", "config": {"key": "go"}}]}]}"#;
const GUARD: &str = "policy: guard\ndeny:\n  - capability: mcp:fs:wipe\nask:\n  - capability: mcp:fs:*\n";

#[test]
fn a_policy_is_checked_deployed_attached_and_explained() {
    let dev = Dev::start();
    let folder = folder(&[("talk.json", TALK), ("guard.yaml", GUARD)]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let checked = run(["check", &path("guard.yaml")]).with_code(0);
    assert!(
        checked.out.contains("notice[SW1230]") && checked.out.contains("ok, 1 notice, policy guard"),
        "{checked:?}"
    );
    run(["check", "--strict", &path("guard.yaml")]).with_code(0);
    dev.run(&["deploy", &path("talk.json"), &path("guard.yaml")]).with_code(0);
    let attached = dev.run(&["policy", "attach", "guard", "--to", "talk"]).with_code(0);
    assert!(attached.out.contains("policies") && attached.out.contains("guard"), "{attached:?}");
    dev.run(&["start", "talk", "--key", "talk-7"]).with_code(0);
    dev.run(&["authorize", "talk-7", "mcp:fs:wipe"]).with_code(6);
    dev.run(&["authorize", "talk-7", "mcp:fs:read"]).with_code(7);
    let explained = dev.run(&["explain", "talk-7", "bash"]).with_code(0);
    assert!(explained.out.contains("(definition:guard@1, set by the format)"), "{explained:?}");
    dev.run(&["policy", "attach", "guard", "--tenant", "--as", "agent"]).with_code(6);
    let listed = dev.run(&["policy", "list"]).with_code(0);
    assert!(listed.out.contains("no policies"), "{listed:?}");
    dev.run(&["policy", "attach", "guard", "--tenant"]).with_code(0);
    assert_eq!(dev.json(&["policy", "list"])["tenant"]["policies"][0]["version"], 1);
    let explained = dev.run(&["explain", "talk-7", "mcp:fs:wipe"]).with_code(0);
    assert!(explained.out.contains("deny: mcp:fs:wipe (tenant:guard@1)"), "{explained:?}");
    dev.run(&["policy", "detach", "guard", "--tenant"]).with_code(0);
    dev.run(&["policy", "detach", "guard", "--tenant"]).with_code(3);
    dev.run(&["policy", "detach", "guard", "--from", "talk"]).with_code(0);
    dev.run(&["start", "talk", "--key", "talk-8"]).with_code(0);
    dev.run(&["authorize", "talk-8", "mcp:fs:wipe"]).with_code(0);
    dev.run(&["start", "guard"]).with_code(4);
    Ended::of(program().args(["policy", "attach", "guard"])).with_code(2);
}

#[test]
fn a_development_server_denies_by_default_if_it_is_configured_to() {
    let dev = Dev::start_on(&["--default", "deny"], &[]);
    let folder = folder(&[("talk.json", TALK)]);
    dev.run(&["deploy", folder.path().join("talk.json").to_str().unwrap()]).with_code(0);
    dev.run(&["start", "talk", "--key", "talk-7"]).with_code(0);
    let denied = dev.run(&["authorize", "talk-7", "bash"]).with_code(6);
    assert!(denied.out.contains("the server's configuration denies by default"), "{denied:?}");
    // It is denied also if nobody reads that it is: callers go by the exit code.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = dev.command();
    command.args(["authorize", "talk-7", "bash"]).env("SWITCHWARD_CONTEXT", "dev-agent");
    Ended::printing_to(writer, &mut command).with_code(6);
    let explained = dev.run(&["explain", "talk-7", "bash"]).with_code(0);
    assert!(explained.out.contains("set in the server's configuration"), "{explained:?}");
}
