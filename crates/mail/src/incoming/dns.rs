//! The DNS that a caller hands in, with a cache of its answers.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use mail_auth::common::parse::TxtRecordParser;
use mail_auth::common::verify::DomainKey;
use mail_auth::dmarc::Dmarc;
use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use mail_auth::hickory_resolver::proto::op::ResponseCode;
use mail_auth::spf::Spf;
use mail_auth::{
    DnsError as Missing, Error, MX, MessageAuthenticator, Parameters, RecordSet, ResolverCache, Txt,
};
use parking_lot::Mutex;

use super::budget::{Budget, Turn};
use crate::limits::{DNS_AGAIN, DNS_CACHE_RECORDS_MAX, DNS_KEY_KEPT};

/// Where records of domains come from: keys of signatures, policies, lists of hosts.
pub struct Dns {
    pub(super) authenticator: MessageAuthenticator,
    memory: Memory,
    budget: Budget,
}

/// The record of a signer's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyText {
    /// It is there; the texts of several records are concatenated.
    There(Arc<[u8]>),
    /// There is none.
    Missing,
    /// The DNS did not answer.
    Unreachable,
}

impl fmt::Debug for Dns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dns")
    }
}

/// The DNS cannot be used: its configuration cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up DNS: {0}")]
pub struct DnsError(String);

impl Dns {
    /// The DNS that this host is configured to use.
    ///
    /// # Errors
    /// If that configuration cannot be read.
    pub fn of_the_system() -> Result<Self, DnsError> {
        let authenticator = MessageAuthenticator::new_system_conf().map_err(|e| DnsError(e.to_string()))?;
        Ok(Self::behind(authenticator))
    }

    /// The DNS that these name servers know, asked over UDP, and over TCP if an answer is too long for that.
    ///
    /// # Errors
    /// If no resolver can be set up for them.
    pub fn at(servers: &[SocketAddr]) -> Result<Self, DnsError> {
        let server = |address: &SocketAddr| {
            let mut ways = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            ways.iter_mut().for_each(|way| way.port = address.port());
            let mut server = NameServerConfig::udp_and_tcp(address.ip());
            server.connections = ways;
            server
        };
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.iter().map(server).collect());
        let authenticator = MessageAuthenticator::new(config, ResolverOpts::default());
        Ok(Self::behind(authenticator.map_err(|e| DnsError(e.to_string()))?))
    }

    /// The DNS behind a resolver that the caller has set up.
    #[must_use]
    pub fn behind(authenticator: MessageAuthenticator) -> Self {
        Self { authenticator, memory: Memory::open(), budget: Budget::default() }
    }

    /// A resolver over the given text records and host addresses; every other name does not exist, and no name server is
    /// asked. Of several text records of one name the last one counts. For tests, and for servers without network access.
    ///
    /// # Errors
    /// If a record cannot be read.
    pub fn of_records(texts: &[(&str, &str)], hosts: &[(&str, IpAddr)]) -> Result<Self, DnsError> {
        let authenticator = MessageAuthenticator::new(
            ResolverConfig::from_parts(None, Vec::new(), Vec::new()),
            ResolverOpts::default(),
        );
        let memory = Memory::closed();
        for (name, address) in hosts {
            match address {
                IpAddr::V4(address) => memory.v4.add_host(name, *address),
                IpAddr::V6(address) => memory.v6.add_host(name, *address),
            }
        }
        let authenticator = authenticator.map_err(|e| DnsError(e.to_string()))?;
        let dns = Self { authenticator, memory, budget: Budget::default() };
        texts.iter().try_for_each(|(name, text)| dns.add_record(name, text))?;
        Ok(dns)
    }

    /// Adds a text record permanently; replaces another one of this name.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn add_record(&self, name: &str, text: &str) -> Result<(), DnsError> {
        if is_key(name) {
            let text = KeyText::There(text.as_bytes().into());
            self.memory.keys.rows.lock().insert(fqdn(name), (text, None));
        }
        self.memory.texts.rows.lock().insert(fqdn(name), (read(name, text.as_bytes())?, None));
        Ok(())
    }

    /// Returns the record of a key, by its full name. The answer is cached, also a negative one.
    pub(super) async fn key(&self, name: &str) -> KeyText {
        let name = fqdn(name);
        if let Some(known) = self.memory.keys.get::<str>(&name) {
            return known;
        }
        let (text, kept) = match self.authenticator.txt_raw_lookup(&*name).await {
            Ok(text) => (KeyText::There(text.into()), DNS_KEY_KEPT),
            Err(Error::Dns(Missing::RecordNotFound(_))) => (KeyText::Missing, DNS_AGAIN),
            Err(_) => (KeyText::Unreachable, DNS_AGAIN),
        };
        self.memory.keys.insert(name, text.clone(), Instant::now() + kept);
        text
    }

    /// Caches the text of a name.
    pub(super) fn remember(&self, name: &str, text: Txt) {
        self.memory.texts.insert(fqdn(name), text, Instant::now() + DNS_KEY_KEPT);
    }

    /// Begins to ask about a message of a domain; `None` if too many of its messages are being asked about, or if its
    /// servers did not answer lately.
    pub(super) fn begin(&self, domain: &str) -> Option<Turn<'_>> {
        self.budget.begin(domain)
    }

    /// The cached texts.
    pub(super) fn texts(&self) -> &Rows<Box<str>, Txt> {
        &self.memory.texts
    }

    /// The cached hosts that take mail (MX).
    pub(super) fn hosts(&self) -> &Rows<Box<str>, RecordSet<MX>> {
        &self.memory.mx
    }

    /// The query, with the cache.
    pub(super) fn asking<P>(&self, what: P) -> Asking<'_, P> {
        Parameters::new(what)
            .with_txt_cache(&self.memory.texts)
            .with_mx_cache(&self.memory.mx)
            .with_ipv4_cache(&self.memory.v4)
            .with_ipv6_cache(&self.memory.v6)
            .with_ptr_cache(&self.memory.names)
    }
}

