//! `/metrics`, as Prometheus reads it.

use crate::support::{Dev, deploy_gate};

/// The samples of a family on a page, each with its labels and its value.
fn samples<'a>(page: &'a str, family: &str) -> Vec<(&'a str, u64)> {
    let lines = page.lines().filter_map(|line| line.strip_prefix(family));
    let sample = |rest: &'a str| {
        let (labels, value) = rest.rsplit_once(' ').expect("a sample has a value");
        (labels, value.parse().unwrap_or_else(|error| panic!("{error}: {rest}")))
    };
    lines.map(sample).collect()
}

fn sum(page: &str, family: &str) -> u64 {
    samples(page, family).iter().map(|(_, value)| value).sum()
}

#[test]
fn a_step_is_counted() {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    dev.run(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    let (_, before) = dev.metrics();
    dev.run(&["answer", "release-42", "yes"]).with_code(0);
    let (head, after) = dev.metrics();
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: text/plain; version=0.0.4"), "{head}");
    for family in
        ["switchward_shard_commands_total", "switchward_shard_events_total", "switchward_log_syncs_total"]
    {
        assert!(after.contains(&format!("\n# TYPE {family} counter\n")), "{family}: {after}");
        assert!(sum(&after, family) > sum(&before, family), "{family}\n{before}\n{after}");
    }
    assert!(sum(&before, "switchward_shard_commands_total") > 0);
    let [used, held] =
        ["allocated", "resident"].map(|of| sum(&after, &format!("switchward_memory_{of}_bytes")));
    assert!(0 < used && used < held, "{after}");
}

#[test]
fn what_goes_up_alone_is_a_counter_and_no_label_is_a_tenants() {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    let (_, page) = dev.metrics();
    let types: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert!(types.len() > 8, "{page}");
    for family in types {
        let (name, kind) = family.split_once(' ').expect("a family has a type");
        let expected = if name.ends_with("_total") { "counter" } else { "gauge" };
        assert_eq!(kind, expected, "{name}");
        for (labels, _) in samples(&page, name) {
            let of = |label: &str| labels.strip_prefix(label).and_then(|rest| rest.strip_suffix("\"}"));
            let shard = of("{shard=\"").is_some_and(|it| it.parse::<u32>().is_ok());
            let quota =
                of("{quota=\"").is_some_and(|it| ["requests_per_second", "sessions", "bytes"].contains(&it));
            assert!(labels.is_empty() || shard || quota, "{name}{labels}");
        }
    }
}
