//! A cluster as text for people: its servers, then its groups.

use std::time::Duration;
use switchward_api::v1::{self, ClusterServerState};
use switchward_shard::limits::CLOCK_APART_MAX_MS;

use crate::commands::client::show;
use crate::output::{Table, card, clean, count, period};

/// What nobody has answered.
const UNKNOWN: &str = "unknown";
/// Below this, a clock's difference is shown in milliseconds.
const CLOCK_MS_SHOWN: Duration = Duration::from_secs(10);

/// The whole cluster.
pub(super) fn cluster(cluster: &v1::GetClusterResponse) -> String {
    let head = card(&[
        ("cluster", cluster.cluster_id.clone()),
        ("epoch", cluster.epoch.to_string()),
        ("level", cluster.level.to_string()),
        ("answered_by", cluster.answered_by.to_string()),
        ("effects_held", held(cluster.effects_held_tenants)),
    ]);
    format!("{head}\n{}\n{}", servers(cluster), groups(cluster))
}

/// For how many tenants nothing goes out after a restore; empty if it is none.
fn held(tenants: u32) -> String {
    if tenants == 0 { String::new() } else { count(tenants as usize, "tenant") }
}

/// The level of the cluster, and the levels of its servers.
pub(super) fn levels(cluster: &v1::GetClusterResponse) -> String {
    let mut table = Table::new(&["SERVER", "STATE", "VERSION", "LEVELS"]);
    for server in &cluster.servers {
        let version = known(Some(clean(&server.version)).filter(|version| !version.is_empty()));
        table.row([server.number.to_string(), state(server), version, range(server)]);
    }
    let head = card(&[("level", cluster.level.to_string())]);
    format!("{head}\n{}", table.text("no servers"))
}

/// The lowest and the highest feature level of a server.
fn range(server: &v1::ClusterServer) -> String {
    let (lowest, highest) = (server.lowest_level, server.highest_level);
    if lowest == highest { lowest.to_string() } else { format!("{lowest}-{highest}") }
}

fn servers(cluster: &v1::GetClusterResponse) -> String {
    let mut table = Table::new(&[
        "SERVER",
        "STATE",
        "LEADS",
        "REPLICAS",
        "LAG",
        "CONTACT",
        "ADDRESS",
        "DISK_FREE",
        "CLOCK",
        "CERTIFICATE",
        "VERSION",
        "LEVELS",
    ]);
    for server in &cluster.servers {
        table.row(row(cluster, server));
    }
    table.text("no servers")
}

fn row(cluster: &v1::GetClusterResponse, server: &v1::ClusterServer) -> [String; 12] {
    let replicas: Vec<&v1::ClusterReplica> = cluster
        .groups
        .iter()
        .flat_map(|group| &group.replicas)
        .filter(|one| one.server == server.number)
        .collect();
    let (number, level) = (server.number.to_string(), range(server));
    let address = clean(&server.address);
    if server.state() == ClusterServerState::Removed {
        let none = String::new;
        return [
            number,
            state(server),
            none(),
            none(),
            none(),
            none(),
            address,
            none(),
            none(),
            none(),
            none(),
            level,
        ];
    }
    let lag = replicas.iter().filter_map(|replica| replica.lag_entries).max();
    let certificate = match (&server.certificate_expire_time, server.reachable) {
        (Some(expires), _) => show::time(Some(expires)),
        (None, true) => "none".to_owned(),
        (None, false) => UNKNOWN.to_owned(),
    };
    [
        number,
        state(server),
        server.leads.len().to_string(),
        replicas.len().to_string(),
        known(lag.map(|lag| lag.to_string())),
        contact(server.number == cluster.answered_by, &replicas),
        address,
        known(server.disk_free_bytes.map(size)),
        known(server.clock_offset_ms.map(|offset| clock(offset, server))),
        certificate,
        known(Some(clean(&server.version)).filter(|version| !version.is_empty())),
        level,
    ]
}

/// The groups, each with its leader and voters.
pub(super) fn groups(cluster: &v1::GetClusterResponse) -> String {
    let mut table =
        Table::new(&["GROUP", "LEADER", "VOTERS", "LEARNERS", "LAG", "LOG", "TERM", "LAST_INDEX", "FAILED"]);
    for group in &cluster.groups {
        let voting = |voter: bool| {
            let replicas = group.replicas.iter().filter(move |replica| replica.voter == voter);
            list(&replicas.map(|replica| replica.server).collect::<Vec<_>>())
        };
        let lag = group.replicas.iter().filter_map(|replica| replica.lag_entries).max();
        let log = group.replicas.iter().filter_map(|replica| replica.log_bytes).max();
        let failed = group.replicas.iter().filter(|replica| !replica.failure.is_empty());
        table.row([
            group.number.to_string(),
            known(group.leader.map(|leader| leader.to_string())),
            voting(true),
            voting(false),
            known(lag.map(|lag| lag.to_string())),
            known(log.map(size)),
            group.term.to_string(),
            group.last_index.to_string(),
            list(&failed.map(|replica| replica.server).collect::<Vec<_>>()),
        ]);
    }
    table.text("no groups")
}

fn state(server: &v1::ClusterServer) -> String {
    let word = show::word(server.state().as_str_name(), "CLUSTER_SERVER_STATE_");
    match server.replaced_by {
        None => word,
        Some(by) => format!("{word} (replaced by {by})"),
    }
}

