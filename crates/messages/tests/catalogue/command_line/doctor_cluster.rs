//! What `switchward doctor` finds at a server of a cluster, compared with `expected/`.

use crate::support::{entry, same};
use std::path::Path;
use switchward_messages::cli::doctor::{cluster, shared};

#[test]
fn what_doctor_finds_in_a_cluster_is_rendered() {
    let made = [alone(), together()];
    same(&made.concat(), include_str!("../../expected/command_line/doctor_cluster.txt"));
}

fn alone() -> String {
    use cluster::*;
    let data = Path::new("/srv/data");
    let other = folder_of_other_server(data, &"server 1 of the cluster 3f", &"server 2 of the cluster 3f");
    [
        entry("certificate", &[MAKE_CERTIFICATES, COPY_CERTIFICATE, USE_SAME_AUTHORITY]),
        entry("peers", &[CORRECT_PEERS]),
        entry("folder", &[&other, USE_FILES_OF_ONE_SERVER]),
        entry("new folder", &[&folder_of_no_cluster(data), INIT_OR_JOIN, RESTORE_OR_REPLACE]),
    ]
    .concat()
}

fn together() -> String {
    use shared::*;
    let clocks = [clock_ahead(&server(2), 1_200), clock_ahead(THIS_MACHINE, -3_000)];
    let disks = [free_space(2, 100), unknown_space(3)];
    let why = &"the cluster writes level 5, and it knows levels up to 4";
    [
        entry("reachable", &[&reachable(&[2]), &reachable(&[2, 3])]),
        entry("unreachable", &[&unreachable(2, "connection refused"), CHECK_PEER, NO_PEERS, NAME_PEERS]),
        entry("unreachable at its address", &[&unreachable(2, "server 2 at 10.0.0.6:7401: not sent")]),
        entry(
            "clocks",
            &[&clocks_agree("3 clocks"), &clocks_differ(&clocks), USE_NTP, NO_MEDIAN, SYNCHRONISE_MACHINES],
        ),
        entry("levels", &[&level_known(&5), &level_can_be_raised(&5, &6), NO_LEVEL, RUN_AGAIN]),
        entry("wrong level", &[&wrong_level(THIS_PROGRAM, why), UNKNOWN_LEVEL]),
        entry("certificates", &[CERTIFICATES_VALID, &certificate_ends(2, "2026-12-31")]),
        entry("disks", &[&disks.join(", "), &disks_low(&disks), FREE_SPACE]),
        entry("key rings", &[SAME_KEYS, &other_keys(&[2, 3]), USE_SAME_KEYS]),
        entry("redis", &[SAME_REDIS, NO_REDIS, &other_redis(&[2]), USE_SAME_REDIS]),
        entry(
            "unreachable redis",
            &[&redis_unreachable(2, "timed out"), DELIVERIES_WAIT, REDIS_NOT_COMPARED, SEE_CHECK_OF_REDIS],
        ),
    ]
    .concat()
}
