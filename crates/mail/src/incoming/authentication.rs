//! How far a sender's address is proved: DKIM, SPF and the policy of the sender's domain (RFC 6376, 7208, 9989), computed
//! here or reported by a trusted host. `signatures` defines which signatures count.

use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{AuthenticatedMessage, DkimOutput, DkimResult, DmarcResult, SpfOutput, SpfResult, Txt};
use std::sync::Arc;

use super::address::{self, domain_in_ascii};
use super::dns::KeyText;
use super::headers::{self, Headers};
use super::proof_reason::ProofReason;
use super::results::{self, MethodResult};
use super::signatures::{self, Key};
use super::{Address, Dns, Envelope, Settings, host_results, unbroken};
use crate::limits::{DNS_TIME_MAX, SIGNATURES_MAX};

/// Who checked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// This server.
    Computed,
    /// A trusted host reported it.
    TrustedHost,
}

/// The result of one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// It passed for the sender's domain.
    Pass,
    /// It was checked, and does not hold, or holds for another domain.
    Fail,
    /// There was nothing to check.
    None,
    /// The DNS did not answer: it may be tried again.
    Temporary,
}

/// How far a sender's address is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// Signatures of the sender's domain that count: they cover the reply address that the message was sent to.
    pub dkim: Check,
    /// Whether the sender's domain sends from the host that handed the message over.
    pub spf: Check,
    /// What the policy of the sender's domain says; [`Check::None`] if it has none.
    pub dmarc: Check,
    /// Whether the address in `From` is proved to be the sender's, by a signature or by the sending host.
    pub aligned: bool,
    /// The message's identity among those of its sender, as far as a signature that counts covers it. It stays the same if
    /// the message is sent again or changed on the way.
    pub identity: Option<String>,
    /// Who checked it.
    pub how: Proof,
    /// Why, each reason as often as it applies.
    pub detail: Vec<ProofReason>,
}

impl Authentication {
    /// The authentication of a message that was not checked, and why.
    #[must_use]
    pub fn none(why: ProofReason) -> Self {
        let (dkim, spf, dmarc) = (Check::None, Check::None, Check::None);
        Self { dkim, spf, dmarc, aligned: false, identity: None, how: Proof::Computed, detail: vec![why] }
    }

    /// Returns true if the sender is proved to have written this message to this reply address: by a signature that covers
    /// the address. The sending host proves only that its domain sent it, to any recipient.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.aligned && self.dkim == Check::Pass
    }

    /// Returns true if it is unproved because the DNS did not answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let checks = [self.dkim, self.spf, self.dmarc];
        !self.is_signed() && self.how == Proof::Computed && checks.contains(&Check::Temporary)
    }
}

/// The message to check.
pub(super) struct AuthenticationInput<'r> {
    /// From its first field on.
    raw: &'r [u8],
    pub(super) headers: &'r Headers<'r>,
    pub(super) from: &'r Address,
    /// The token of the reply address.
    pub(super) token: &'r str,
}

/// Checks how far it is proved that the sender of a reply wrote it to the reply address with this token. Queries only `dns`,
/// for at most [`DNS_TIME_MAX`].
///
/// A trusted host's results count if there are any, else the computed ones. The keys of a signature are looked up only if
/// the signature would count, and nothing else is looked up if none would.
pub async fn authenticate(
    raw: &[u8],
    token: &str,
    envelope: &Envelope,
    settings: &Settings,
    dns: &Dns,
) -> Authentication {
    let found = unbroken::wait(unguarded(raw, token, envelope, settings, dns)).await;
    found.unwrap_or_else(|| Authentication::none(ProofReason::BreaksReader))
}

async fn unguarded(
    raw: &[u8],
    token: &str,
    envelope: &Envelope,
    settings: &Settings,
    dns: &Dns,
) -> Authentication {
    let lines = headers::with_line_ends(raw);
    let raw: &[u8] = &lines;
    let Ok(headers) = Headers::of(raw) else { return Authentication::none(ProofReason::Unreadable) };
    let Ok(from) = address::the_sender(&headers) else {
        return Authentication::none(ProofReason::Unreadable);
    };
    let asked = AuthenticationInput { raw: &raw[headers.begins_at..], headers: &headers, from: &from, token };
    of(&asked, envelope, settings, dns).await
}