/// How far a server's clock is ahead, and what follows if that is too much.
fn clock(offset_ms: i64, server: &v1::ClusterServer) -> String {
    let differs = offset_ms.unsigned_abs() > CLOCK_APART_MAX_MS;
    let consequence = match (server.clock_bars, differs) {
        (true, _) => " (leads nothing)",
        // No majority of the clocks says which one is wrong, so the server may lead.
        (false, true) => " (undecided)",
        (false, false) => "",
    };
    let length = Duration::from_millis(offset_ms.unsigned_abs());
    if length < CLOCK_MS_SHOWN {
        return format!("{offset_ms:+} ms{consequence}");
    }
    let sign = if offset_ms < 0 { '-' } else { '+' };
    format!("{sign}{}{consequence}", period(length))
}

/// Since a leader's last contact with the server.
fn contact(is_asked: bool, replicas: &[&v1::ClusterReplica]) -> String {
    if is_asked {
        return "now".to_owned();
    }
    let silent = replicas.iter().filter_map(|replica| replica.silent_ms).min();
    known(silent.map(|ms| if ms < 1_000 { "now".to_owned() } else { period(Duration::from_millis(ms)) }))
}

fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn list(numbers: &[u64]) -> String {
    if numbers.is_empty() {
        return "-".to_owned();
    }
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// Bytes in the largest unit of which there is one at least, with one decimal.
fn size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB")] {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{} KiB", bytes >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> v1::GetClusterResponse {
        let server = |number, state: ClusterServerState| v1::ClusterServer {
            number,
            address: format!("10.0.0.{number}:7401"),
            state: state.into(),
            lowest_level: 1,
            highest_level: 2,
            reachable: number == 1,
            leads: if number == 1 { vec![0, 1] } else { Vec::new() },
            ..Default::default()
        };
        let replica = |server, lag_entries, silent_ms| v1::ClusterReplica {
            server,
            voter: server != 4,
            lag_entries,
            silent_ms,
            ..Default::default()
        };
        let group = |number| v1::ClusterGroup {
            number,
            leader: Some(1),
            term: 4,
            last_index: 90,
            replicas: vec![
                replica(1, Some(0), Some(0)),
                replica(3, Some(7), Some(90_000)),
                replica(4, None, None),
            ],
        };
        let mut servers = vec![
            server(1, ClusterServerState::Active),
            server(2, ClusterServerState::Removed),
            server(3, ClusterServerState::Draining),
            server(4, ClusterServerState::Active),
        ];
        servers[0].disk_free_bytes = Some(3 << 29);
        servers[0].clock_offset_ms = Some(0);
        servers[0].version = "1.2.3".into();
        servers[2].replaced_by = Some(4);
        (servers[3].clock_offset_ms, servers[3].clock_bars) = (Some(-3_600_000), true);
        v1::GetClusterResponse {
            answered_by: 1,
            servers,
            groups: vec![group(0), group(1)],
            ..Default::default()
        }
    }

    #[test]
    fn what_a_server_has_not_answered_is_unknown() {
        let cluster = seen();
        let rows: Vec<String> =
            cluster.servers.iter().map(|server| row(&cluster, server).join("|")).collect();
        assert_eq!(
            rows,
            [
                "1|active|2|2|0|now|10.0.0.1:7401|1.5 GiB|+0 ms|none|1.2.3|1-2",
                "2|removed|||||10.0.0.2:7401|||||1-2",
                "3|draining (replaced by 4)|0|2|7|1m 30s|10.0.0.3:7401|unknown|unknown|unknown|unknown|1-2",
                "4|active|0|2|unknown|unknown|10.0.0.4:7401|unknown|-1h (leads nothing)|unknown|unknown|1-2",
            ]
        );
        let text = anstream::adapter::strip_str(&super::cluster(&cluster)).to_string();
        assert!(text.contains("answered_by  1"), "{text}");
        assert!(!text.contains("effects_held"), "{text}");
        let restored = v1::GetClusterResponse { effects_held_tenants: 2, ..cluster.clone() };
        let text_held = anstream::adapter::strip_str(&super::cluster(&restored)).to_string();
        assert!(text_held.contains("effects_held  2 tenants"), "{text_held}");
        let levels = anstream::adapter::strip_str(&super::levels(&cluster)).to_string();
        assert!(levels.lines().any(|line| line.ends_with("1-2")), "{levels}");
        assert!(text.lines().any(|line| line.starts_with("GROUP") && line.contains("LEARNERS")), "{text}");
    }

    #[test]
    fn clocks_are_shown_in_milliseconds_below_ten_seconds() {
        let shown = [2_000, -9_999, 10_000, i64::MIN].map(|ms| clock(ms, &v1::ClusterServer::default()));
        assert_eq!(shown[..3], ["+2000 ms", "-9999 ms (undecided)", "+10s (undecided)"]);
        assert!(shown[3].starts_with('-'), "{}", shown[3]);
        let barred = v1::ClusterServer { clock_bars: true, ..Default::default() };
        assert_eq!(clock(1_700, &barred), "+1700 ms (leads nothing)", "until it has been close for a while");
    }

    #[test]
    fn sizes() {
        let sizes = [0, 5 << 10, 3 << 20, (1 << 30) + (1 << 29), 2 << 40].map(size);
        assert_eq!(sizes, ["0 KiB", "5 KiB", "3.0 MiB", "1.5 GiB", "2.0 TiB"]);
    }
}
