//! Resolves a name to the addresses that a connection may go to.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use switchward_state::delivery::AddressProblem;
use tokio::sync::Semaphore;

use crate::guard::{Egress, Target, TargetHost, check_address};
use crate::limits::{ADDRESSES_MAX, LOOKUPS_MAX};
use crate::{DeliveryReason, Failed};

/// Resolves names.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// Returns every address of a name, in the order in which they should be tried.
    ///
    /// # Errors
    ///
    /// The lookup failed; a name that does not exist may also give an empty list.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolves as the system does: by its hosts file and its name servers.
///
/// An abandoned lookup continues in its thread until the system ends it, so at most [`LOOKUPS_MAX`] run at one time; the
/// next one waits.
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let looking = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
        });
        looking.await.map_err(io::Error::other)?
    }
}

/// Returns the addresses that the connection may go to: all of the target, if every one of them is allowed.
pub(super) async fn pin(
    target: &Target,
    egress: &Egress,
    resolver: &dyn Resolve,
) -> Result<Vec<SocketAddr>, Failed> {
    let addresses = match target.host() {
        TargetHost::Address(address) => {
            check_address(address, egress)?;
            vec![address]
        }
        TargetHost::Name(name) => named(&name, egress, resolver).await.map_err(|why| {
            tracing::debug!(%name, why, "a host name is unusable");
            Failed::new(DeliveryReason::NameUnusable, AddressProblem::Unresolved { name })
        })?,
    };
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, target.port())).collect())
}

/// Returns the addresses of a name, if there are any and every one of them is allowed.
///
/// # Errors
///
/// Why not, only for the log.
async fn named(name: &str, egress: &Egress, resolver: &dyn Resolve) -> Result<Vec<IpAddr>, String> {
    let addresses = resolver.resolve(name).await.map_err(|error| error.to_string())?;
    if !(1..=ADDRESSES_MAX).contains(&addresses.len()) {
        return Err(format!("it has {} addresses, 1 to {ADDRESSES_MAX} are allowed", addresses.len()));
    }
    addresses
        .iter()
        .try_for_each(|address| check_address(*address, egress))
        .map_err(|bad| bad.to_string())?;
    Ok(addresses)
}

/// The transport's resolver: always returns the addresses that were checked for this request.
pub(super) struct Pinned(pub(super) Vec<SocketAddr>);

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let addresses = self.0.clone().into_iter();
        Box::pin(async move { Ok(Box::new(addresses) as reqwest::dns::Addrs) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers each lookup with the next row.
    struct Turning(Vec<Vec<&'static str>>, AtomicUsize);

    #[async_trait]
    impl Resolve for Turning {
        async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            let row = &self.0[self.1.fetch_add(1, Ordering::SeqCst)];
            Ok(row.iter().map(|text| text.parse().expect("an address")).collect())
        }
    }

    async fn pinned(rows: Vec<Vec<&'static str>>) -> (Result<Vec<String>, DeliveryReason>, usize) {
        let resolver = Turning(rows, AtomicUsize::new(0));
        let egress = Egress::default();
        let target = Target::read("https://rebind.example/", &egress).expect("the address is allowed");
        let pinned = pin(&target, &egress, &resolver).await;
        let pinned = pinned.map(|found| found.iter().map(ToString::to_string).collect());
        (pinned.map_err(|error| error.reason), resolver.1.into_inner())
    }

    #[tokio::test]
    async fn a_name_is_asked_for_once_and_the_first_answer_holds() {
        let (pinned, asked) = pinned(vec![vec!["1.1.1.1"], vec!["10.0.0.1"]]).await;
        assert_eq!(pinned, Ok(vec!["1.1.1.1:443".to_owned()]));
        assert_eq!(asked, 1);
    }

    #[tokio::test]
    async fn one_bad_address_among_good_ones_spoils_the_name() {
        let (pinned, _) = pinned(vec![vec!["1.1.1.1", "::ffff:127.0.0.1"]]).await;
        assert_eq!(pinned, Err(DeliveryReason::NameUnusable));
    }

    #[tokio::test]
    async fn no_address_and_too_many_are_refused() {
        assert_eq!(pinned(vec![vec![]]).await.0, Err(DeliveryReason::NameUnusable));
        let many = vec!["1.1.1.1"; ADDRESSES_MAX + 1];
        assert_eq!(pinned(vec![many]).await.0, Err(DeliveryReason::NameUnusable));
    }
}