async fn of(
    asked: &AuthenticationInput<'_>,
    envelope: &Envelope,
    settings: &Settings,
    dns: &Dns,
) -> Authentication {
    let Some(mut message) = AuthenticatedMessage::parse_with_opts(asked.raw, None, true) else {
        return Authentication::none(ProofReason::Unreadable);
    };
    if !read_alike(&message, asked) {
        return Authentication::none(ProofReason::ReadOtherwise);
    }
    if message.dkim_headers.len() + message.errors.len() > SIGNATURES_MAX {
        return Authentication::none(ProofReason::TooManySignatures);
    }
    let said = results::of(asked.headers, settings);
    if let Some(said) = said.as_ref().filter(|said| said.iter().any(|it| it.method == "dkim")) {
        return host_results::by_host(asked, &message, said, settings);
    }
    let why_not = signatures::keep_counting(&mut message, asked, settings);
    let body_at = asked.headers.body_at - asked.headers.begins_at;
    let trimmed = signatures::without_blank_end(asked.raw, body_at);
    let relaxed = trimmed.as_deref().and_then(|raw| signatures::split_relaxed(&mut message, raw));
    let messages: Vec<_> = [Some(&message), relaxed.as_ref()].into_iter().flatten().collect();
    let none_counts = messages.iter().all(|message| message.dkim_headers.is_empty());
    if none_counts && !may_send(envelope, asked.from) {
        let mut found = Authentication::none(ProofReason::NotSigned);
        found.detail.extend(why_not);
        return found;
    }
    // The domain whose servers are queried first pays for the lookup.
    let signer = messages.iter().flat_map(|message| &message.dkim_headers).next();
    let domain = signer.map_or(asked.from.domain.as_str(), |header| header.header.d.as_str());
    let Some(turn) = dns.begin(&domain.to_ascii_lowercase()) else {
        return Authentication {
            dkim: Check::Temporary,
            ..Authentication::none(ProofReason::DnsUnreachable)
        };
    };
    let found = tokio::time::timeout(DNS_TIME_MAX, computed(asked, &messages, envelope, settings, dns)).await;
    let mut found = found.unwrap_or_else(|_| Authentication {
        dkim: Check::Temporary,
        ..Authentication::none(ProofReason::DnsTooSlow)
    });
    if found.is_open() {
        turn.failed();
    }
    found.detail.extend(why_not);
    vetoed(found, said.as_deref())
}

/// Applies a trusted host's refusal to computed results.
fn vetoed(found: Authentication, said: Option<&[MethodResult]>) -> Authentication {
    if !said.is_some_and(host_results::is_refused) {
        return found;
    }
    let mut detail = found.detail;
    detail.push(ProofReason::HostDidNotPass);
    Authentication { dmarc: Check::Fail, aligned: false, detail, ..found }
}

/// Returns true if the library has read the same sender and the same body.
fn read_alike(message: &AuthenticatedMessage<'_>, asked: &AuthenticationInput<'_>) -> bool {
    let sender = match &message.from[..] {
        [from] => Address::parse(from).is_some_and(|from| from.text.eq_ignore_ascii_case(&asked.from.text)),
        _ => false,
    };
    sender && message.body_offset as usize == asked.headers.body_at - asked.headers.begins_at
}

/// Returns true if the transport may show that the sender's domain sent it.
fn may_send(envelope: &Envelope, from: &Address) -> bool {
    let domain = envelope.sender.as_deref().and_then(|sender| sender.rsplit_once('@'));
    let domain = domain.and_then(|(_, domain)| domain_in_ascii(domain));
    envelope.peer.is_some()
        && domain.is_some_and(|domain| aligned(&domain, &from.domain) || aligned(&from.domain, &domain))
}

/// Returns the signatures that hold by keys that count, and whether the key of one could not be read now. Adds to `detail`
/// why others do not hold.
async fn holding<'m>(
    messages: &[&'m AuthenticatedMessage<'m>],
    dns: &'m Dns,
    detail: &mut Vec<ProofReason>,
) -> (Vec<DkimOutput<'m>>, bool) {
    let (mut usable, mut unreachable) = (Vec::new(), false);
    for header in messages.iter().flat_map(|message| &message.dkim_headers) {
        let name = format!("{}._domainkey.{}.", header.header.s, header.header.d).to_ascii_lowercase();
        match dns.key(&name).await {
            KeyText::There(text) => match Key::read(&text) {
                Ok(key) => {
                    detail.extend(key.short.then_some(ProofReason::ShortKey));
                    dns.remember(&name, Txt::DomainKey(Arc::new(key.key)));
                    usable.push(&header.header);
                }
                Err(why) => detail.push(why),
            },
            KeyText::Missing => detail.push(ProofReason::NoKey),
            KeyText::Unreachable => unreachable = true,
        }
    }
    let mut outputs = Vec::new();
    for message in messages {
        outputs.extend(dns.authenticator.verify_dkim(dns.asking(*message)).await);
    }
    let mut holding = Vec::new();
    for output in outputs {
        let known = output.signature().is_some_and(|signature| usable.contains(&signature));
        match output.result() {
            DkimResult::Pass if known => holding.push(output),
            // A key that was not read here proves nothing, even if the library has read it meanwhile.
            DkimResult::Pass => {}
            DkimResult::TempError(_) => unreachable = true,
            DkimResult::Neutral(_) | DkimResult::Fail(_) | DkimResult::PermError(_) | DkimResult::None => {
                detail.push(ProofReason::SignatureBroken);
            }
        }
    }
    detail.extend(unreachable.then_some(ProofReason::DkimTemporary));
    (holding, unreachable)
}

