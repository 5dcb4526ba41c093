use proptest::prelude::*;

use super::*;

fn ring(bytes: &[u8]) -> KeyRing {
    KeyRing::of(bytes.iter().map(|byte| RingKey::of([*byte; 32])).collect())
}

fn secret_of<'a>(kind: u8, name: &'a str) -> SecretOf<'a> {
    match kind % 3 {
        0 => SecretOf::Mail,
        1 => SecretOf::Endpoint(name),
        _ => SecretOf::Source(name),
    }
}

proptest! {
    #[test]
    fn a_secret_opens_where_it_belongs_and_nowhere_else(
        secret in proptest::collection::vec(any::<u8>(), 0..200),
        nonce in any::<[u8; SEAL_NONCE_BYTES]>(),
        tenants in any::<(u32, u32)>(),
        kinds in (0u8..3, 0u8..3),
        names in ("[a-z0-9-]{1,8}", "[a-z0-9-]{1,8}"),
    ) {
        let ring = ring(&[1]);
        let own = (TenantId(tenants.0), secret_of(kinds.0, &names.0));
        let sealed = ring.seal(nonce, own.0, own.1, &secret).unwrap();
        prop_assert_eq!(sealed.secret_bytes(), secret.len());
        prop_assert_eq!(&**ring.open(own.0, own.1, &sealed).unwrap(), &secret[..]);
        prop_assert_eq!(ring.seal(nonce, own.0, own.1, &secret), Some(sealed.clone()));
        for other in [
            (TenantId(tenants.1), own.1),
            (own.0, secret_of(kinds.1, &names.0)),
            (own.0, secret_of(kinds.0, &names.1)),
            (TenantId(tenants.1), secret_of(kinds.1, &names.1)),
        ] {
            prop_assert_eq!(ring.open(other.0, other.1, &sealed).is_ok(), other == own, "{:?}", other);
        }
    }

    #[test]
    fn a_changed_secret_does_not_open(
        secret in proptest::collection::vec(any::<u8>(), 1..64), at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let (ring, own) = (ring(&[1]), (TenantId(1), SecretOf::Mail));
        let sealed = ring.seal([9; SEAL_NONCE_BYTES], own.0, own.1, &secret).unwrap();
        let mut changed = sealed.clone();
        changed.text[at.index(sealed.text.len())] ^= 1 << bit;
        prop_assert_eq!(ring.open(own.0, own.1, &changed), Err(NotOpened::Foreign));
        let mut changed = sealed.clone();
        changed.nonce[at.index(SEAL_NONCE_BYTES)] ^= 1 << bit;
        prop_assert_eq!(ring.open(own.0, own.1, &changed), Err(NotOpened::Foreign));
    }

    #[test]
    fn a_key_is_read_as_it_was_written(bytes in any::<[u8; 32]>(), at in any::<prop::sample::Index>()) {
        let key = RingKey::of(bytes);
        let text = key.reveal();
        let read: RingKey = text.parse().unwrap();
        prop_assert_eq!((read.id(), read.bytes()), (key.id(), &bytes));
        let shown = format!("{key:?} {:?}", KeyRing::of(vec![key.clone()]));
        prop_assert!(!shown.contains(&text[21..]));
        // One digit that is another one is noticed wherever it stands: a ring with a wrong key would seal what nobody opens.
        let at = 4 + at.index(text.len() - 4);
        let other = if &text[at..=at] == "0" { "1" } else { "0" };
        let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        prop_assert!(changed.parse::<RingKey>().is_err());
    }
}

#[test]
fn old_keys_open_and_the_current_one_seals() {
    let (tenant, source) = (TenantId(1), SecretOf::Source("github"));
    let nonce = [3; SEAL_NONCE_BYTES];
    let (before, after) = (ring(&[1]), ring(&[2, 1]));
    let old = before.seal(nonce, tenant, source, b"secret").unwrap();
    assert_eq!(**after.open(tenant, source, &old).unwrap(), b"secret"[..]);
    let new = after.seal(nonce, tenant, source, b"secret").unwrap();
    assert_eq!((old.key, new.key), (RingKey::of([1; 32]).id(), RingKey::of([2; 32]).id()));
    assert_eq!(before.open(tenant, source, &new), Err(NotOpened::NoKey(new.key)));
    assert_eq!(KeyRing::default().seal(nonce, tenant, source, b"secret"), None);
    assert_eq!(after.ids(), [new.key, old.key]);
}

#[test]
fn a_text_that_is_no_key_is_none() {
    let good = RingKey::of([7; 32]).reveal().to_string();
    for bad in
        ["", "swm_", "swm__", &good[..good.len() - 1], &good.to_uppercase(), &format!("{good}0"), &good[4..]]
    {
        assert!(bad.parse::<RingKey>().is_err(), "{bad:?}");
    }
    let id = RingKey::of([7; 32]).id();
    assert_eq!(id.to_string().parse(), Ok(id));
}
