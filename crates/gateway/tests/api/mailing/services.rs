//! Replies by the fields that the sender's mail service signs: a reply decides, or is answered with the page.

use switchward_api::v1;
use switchward_gateway::mail::Level;
use switchward_machine::TenantId;
use switchward_state::approval::TokenUse;
use switchward_state::delivery::{EffectBody, Purpose};
use switchward_state::{Key, Row, View as _};

use super::{KIM, Message, NotifiedGate, TRUSTED, from_kim, recorded};
use crate::harness::Harness;

/// Mail services, the fields that their signatures cover, and the outcome of an approving reply.
const SERVICES: &[(&str, &str, &str)] = &[
    (
        "Gmail",
        "to:subject:message-id:date:from:in-reply-to:references:mime-version:from:to:cc:subject",
        "decided",
    ),
    ("iCloud", "From:Content-Type:Mime-Version:Subject:Date:Message-Id:To:x-icloud-hme", "decided"),
    ("Proton", "Date:To:From:Subject:Message-ID:Feedback-ID:From:To:Cc:Date:Subject:Reply-To", "decided"),
    (
        "Fastmail",
        "cc:content-type:date:date:from:from:message-id:mime-version:reply-to:subject:subject:to:to",
        "decided",
    ),
    ("Zoho", "Cc:Cc:Date:Date:From:From:MIME-Version:Message-ID:Subject:Subject:To:To:Reply-To", "decided"),
    ("Yahoo", "Date:From:To:In-Reply-To:References:Subject:From:Subject:Reply-To", "decided"),
    ("GMX", "X-UI-Sender-Class:From:To:Subject:Date:In-Reply-To:References", "decided"),
    (
        "Microsoft 365",
        "From:Date:Subject:Message-ID:Content-Type:MIME-Version:X-MS-Exchange-SenderADCheck",
        "sender_not_proved",
    ),
    ("a list that proves nothing", "From:Date", "sender_not_proved"),
];

const ON_THE_PAGE: &str = "Please decide on the decision page.";
const HOW: &str = "reply with a first line that says only \"approve\" or \"reject\".";

/// The host's authentication results for a mail whose signature covers these fields, and the signature.
fn proof_headers(fields: &str) -> String {
    format!(
        "Authentication-Results: {TRUSTED}; dkim=pass header.d=acme.example header.s=s1; spf=pass smtp.mailfrom={KIM}; \
         dmarc=pass header.from=acme.example\r\nDKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed; \
         d=acme.example; s=s1; h={fields}; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\n\
         Date: Wed, 01 May 2024 10:00:00 +0000\r\n"
    )
}

impl Harness {
    /// The texts of the mails that answer replies about this gate.
    async fn answered(&self, asked: &NotifiedGate) -> Vec<String> {
        let filter = format!("session=\"{}\"", asked.session.name.rsplit('/').next().expect("a part"));
        let request = v1::ListEffectsRequest { filter, ..Default::default() };
        let reply: v1::ListEffectsResponse = self.ask("operator", "ListEffects", &request).await;
        let rows = self.node.cluster.shard_of(asked.id.bucket()).read().await.expect("a shard");
        let mut texts = Vec::new();
        for effect in reply.effects {
            let number = effect.name.rsplit('_').next().expect("a part").parse().expect("a number");
            let row =
                rows.row(&Key::outbox(TenantId(1), asked.id, number)).expect("rows").expect("the effect");
            if let Row::Outbox(effect) = &*row
                && let EffectBody::Message { channel, to, text, purpose: Purpose::Inform, .. } = &effect.body
            {
                assert_eq!(to, KIM);
                texts.push(switchward_messages::text(*channel, text).body.into_owned());
            }
        }
        texts
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_decides_if_its_service_signs_where_it_goes_or_is_answered_with_the_page() {
    let harness = Harness::start().await;
    let ingress = harness.ingress(Level::Strict);
    for (name, fields, outcome) in SERVICES {
        let more = proof_headers(fields);
        for text in ["Approved", "reject, thanks", "Hi all,\r\n\r\napprove"] {
            let asked = harness.asked().await;
            let token = asked.token(TokenUse::Reply, KIM);
            let reply = Message { proof: "told", more: &more, ..from_kim(&token, text, "one") };
            let unclear = *outcome == "decided" && text.starts_with("Hi");
            let wanted = if unclear { "noted" } else { outcome };
            assert_eq!(reply.bring(&ingress).await, recorded(wanted), "{name} {text:?}");
            let decided = harness.gate_now(&asked).await.status() == v1::GateStatus::Decided;
            assert_eq!(decided, wanted == "decided", "{name} {text:?}");
            let answers = harness.answered(&asked).await;
            let [answer] = &answers[..] else { panic!("{name} {text:?}: {answers:?}") };
            let said = match wanted {
                "noted" => HOW,
                "sender_not_proved" => ON_THE_PAGE,
                _ => "",
            };
            assert!(answer.contains(said), "{name} {text:?}: {answer}");
        }
    }
    harness.node.end().await;
}

/// Anybody who has such a mail can change its id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_whose_id_is_not_signed_is_one_reply_whatever_its_id() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let token = asked.token(TokenUse::Reply, KIM);
    let more = proof_headers("From:To:Subject:Date");
    let later = more.replace("10:00:00", "10:00:01");
    for (count, id, more) in [(1, "one", &more), (1, "two", &more), (2, "two", &later)] {
        let reply = Message { proof: "told", more, ..from_kim(&token, "looks risky?", id) };
        assert_eq!(reply.bring(&ingress).await, recorded("noted"), "{id}");
        assert_eq!(harness.answered(&asked).await.len(), count, "{id}");
    }
    harness.node.end().await;
}