/// A query with the cache.
pub(super) type Asking<'d, P> = Parameters<
    'd,
    P,
    Rows<Box<str>, Txt>,
    Rows<Box<str>, RecordSet<MX>>,
    Rows<Box<str>, RecordSet<Ipv4Addr>>,
    Rows<Box<str>, RecordSet<Ipv6Addr>>,
    Rows<IpAddr, RecordSet<Box<str>>>,
>;

fn fqdn(name: &str) -> Box<str> {
    format!("{}.", name.trim_end_matches('.').to_ascii_lowercase()).into()
}

fn is_key(name: &str) -> bool {
    name.contains("._domainkey.")
}

/// The record that a name of this kind holds.
fn read(name: &str, text: &[u8]) -> Result<Txt, DnsError> {
    let record = if is_key(name) {
        DomainKey::parse(text).map(Txt::from)
    } else if name.starts_with("_dmarc.") {
        Dmarc::parse(text).map(Txt::from)
    } else {
        Spf::parse(text).map(Txt::from)
    };
    record.map_err(|error| DnsError(format!("{name}: {error}")))
}

struct Memory {
    keys: Rows<Box<str>, KeyText>,
    texts: Rows<Box<str>, Txt>,
    mx: Rows<Box<str>, RecordSet<MX>>,
    v4: Rows<Box<str>, RecordSet<Ipv4Addr>>,
    v6: Rows<Box<str>, RecordSet<Ipv6Addr>>,
    names: Rows<IpAddr, RecordSet<Box<str>>>,
}

impl Memory {
    fn open() -> Self {
        Self {
            keys: Rows::of(None),
            texts: Rows::of(None),
            mx: Rows::of(None),
            v4: Rows::of(None),
            v6: Rows::of(None),
            names: Rows::of(None),
        }
    }

    fn closed() -> Self {
        let missing = Error::Dns(Missing::RecordNotFound(ResponseCode::NXDomain));
        Self {
            keys: Rows::of(Some(KeyText::Missing)),
            texts: Rows::of(Some(Txt::Error(missing))),
            mx: Rows::of(Some(none())),
            v4: Rows::of(Some(none())),
            v6: Rows::of(Some(none())),
            names: Rows::of(Some(none())),
        }
    }
}

fn none<T>() -> RecordSet<T> {
    RecordSet { rrset: Vec::new().into(), dnssec_status: Default::default() }
}

/// Answers by name, and until when they hold; `None` if permanently.
pub(super) struct Rows<K, V> {
    rows: Mutex<HashMap<K, (V, Option<Instant>)>>,
    /// The answer for every name that is not here, so that no name server is asked.
    missing: Option<V>,
}

impl<K, V> Rows<K, V> {
    fn of(missing: Option<V>) -> Self {
        Self { rows: Mutex::new(HashMap::new()), missing }
    }
}

impl<T: Clone> Rows<Box<str>, RecordSet<T>> {
    fn add_host(&self, name: &str, address: T) {
        let mut rows = self.rows.lock();
        let known = rows.get(&fqdn(name)).map(|(set, _)| set.rrset.to_vec()).unwrap_or_default();
        let rrset = known.into_iter().chain([address]).collect::<Vec<_>>().into();
        rows.insert(fqdn(name), (RecordSet { rrset, dnssec_status: Default::default() }, None));
    }
}

impl<K: Hash + Eq, V: Clone> ResolverCache<K, V> for Rows<K, V> {
    fn get<Q>(&self, name: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let rows = self.rows.lock();
        let known = rows.get(name).filter(|(_, until)| until.is_none_or(|until| until > Instant::now()));
        known.map(|(value, _)| value.clone()).or_else(|| self.missing.clone())
    }

    fn remove<Q>(&self, name: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.rows.lock().remove(name).map(|(value, _)| value)
    }

    fn insert(&self, key: K, value: V, valid_until: Instant) {
        if self.missing.is_some() {
            return;
        }
        let mut rows = self.rows.lock();
        if rows.len() >= DNS_CACHE_RECORDS_MAX {
            let now = Instant::now();
            rows.retain(|_, (_, until)| until.is_none_or(|until| until > now));
            if rows.len() >= DNS_CACHE_RECORDS_MAX {
                rows.clear();
            }
        }
        rows.insert(key, (value, Some(valid_until)));
    }
}
