//! `switchward cluster verify`: one call for each group, and what came of it.

use std::time::Duration;
use switchward_api::v1::{self, ClusterReplicaComparison as Comparison};

use crate::commands::client::talk::Talk;
use crate::exit::{Exit, FINDINGS};
use crate::output::{Table, clean};

/// How long one group may take beyond other calls: all its rows are read.
const LONGER: Duration = Duration::from_secs(60 * 60);
/// The digits of a digest that people are shown.
const DIGITS: usize = 16;

/// Verifies these groups, one after the other.
///
/// # Errors
/// A group cannot be verified; or its replicas differ, which has been printed.
pub(super) async fn run(talk: &Talk, groups: &[u64]) -> Result<(), Exit> {
    let client = talk.client.waiting(LONGER);
    let mut seen = Vec::new();
    for group in groups {
        talk.printer.progress(&format!("verifying group {group}"));
        let request = v1::VerifyGroupRequest { group: *group };
        let reply = client
            .call(request, |mut it, request| async move { it.cluster.verify_group(request).await })
            .await?;
        if talk.printer.is_json() {
            let printed = talk.printer.message("VerifyGroupResponse", &reply, String::new);
            printed.or_else(Exit::unless_output_closed)?;
        }
        seen.push(reply);
    }
    if !talk.printer.is_json() {
        crate::output::print(&text(&seen)).or_else(Exit::unless_output_closed)?;
    }
    if seen.iter().all(|group| servers(group, Comparison::Differs).is_empty()) {
        return Ok(());
    }
    talk.printer.advice("switchward cluster status");
    Err(Exit::reported(FINDINGS))
}

fn text(groups: &[v1::VerifyGroupResponse]) -> String {
    let mut table = Table::new(&["GROUP", "INDEX", "DIGEST", "AGREE", "DIFFER", "UNREACHABLE"]);
    for group in groups {
        let list = |comparison| {
            let servers = servers(group, comparison);
            servers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
        };
        table.row([
            group.group.to_string(),
            group.index.to_string(),
            clean(group.digest.get(..DIGITS).unwrap_or("none")),
            list(Comparison::Agrees),
            list(Comparison::Differs),
            list(Comparison::Unreachable),
        ]);
    }
    let reasons = groups.iter().flat_map(|group| group.replicas.iter().map(move |replica| (group, replica)));
    let reasons = reasons.filter(|(_, replica)| !replica.detail.is_empty());
    let reason = |(group, replica): (&v1::VerifyGroupResponse, &v1::ClusterReplicaDigest)| {
        format!("group {}, server {}: {}\n", group.group, replica.server, clean(&replica.detail))
    };
    let reasons: String = reasons.map(reason).collect();
    format!("{}{reasons}", table.text("no groups"))
}

fn servers(group: &v1::VerifyGroupResponse, comparison: Comparison) -> Vec<u64> {
    let of = group.replicas.iter().filter(|replica| replica.comparison() == comparison);
    of.map(|replica| replica.server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_line_and_each_silent_server_one_more() {
        let replica = |server, comparison: Comparison, detail: &str| v1::ClusterReplicaDigest {
            server,
            voter: true,
            comparison: comparison.into(),
            digest: String::new(),
            detail: detail.into(),
        };
        let group = v1::VerifyGroupResponse {
            group: 2,
            index: 41,
            digest: "ab".repeat(32),
            replicas: vec![
                replica(1, Comparison::Agrees, ""),
                replica(2, Comparison::Differs, ""),
                replica(3, Comparison::Unreachable, "it is down"),
            ],
        };
        assert_eq!(servers(&group, Comparison::Differs), [2]);
        let text = anstream::adapter::strip_str(&text(&[group])).to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["2", "41", "abababababababab", "1", "2", "3"]);
        assert_eq!(text.lines().last(), Some("group 2, server 3: it is down"));
    }
}
