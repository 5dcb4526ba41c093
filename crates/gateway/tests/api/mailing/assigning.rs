//! A reply whose first line is `assign to NAME` hands its writer's part to somebody else. A reply of somebody who was removed
//! from the directory decides nothing.

use switchward_api::v1;
use switchward_gateway::mail::Level;
use switchward_state::approval::TokenUse;

use super::{DANA, KIM, Message, answers::fact, from_kim, recorded};
use crate::harness::Harness;
use crate::rpcs::directory::of;

const SAM: &str = "sam@acme.example";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proved_reply_hands_its_writers_part_over_and_a_later_one_decides_nothing() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let people =
        [("agents", "agent@acme"), ("dana", DANA), ("kim", KIM), ("owner:release", KIM), ("sam", SAM)];
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &of(&people)).await;
    let token = asked.token(TokenUse::Reply, KIM);
    let open = i32::from(v1::GateStatus::Open);
    let forged = Message { proof: "fail", ..from_kim(&token, "assign to sam", "a") };
    assert_eq!(forged.bring(&ingress).await, recorded("sender_not_proved"));
    // The first name is unknown; the second is the requester. The writer is informed, and keeps their part.
    assert_eq!(from_kim(&token, "assign to nobody", "b").bring(&ingress).await, recorded("noted"));
    assert_eq!(from_kim(&token, "assign to agents", "c").bring(&ingress).await, recorded("noted"));
    assert_eq!(harness.gate_now(&asked).await.notified, [KIM, DANA]);
    assert_eq!(harness.answers(&asked).await, [KIM, KIM, KIM]);
    let hands = from_kim(&token, "Assign  to Sam.\r\n\r\nSam was there.", "d");
    assert_eq!(hands.bring(&ingress).await, recorded("assigned"));
    let gate = harness.gate_now(&asked).await;
    assert_eq!((gate.status, gate.notified.as_slice()), (open, [SAM.to_owned(), DANA.to_owned()].as_slice()));
    assert_eq!(gate.comments[0].comment, "Sam was there.");
    for (name, value) in [("by", KIM), ("from", KIM), ("to", SAM), ("via", "email")] {
        assert_eq!(fact(&harness, &asked.session, "approval.assigned", name).await, value);
    }
    // The former approver is informed, and answered if they write again.
    assert_eq!(harness.answers(&asked).await, [KIM, KIM, KIM, KIM]);
    assert_eq!(from_kim(&token, "approve", "e").bring(&ingress).await, recorded("not_addressed"));
    assert_eq!(harness.gate_now(&asked).await.status, open);
    assert_eq!(harness.answers(&asked).await.len(), 5);
    let sams = asked.token_of(TokenUse::Reply, SAM, 1);
    // What Kim was sent first stays void when the part comes back.
    let back = Message { from: SAM, ..from_kim(&sams, "assign to kim", "g") };
    assert_eq!(back.bring(&ingress).await, recorded("assigned"));
    assert_eq!(from_kim(&token, "approve", "h").bring(&ingress).await, recorded("earlier_mail"));
    let kims = asked.token_of(TokenUse::Reply, KIM, 2);
    assert_eq!(from_kim(&kims, "assign to sam", "i").bring(&ingress).await, recorded("assigned"));
    let sams = asked.token_of(TokenUse::Reply, SAM, 3);
    let decides = Message { from: SAM, ..from_kim(&sams, "approve", "f") };
    assert_eq!(decides.bring(&ingress).await, recorded("decided"));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_of_somebody_who_is_no_longer_in_the_directory_decides_nothing() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let token = asked.token(TokenUse::Reply, KIM);
    let people = of(&[("dana", DANA), ("owner:release", DANA)]);
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &people).await;
    for (id, text) in [("a", "approve"), ("b", "reject"), ("c", "assign to dana"), ("d", "why?")] {
        assert_eq!(from_kim(&token, text, id).bring(&ingress).await, recorded("not_addressed"), "{text}");
        assert_eq!(harness.gate_now(&asked).await.status, i32::from(v1::GateStatus::Open), "{text}");
    }
    // The writer is informed.
    assert_eq!(harness.answers(&asked).await, [KIM; 4]);
    let people = of(&[("dana", DANA), ("owner:release", KIM)]);
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &people).await;
    assert_eq!(from_kim(&token, "approve", "e").bring(&ingress).await, recorded("decided"));
    harness.node.end().await;
}
