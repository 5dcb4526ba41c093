//! A server that starts again gives the cluster its address and its feature levels.
//!
//! After its address has changed, no leader reaches it, and it knows none: it asks the others by its own connections, as a
//! server that joins does.

use std::sync::Weak;
use switchward_state::catalogue::{CatalogueCommand, JoinServer, Server, ServerState};
use switchward_state::{Body, Rejection};
use switchward_store::DataDir;
use tokio::time::{Instant, sleep};

use super::join::{ask, joining, of_catalogue, this_server};
use super::message::JoinAnswer;
use super::options::{MemberOptions, MemberStart};
use super::peers::{peers_of, servers};
use crate::failure::Failure;
use crate::limits::{JOIN_AGAIN, PROGRESS_INTERVAL};
use crate::shards::Shards;

/// What a server gives the cluster.
pub(crate) struct Announcement {
    member: MemberOptions,
    server: JoinServer,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq)]
enum Attempt {
    /// The catalogue has it.
    Done,
    /// The cluster refuses it, and will refuse it again.
    Refused(Rejection),
    /// It is to be tried again; the reason.
    Again(String),
}

impl Announcement {
    /// The announcement of this server.
    pub(crate) fn of(data: &DataDir, member: &MemberOptions) -> Self {
        Self { member: member.clone(), server: this_server(data, member) }
    }

    /// Tries until the catalogue has it, or refuses it, or the cluster is gone. A refusal is only logged: the server is a
    /// member all the same.
    pub(crate) async fn work(self, cluster: Weak<Shards>) {
        // A leader may be about to find this server at the address that the rows have.
        let mut is_soon = true;
        let mut report_at = Instant::now() + PROGRESS_INTERVAL;
        loop {
            let attempt = {
                let Some(cluster) = cluster.upgrade() else { return };
                if cluster.catalogue().draining() {
                    return;
                }
                self.attempt(&cluster, std::mem::take(&mut is_soon)).await
            };
            match attempt {
                Attempt::Done => return,
                Attempt::Refused(rejection) => {
                    tracing::error!(error = %rejection.message, "the cluster refuses this server's address");
                    return;
                }
                Attempt::Again(why) if Instant::now() >= report_at => {
                    tracing::warn!(why, "failed to give the cluster this server's address; trying again");
                    report_at = Instant::now() + PROGRESS_INTERVAL;
                }
                Attempt::Again(_) => {}
            }
            sleep(JOIN_AGAIN).await;
        }
    }

    async fn attempt(&self, cluster: &Shards, is_soon: bool) -> Attempt {
        let catalogue = cluster.catalogue();
        let known = servers(&catalogue.read_stale()).unwrap_or_default();
        if is_given(&known, &self.server) {
            if catalogue.leader().is_some() {
                return Attempt::Done;
            }
            if is_soon {
                return Attempt::Again("no leader has reached this server".into());
            }
        }
        if catalogue.leads() {
            let join = CatalogueCommand::JoinServer(self.server.clone());
            return match catalogue.submit(of_catalogue(Body::Catalogue(join))).await {
                Ok(_) => Attempt::Done,
                Err(Failure::Rejected(rejection)) => Attempt::Refused(rejection),
                Err(failure) => Attempt::Again(failure.to_string()),
            };
        }
        self.ask_others(&known).await
    }

    /// Asks the other servers in turn, until one of them has an answer.
    async fn ask_others(&self, known: &[Server]) -> Attempt {
        let mut last = "there is no other server".to_owned();
        for other in others(known, &self.member) {
            match ask(&self.member, other, &joining(&self.server)).await {
                Ok(JoinAnswer::Admitted { servers, .. }) => {
                    self.member.transport.know(&peers_of(&servers, self.member.number));
                    return Attempt::Done;
                }
                Ok(JoinAnswer::Refused(rejection)) => return Attempt::Refused(rejection),
                Ok(JoinAnswer::Again(why)) | Err(why) => last = format!("server {other}: {why}"),
            }
        }
        Attempt::Again(last)
    }
}

/// Returns true if the rows have what a server gives.
fn is_given(known: &[Server], server: &JoinServer) -> bool {
    let own = known.iter().find(|known| known.number == server.number);
    own.is_some_and(|own| own.address == server.address && own.levels == server.levels)
}

/// The servers to ask: those of the rows, and those that the server was to ask when it joined.
fn others(known: &[Server], member: &MemberOptions) -> Vec<u64> {
    let present = known.iter().filter(|server| server.state != ServerState::Removed);
    let mut others: Vec<u64> = present.map(|server| server.number).collect();
    if let MemberStart::Join { peers } = &member.start {
        others.extend(peers);
    }
    others.retain(|other| *other != member.number);
    others.sort_unstable();
    others.dedup();
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::Time;
    use switchward_state::{Level, Levels};

    fn levels(highest: u32) -> Levels {
        Levels { lowest: Level(1), highest: Level(highest) }
    }

    fn row(number: u64, address: &str, level: u32) -> Server {
        let levels = levels(level);
        let (address, state) = (address.to_owned(), ServerState::Active);
        Server { number, folder: [1; 16], address, state, levels, joined: Time(1), replaced_by: None }
    }

    #[test]
    fn a_server_whose_row_is_missing_or_differs_is_announced() {
        let server = JoinServer { number: 2, folder: [1; 16], address: "b:7001".into(), levels: levels(1) };
        for (known, expected) in [
            (vec![], false),
            (vec![row(1, "b:7001", 1)], false),
            (vec![row(1, "a:7001", 1), row(2, "a:7001", 1)], false),
            (vec![row(2, "b:7001", 2)], false),
            (vec![row(1, "a:7001", 1), row(2, "b:7001", 1)], true),
        ] {
            assert_eq!(is_given(&known, &server), expected, "{known:?}");
        }
    }
}
