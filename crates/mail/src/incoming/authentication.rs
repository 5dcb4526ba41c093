//! How far a sender's address is proved: DKIM, SPF and the policy of the sender's domain (RFC 6376, 7208, 9989), computed
//! here or told by a trusted host.
//!
//! A signature counts where it covers the fields that [`Settings::signed_fields`] names and the whole body. It also has to
//! cover the address that the first token came from: a signed mail to somebody else, sent once more to a reply address,
//! has a good signature and is no reply.

use mail_auth::common::crypto::Algorithm;
use mail_auth::common::headers::Header;
use mail_auth::dkim::Signature;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{AuthenticatedMessage, DkimOutput, DkimResult, DmarcResult, SpfOutput, SpfResult};

use super::address::domain_in_ascii;
use super::headers::Headers;
use super::results::{self, Told};
use super::{Address, Dns, Envelope, Place, Settings, Token, tokens};
use crate::limits::{DNS_TIME_MAX, SIGNATURES_MAX};

/// Who found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// We did.
    Computed,
    /// A trusted host told.
    TrustedHost,
}

/// What one method found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The sender's domain stands for it.
    Pass,
    /// It was looked at, and does not hold, or holds for another domain.
    Fail,
    /// Nothing could be looked at.
    None,
    /// The DNS did not answer: it may be tried again.
    Temporary,
}

/// How far a sender's address is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// Signatures of the sender's domain that count.
    pub dkim: Check,
    /// Whether the sender's domain sends from the host that handed the message over.
    pub spf: Check,
    /// What the policy of the sender's domain says; [`Check::None`] where it has none.
    pub dmarc: Check,
    /// Whether the address in `From` is proved to be the sender's.
    pub aligned: bool,
    /// Who found out.
    pub how: Proof,
    /// Why, in stable words.
    pub detail: Vec<&'static str>,
}

/// The message that is asked about.
pub(super) struct Asked<'r> {
    /// From its first field on.
    pub(super) raw: &'r [u8],
    pub(super) headers: &'r Headers<'r>,
    pub(super) from: &'r Address,
    pub(super) tokens: &'r [Token],
}

/// What is known of a message's proof: a trusted host's word where there is one, else what is computed.
pub(super) async fn of(
    asked: &Asked<'_>,
    envelope: &Envelope,
    settings: &Settings,
    dns: &Dns,
) -> Authentication {
    let Some(message) = AuthenticatedMessage::parse_with_opts(asked.raw, None, true) else {
        return failed(Proof::Computed, "unreadable");
    };
    if !read_alike(&message, asked) {
        return failed(Proof::Computed, "read_otherwise");
    }
    if message.dkim_headers.len() + message.errors.len() > SIGNATURES_MAX {
        return failed(Proof::Computed, "too_many_signatures");
    }
    if let Some(told) = results::of(asked.headers, settings) {
        return told_by_host(asked, &message, &told, settings);
    }
    match tokio::time::timeout(DNS_TIME_MAX, computed(asked, &message, envelope, settings, dns)).await {
        Ok(found) => found,
        Err(_) => Authentication { dkim: Check::Temporary, ..failed(Proof::Computed, "dns_too_slow") },
    }
}

/// Whether what is checked is what was read here: the same sender, and the same body.
fn read_alike(message: &AuthenticatedMessage<'_>, asked: &Asked<'_>) -> bool {
    let sender = match &message.from[..] {
        [from] => Address::parse(from).is_some_and(|from| from.text.eq_ignore_ascii_case(&asked.from.text)),
        _ => false,
    };
    sender && message.body_offset as usize == asked.headers.body_at - asked.headers.begins_at
}

fn failed(how: Proof, why: &'static str) -> Authentication {
    let (dkim, spf, dmarc) = (Check::None, Check::None, Check::None);
    Authentication { dkim, spf, dmarc, aligned: false, how, detail: vec![why] }
}

/// Why a signature does not count, if it does not.
fn flaw(header: &Header<'_, Signature>, asked: &Asked<'_>, settings: &Settings) -> Option<&'static str> {
    let signature = &header.header;
    let covers = |name: &str| signature.h.iter().any(|signed| signed.trim().eq_ignore_ascii_case(name));
    if signature.l != 0 || has_length(header.value) {
        return Some("signature_of_a_part");
    }
    if signature.a == Algorithm::RsaSha1 {
        return Some("weak_signature");
    }
    if signature.atps.is_some() {
        return Some("signature_of_another");
    }
    if !settings.signed_fields.iter().all(|name| covers(name)) {
        return Some("field_not_signed");
    }
    if settings.signed_fields.iter().any(|name| asked.headers.all(name).count() != 1) {
        return Some("signed_field_missing");
    }
    let token = asked.tokens.first()?;
    let named = |field: &str| covers(field) && tokens::stands_in(&token.text, asked.headers, field, settings);
    let answered = [("in-reply-to", Place::InReplyTo), ("references", Place::References)];
    let by_id = answered.iter().any(|(field, place)| token.place == *place && covers(field));
    (!named("to") && !named("cc") && !by_id).then_some("token_not_signed")
}

/// Whether a signature's value has the tag `l`, whatever its value is.
fn has_length(value: &[u8]) -> bool {
    value.split(|byte| *byte == b';').any(|tag| {
        let mut tag = tag.iter().filter(|byte| !byte.is_ascii_whitespace());
        tag.next().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'l')) && tag.next() == Some(&b'=')
    })
}

