//! The address of the client that made a call, also if the call was passed on.

use http::{Extensions, HeaderValue};
use std::net::IpAddr;
use std::sync::Arc;

use crate::connections::{Open, of_network};

/// The address that a request came from: that of its TCP connection, or what a gateway of the cluster says about it. In the
/// extensions of every request of the public port. Nothing that a client sends changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The network that limits by address count a request with these extensions by; `None` if it comes from a proxy before
    /// this process, which brings the requests of many.
    pub(crate) fn counted(extensions: &Extensions) -> Option<IpAddr> {
        let open = extensions.get::<Arc<Open>>();
        let direct = open.is_none_or(|open| !open.connection.is_of_proxy());
        extensions.get::<Self>().filter(|_| direct).map(|client| of_network(client.0))
    }

    /// As the value of the header between a gateway and a server.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::try_from(self.0.to_string())
            .expect("an address has only digits, letters, points and colons")
    }

    /// Reads that header; `None` if it is not an address.
    pub(crate) fn read(header: &HeaderValue) -> Option<Self> {
        header.to_str().ok()?.parse().ok().map(Self)
    }
}
