//! Mail that was not taken: what is kept of it, and who is shown it.

use std::sync::atomic::Ordering;

use switchward_api::v1;
use switchward_engine::MailKey;
use switchward_gateway::limits::MAIL_KEPT_BYTES_MAX;
use switchward_gateway::mail::{Mailroom, Outcome};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_mail::incoming::Envelope;
use tonic::Status;

use crate::told::refused;
use crate::world::World;

const DOMAIN: &str = "reply.acme.example";

fn room(world: &World) -> Mailroom {
    let dns = switchward_mail::incoming::Dns::of_records(&[], &[]).expect("no records");
    let settings = switchward_mail::incoming::Settings::of(DOMAIN);
    Mailroom::new(world.node.door.clone(), settings, dns, switchward_gateway::mail::Level::Sender)
}

/// A reply to a mail that was never written, of this tenant.
fn letter(tenant: u32, more: &str, text: &str) -> Vec<u8> {
    let session = SessionId::from_key(TenantId(tenant), "never");
    let way = switchward_engine::Way::Reply;
    let token = MailKey([7; 32]).token(way, (TenantId(tenant), session), (OpenId(1), 0), "ann@example.com");
    format!(
        "From: Ann <ann@example.com>\r\nTo: r+{token}@{DOMAIN}\r\nSubject: Re: release\r\nMessage-ID: <1@example.com>\r\n\
         {more}\r\n{text}\r\n"
    )
    .into_bytes()
}

async fn listed(world: &World, secret: &str) -> Vec<v1::QuarantinedMail> {
    let request = v1::ListQuarantinedMailRequest::default();
    let reply =
        world.node.line.ask::<v1::ListQuarantinedMailResponse>(secret, "ListQuarantinedMail", &request);
    let mut mails = reply.await.expect("it is listed").mails;
    mails.retain(|mail| !mail.name.ends_with("-mail"));
    mails
}

async fn got(world: &World, secret: &str, name: &str) -> Result<v1::QuarantinedMail, Status> {
    let request = v1::GetQuarantinedMailRequest { name: name.to_owned(), ..Default::default() };
    let reply = world.node.line.ask::<v1::GetQuarantinedMailResponse>(secret, "GetQuarantinedMail", &request);
    Ok(reply.await?.mail.expect("a mail"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_shown_what_names_it_and_the_first_tenants_admin_what_names_nobody() {
    let world = World::start().await;
    let (room, nobody) = (room(&world), Envelope::default());
    let html = "Content-Type: text/html\r\n";
    let named = letter(2, html, "<b>Approve</b><script>steal()</script>");
    assert_eq!(room.ingest(&nobody, &named).await, Outcome::Quarantined("session_unknown"));
    let away = letter(1, "Auto-Submitted: auto-replied\r\n", "I am away.");
    assert_eq!(room.ingest(&nobody, &away).await, Outcome::Ignored("auto_reply"));
    let strange = b"From: eve@example.com\r\nSubject: Hi\r\nMessage-ID: <2@example.com>\r\n\r\nPay me.\r\n";
    assert_eq!(room.ingest(&nobody, strange).await, Outcome::Quarantined("no_token"));
    // A tenant that does not exist is nobody.
    assert_eq!(room.ingest(&nobody, &letter(77, "", "Hello.")).await, Outcome::Quarantined("no_tenant"));
    let reasons = |mails: Vec<v1::QuarantinedMail>| {
        let mut reasons: Vec<(String, bool)> =
            mails.into_iter().map(|mail| (mail.reason, mail.unmatched)).collect();
        reasons.sort();
        reasons
    };
    let own = |word: &str, unmatched| (word.to_owned(), unmatched);
    let theirs = listed(&world, world.globex.key("admin")).await;
    let name = theirs[0].name.clone();
    assert_eq!(reasons(theirs), [own("session_unknown", false)]);
    let of_operator = reasons(listed(&world, world.acme.key("operator")).await);
    assert_eq!(of_operator, [own("auto_reply", false)]);
    let of_admin = reasons(listed(&world, world.acme.key("admin")).await);
    assert_eq!(of_admin, [own("auto_reply", false), own("no_tenant", true), own("no_token", true)]);
    let mail = got(&world, world.globex.key("operator"), &name).await.expect("it is theirs");
    assert_eq!((mail.from.as_str(), mail.subject.as_str()), ("ann@example.com", "Re: release"));
    assert_eq!((mail.text.trim(), &mail.content[..]), ("Approve", &named[..]));
    assert!(mail.headers.starts_with("From: Ann") && mail.headers.contains(html), "{}", mail.headers);
    let short = name.rsplit('/').next().expect("a part");
    refused(got(&world, world.acme.key("admin"), short).await, "NOT_FOUND");
    let delete = v1::DeleteQuarantinedMailRequest { name };
    let gone = world.node.line.ask::<v1::DeleteQuarantinedMailResponse>(
        world.globex.key("admin"),
        "DeleteQuarantinedMail",
        &delete,
    );
    gone.await.expect("it is deleted");
    assert!(listed(&world, world.globex.key("admin")).await.is_empty());
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_kept_is_brought_again_and_once_kept_is_one() {
    let world = World::start().await;
    let (room, nobody) = (room(&world), Envelope::default());
    let long = letter(1, "", &"x".repeat(MAIL_KEPT_BYTES_MAX));
    world.node.shelf.full.store(true, Ordering::Relaxed);
    assert_eq!(room.ingest(&nobody, &long).await, Outcome::Later);
    assert!(listed(&world, world.acme.key("admin")).await.is_empty());
    world.node.shelf.full.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(room.ingest(&nobody, &long).await, Outcome::Quarantined("session_unknown"));
    }
    let mails = listed(&world, world.acme.key("admin")).await;
    let [mail] = &mails[..] else { panic!("{mails:?}") };
    assert!(mail.truncated && mail.size_bytes > u64::try_from(MAIL_KEPT_BYTES_MAX).expect("few"));
    let mail = got(&world, world.acme.key("admin"), &mail.name).await.expect("it is kept");
    assert_eq!((mail.truncated, mail.content.len()), (true, MAIL_KEPT_BYTES_MAX));
    world.node.end().await;
}
