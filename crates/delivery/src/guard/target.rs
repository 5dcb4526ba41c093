//! An address, parsed and checked.

use std::net::IpAddr;

use switchward_state::delivery::{AddressProblem, SizedPart};
use url::{Host, Url};

use super::Refused;
use super::egress::Egress;
use super::ranges::check_address;
use crate::failed::length;
use crate::limits::{HOST_BYTES_MAX, URL_BYTES_MAX};
use crate::{DeliveryDetail, DeliveryReason};

/// An address that may be requested, as far as can be checked without resolving its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: Host<String>,
    port: u16,
}

/// The host part of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name that must be resolved, in ASCII and lower case.
    Name(String),
    /// An IP address that passed the guard.
    Address(IpAddr),
}

impl Target {
    /// Reads an address. Names in other scripts are converted to ASCII, and IPv4 addresses in hexadecimal, octal or
    /// short form are normalised, before they are checked.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the first rule that it breaks: syntax, scheme, user and password, host, port, the
    /// tenant's list of hosts, the range of an IP address.
    pub fn read(text: &str, egress: &Egress) -> Result<Self, Refused> {
        let url = read_url(text)?;
        check_scheme(&url, egress)?;
        if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
            return Err(Refused::new(DeliveryReason::UrlInvalid, AddressProblem::Login));
        }
        let host = host_of(&url)?;
        let port = url
            .port_or_known_default()
            .ok_or_else(|| Refused::new(DeliveryReason::PortRefused, AddressProblem::NoPort))?;
        if !egress.ports.contains(&port) {
            return Err(Refused::new(DeliveryReason::PortRefused, AddressProblem::PortNotListed { port }));
        }
        if !egress.allows_host(&host) {
            return Err(Refused::new(DeliveryReason::HostRefused, AddressProblem::HostNotListed));
        }
        match host {
            Host::Domain(_) => {}
            Host::Ipv4(address) => check_address(address.into(), egress)?,
            Host::Ipv6(address) => check_address(address.into(), egress)?,
        }
        Ok(Self { url, host, port })
    }

    /// The address to request.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the host as the URL has it: a domain's name is not resolved.
    #[must_use]
    pub fn host(&self) -> TargetHost {
        match &self.host {
            Host::Domain(name) => TargetHost::Name(name.clone()),
            Host::Ipv4(address) => TargetHost::Address((*address).into()),
            Host::Ipv6(address) => TargetHost::Address((*address).into()),
        }
    }

    /// The port to connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Refuses what parsers disagree about before the parser sees it.
fn read_url(text: &str) -> Result<Url, Refused> {
    let refused = |detail: DeliveryDetail| Refused::new(DeliveryReason::UrlInvalid, detail);
    if text.len() > URL_BYTES_MAX {
        let (part, bytes, max) = (SizedPart::Address, length(text.len()), length(URL_BYTES_MAX));
        return Err(refused(DeliveryDetail::TooLarge { part, bytes, max }));
    }
    if text.chars().any(|char| char.is_control() || char.is_whitespace() || char == '\\') {
        return Err(refused(AddressProblem::Characters.into()));
    }
    let mut url = Url::parse(text)
        .map_err(|error| refused(AddressProblem::Unreadable { diagnostic: error.to_string() }.into()))?;
    url.set_fragment(None);
    Ok(url)
}

fn check_scheme(url: &Url, egress: &Egress) -> Result<(), Refused> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if egress.allow_http => Ok(()),
        "http" => Err(Refused::new(DeliveryReason::SchemeRefused, AddressProblem::HttpsOnly)),
        _ => Err(Refused::new(DeliveryReason::SchemeRefused, AddressProblem::Scheme)),
    }
}

fn host_of(url: &Url) -> Result<Host<String>, Refused> {
    let host = url.host().map(|host| host.to_owned());
    let refused = |problem: AddressProblem| Err(Refused::new(DeliveryReason::UrlInvalid, problem));
    match host {
        Some(Host::Domain(name)) if name.trim_matches('.').is_empty() => refused(AddressProblem::NoHost),
        Some(Host::Domain(name)) if name.len() > HOST_BYTES_MAX => refused(AddressProblem::HostLength),
        Some(Host::Domain(name)) if !name.bytes().all(is_host_byte) => {
            refused(AddressProblem::HostCharacters)
        }
        Some(host) => Ok(host),
        None => refused(AddressProblem::NoHost),
    }
}

/// Letters, digits, hyphen, dot, and the underscore that some services use.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// Returns the part between `//` and the path.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let rest = rest.trim_start_matches('/');
    rest.split(['/', '?', '#']).next().unwrap_or("")
}