async fn computed(
    asked: &AuthenticationInput<'_>,
    messages: &[&AuthenticatedMessage<'_>],
    envelope: &Envelope,
    settings: &Settings,
    dns: &Dns,
) -> Authentication {
    let mut detail = Vec::new();
    let (counting, key_unreachable) = holding(messages, dns, &mut detail).await;
    let spf = spf(envelope, asked.from, settings, dns).await;
    let sender = sender_domain(envelope, &spf);
    let parameters = DmarcParameters::new(messages[0], &counting, &sender, &spf);
    let policy = dns.authenticator.verify_dmarc(dns.asking(parameters)).await;
    let temporary = |found: Authentication| {
        if key_unreachable && !found.is_signed() {
            Authentication { dkim: Check::Temporary, ..found }
        } else {
            found
        }
    };
    let unreachable = matches!(policy.dkim_result(), DmarcResult::TempError(_))
        || matches!(policy.spf_result(), DmarcResult::TempError(_));
    if policy.dmarc_record().is_none() && !unreachable {
        return temporary(without_policy(asked, &counting, &spf, &sender, detail));
    }
    let (dkim, spf) = (check(policy.dkim_result()), check(policy.spf_result()));
    let aligned = dkim == Check::Pass || spf == Check::Pass;
    let dmarc = match (aligned, unreachable) {
        (true, _) => Check::Pass,
        (false, true) => Check::Temporary,
        (false, false) => Check::Fail,
    };
    detail.push(if aligned { ProofReason::PolicyPassed } else { ProofReason::NotAligned });
    let identity = identity_of(asked, &counting);
    temporary(Authentication { dkim, spf, dmarc, aligned, identity, how: Proof::Computed, detail })
}

fn identity_of(asked: &AuthenticationInput<'_>, counting: &[DkimOutput<'_>]) -> Option<String> {
    let signatures: Vec<_> = counting.iter().filter_map(|output| output.signature()).collect();
    signatures::identity(&signatures, asked)
}

fn check(result: &DmarcResult) -> Check {
    match result {
        DmarcResult::Pass => Check::Pass,
        DmarcResult::Fail(_) | DmarcResult::PermError(_) => Check::Fail,
        DmarcResult::TempError(_) => Check::Temporary,
        DmarcResult::None => Check::None,
    }
}

/// The domain has no policy: its own signature or its own hosts are still needed.
fn without_policy(
    asked: &AuthenticationInput<'_>,
    counting: &[DkimOutput<'_>],
    spf: &SpfOutput,
    sender: &str,
    mut detail: Vec<ProofReason>,
) -> Authentication {
    let passed = counting.iter().filter(|output| *output.result() == DkimResult::Pass);
    let signers: Vec<&str> = passed.filter_map(|output| output.signature()).map(|it| it.d.as_str()).collect();
    let dkim = match (signers.iter().any(|signer| aligned(signer, &asked.from.domain)), counting.is_empty()) {
        (true, _) => Check::Pass,
        (false, true) => Check::None,
        (false, false) if signers.is_empty() => Check::Temporary,
        (false, false) => Check::Fail,
    };
    let spf = match spf.result() {
        SpfResult::Pass if aligned(sender, &asked.from.domain) => Check::Pass,
        SpfResult::TempError => Check::Temporary,
        SpfResult::None => Check::None,
        SpfResult::Pass
        | SpfResult::Fail
        | SpfResult::SoftFail
        | SpfResult::Neutral
        | SpfResult::PermError => Check::Fail,
    };
    let aligned = dkim == Check::Pass || spf == Check::Pass;
    detail.push(if aligned { ProofReason::NoPolicy } else { ProofReason::NotAligned });
    let identity = identity_of(asked, counting);
    Authentication { dkim, spf, dmarc: Check::None, aligned, identity, how: Proof::Computed, detail }
}

/// Returns true if a domain stands for another one without a policy: it is the same, or above it. A domain below it does
/// not: without a policy the upper one may be a registry.
pub(super) fn aligned(of: &str, from: &str) -> bool {
    let Some(of) = domain_in_ascii(of) else { return false };
    of == from || from.strip_suffix(&of).is_some_and(|rest| rest.ends_with('.'))
}

async fn spf(envelope: &Envelope, from: &Address, settings: &Settings, dns: &Dns) -> SpfOutput {
    let (Some(peer), Some(sender)) = (&envelope.peer, &envelope.sender) else { return SpfOutput::default() };
    if !may_send(envelope, from) {
        return SpfOutput::default();
    }
    let asked = SpfParameters::verify_mail_from(peer.address, &peer.helo, &settings.host, sender);
    dns.authenticator.verify_spf(dns.asking(asked)).await
}

fn sender_domain(envelope: &Envelope, spf: &SpfOutput) -> String {
    let domain = envelope.sender.as_deref().and_then(|sender| sender.rsplit_once('@'));
    let domain = domain.map_or(spf.domain(), |(_, domain)| domain);
    domain_in_ascii(domain).unwrap_or_default()
}