async fn computed(
    asked: &Asked<'_>,
    message: &AuthenticatedMessage<'_>,
    envelope: &Envelope,
    settings: &Settings,
    dns: &Dns,
) -> Authentication {
    let mut detail = Vec::new();
    let outputs = dns.authenticator.verify_dkim(dns.asking(message)).await;
    let mut counting: Vec<DkimOutput<'_>> = Vec::new();
    for output in outputs {
        let header =
            output.signature().and_then(|of| message.dkim_headers.iter().find(|it| it.header == *of));
        match (output.result(), header.and_then(|header| flaw(header, asked, settings))) {
            (DkimResult::Pass, None) => counting.push(output),
            (DkimResult::TempError(_), None) => {
                detail.push("dkim_temporary");
                counting.push(output);
            }
            (DkimResult::Pass | DkimResult::TempError(_), Some(why)) => detail.push(why),
            (
                DkimResult::Neutral(_) | DkimResult::Fail(_) | DkimResult::PermError(_) | DkimResult::None,
                _,
            ) => {
                detail.push("signature_broken");
            }
        }
    }
    let spf = spf(envelope, settings, dns).await;
    let sender = sender_domain(envelope, &spf);
    let parameters = DmarcParameters::new(message, &counting, &sender, &spf);
    let policy = dns.authenticator.verify_dmarc(dns.asking(parameters)).await;
    let unreachable = matches!(policy.dkim_result(), DmarcResult::TempError(_))
        || matches!(policy.spf_result(), DmarcResult::TempError(_));
    if policy.dmarc_record().is_none() && !unreachable {
        return without_policy(asked, &counting, &spf, &sender, detail);
    }
    let (dkim, spf) = (check(policy.dkim_result()), check(policy.spf_result()));
    let aligned = dkim == Check::Pass || spf == Check::Pass;
    let dmarc = match (aligned, unreachable) {
        (true, _) => Check::Pass,
        (false, true) => Check::Temporary,
        (false, false) => Check::Fail,
    };
    detail.push(if aligned { "policy_passed" } else { "not_aligned" });
    Authentication { dkim, spf, dmarc, aligned, how: Proof::Computed, detail }
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
    asked: &Asked<'_>,
    counting: &[DkimOutput<'_>],
    spf: &SpfOutput,
    sender: &str,
    mut detail: Vec<&'static str>,
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
    detail.push(if aligned { "no_policy" } else { "not_aligned" });
    Authentication { dkim, spf, dmarc: Check::None, aligned, how: Proof::Computed, detail }
}

/// Whether a domain stands for another one that has told no policy: it is the same, or above it. A domain below it does
/// not: without a policy nobody says that the upper one is no registry.
fn aligned(of: &str, from: &str) -> bool {
    let Some(of) = domain_in_ascii(of) else { return false };
    of == from || from.strip_suffix(&of).is_some_and(|rest| rest.ends_with('.'))
}

async fn spf(envelope: &Envelope, settings: &Settings, dns: &Dns) -> SpfOutput {
    let (Some(peer), Some(sender)) = (&envelope.peer, &envelope.sender) else { return SpfOutput::default() };
    if sender.is_empty() {
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

/// What a trusted host told, held against the same rules.
fn told_by_host(
    asked: &Asked<'_>,
    message: &AuthenticatedMessage<'_>,
    told: &[Told],
    settings: &Settings,
) -> Authentication {
    let mut detail = Vec::new();
    let from = asked.from.domain.as_str();
    let of = |method: &'static str| told.iter().filter(move |it| it.method == method);
    let policy = of("dmarc").next();
    let here = policy.is_none_or(|policy| policy.domain("header.from").is_none_or(|domain| domain == from));
    let dmarc = match policy.map(|policy| policy.result.as_str()) {
        None | Some("none") => Check::None,
        Some("pass") if here => Check::Pass,
        Some("temperror") => Check::Temporary,
        Some(_) => Check::Fail,
    };
    // The host has found the organisation of both domains where it says that the policy passed.
    let stands = |domain: &str| match dmarc {
        Check::Pass => aligned(domain, from) || aligned(from, domain),
        Check::None => aligned(domain, from),
        Check::Fail | Check::Temporary => false,
    };
    let mut dkim = Check::None;
    for signed in of("dkim") {
        let domain = signed.domain("header.d").or_else(|| signed.domain("header.i")).unwrap_or_default();
        let passed = signed.result == "pass" && stands(domain);
        match (passed, passed.then(|| flaws(domain, signed, asked, message, settings)).flatten()) {
            (true, None) => dkim = Check::Pass,
            (true, Some(why)) => detail.push(why),
            (false, _) => {}
        }
        dkim = if dkim == Check::None { Check::Fail } else { dkim };
    }
    let spf = match of("spf").next() {
        Some(spf) if spf.result == "pass" && spf.domain("smtp.mailfrom").is_some_and(stands) => Check::Pass,
        Some(spf) if spf.result == "none" => Check::None,
        Some(_) => Check::Fail,
        None => Check::None,
    };
    let aligned = dmarc != Check::Fail && here && (dkim == Check::Pass || spf == Check::Pass);
    detail.push(if aligned { "host_passed" } else { "host_did_not_pass" });
    Authentication { dkim, spf, dmarc, aligned, how: Proof::TrustedHost, detail }
}

/// Why the signatures that a host speaks of do not count: all that it may have meant must.
fn flaws(
    domain: &str,
    signed: &Told,
    asked: &Asked<'_>,
    message: &AuthenticatedMessage<'_>,
    settings: &Settings,
) -> Option<&'static str> {
    let selector = signed.property("header.s");
    let meant: Vec<_> = message
        .dkim_headers
        .iter()
        .filter(|it| it.header.d.eq_ignore_ascii_case(domain))
        .filter(|it| selector.is_none_or(|selector| it.header.s.eq_ignore_ascii_case(selector)))
        .collect();
    if meant.is_empty() || !message.errors.is_empty() {
        return Some("signature_not_found");
    }
    meant.iter().find_map(|header| flaw(header, asked, settings))
}
