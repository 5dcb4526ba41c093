//! How sources of webhooks are authenticated.

crate::wire::stored_words! {
    /// How a source of webhooks is authenticated. Each kind is one of those that the crate `webhook` can verify.
    WebhookSourceKind is "source kind":
    /// Standard Webhooks: id, timestamp and body are signed.
    StandardWebhooks = "standard-webhooks",
    /// GitHub: the body is signed.
    Github = "github",
    /// Stripe: timestamp and body are signed.
    Stripe = "stripe",
    /// Slack: timestamp and body are signed.
    Slack = "slack",
    /// A token in the header `authorization`; nothing is signed.
    Bearer = "bearer",
    /// No authentication; only on a development server.
    None = "none",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read_from_its_word() {
        for kind in WebhookSourceKind::ALL {
            let bytes = minicbor::to_vec(kind).expect("encoding into memory cannot fail");
            assert_eq!(minicbor::len(kind), bytes.len(), "{kind}");
            assert_eq!(minicbor::decode::<WebhookSourceKind>(&bytes).expect("it is a kind"), *kind);
        }
        let bytes = minicbor::to_vec("GitHub").expect("encoding into memory cannot fail");
        assert!(minicbor::decode::<WebhookSourceKind>(&bytes).is_err());
    }
}
