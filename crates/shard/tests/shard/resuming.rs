//! Servers start again although the others do not run, and with the key ring that they had.

use switchward_shard::MemberStart;
use switchward_state::catalogue::{CatalogueCommand, EnsureTenancy};
use switchward_state::seal::{KeyRing, RingKey, SEAL_NONCE_BYTES, SecretOf};
use switchward_state::{Body, Command, Scope};

use crate::commands::TENANTS;
use crate::ensemble::{Ensemble, insist};
use crate::joining::callers;

#[test]
fn without_leaders_a_server_needs_the_key_ring_that_it_had() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    let ring = switchward_scenario::ring();
    let key = ring.seal([3; SEAL_NONCE_BYTES], TENANTS[0], SecretOf::Mail, &[5; 32]);
    assert!(key.is_some(), "it is sealed");
    let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key };
    let ensure = Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure));
    runtime.block_on(async {
        let command = Command::of_server(TENANTS[0], Scope::Catalogue, ensure);
        insist(ensemble.cluster(1), command).await;
        ensemble.agree().await;
    });
    for number in [3, 2, 1] {
        ensemble.shut_down(number);
    }
    let other = KeyRing::of(vec![RingKey::of([9; 32])]);
    for (number, start) in [(1, MemberStart::FoundCluster), (2, MemberStart::Resume)] {
        let refused = ensemble.begin_with(number, start, &other).unwrap_err().to_string();
        assert!(refused.contains("the key ring lacks") && !refused.contains('\n'), "{refused}");
    }
    // With its ring the founder resumes, whatever it is asked to do.
    let resume = MemberStart::Resume;
    ensemble.begin_all(&[(1, MemberStart::FoundCluster), (2, resume.clone()), (3, resume)]).unwrap();
    runtime.block_on(async {
        ensemble.votes(&[1, 2, 3]).await;
        ensemble.agree().await;
        assert_eq!(ensemble.cluster(1).map().unwrap().unwrap().epoch, 3, "nothing was founded again");
    });
    ensemble.assert_sound();
}
