//! Limits the DNS queries for one domain's mails: a domain with slow or silent name servers delays the mails of others only
//! by its first few.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::limits::{DNS_AGAIN, DNS_DOMAIN_AT_ONCE_MAX, DNS_DOMAINS_MAX};

/// The state of domains that are or were lately queried.
#[derive(Default)]
pub(super) struct Budget(Mutex<HashMap<Box<str>, Domain>>);

#[derive(Default)]
struct Domain {
    /// Mails with running queries.
    at_once: usize,
    /// Until when it is not queried, because it did not answer.
    rests: Option<Instant>,
}

impl Domain {
    fn is_idle(&self, now: Instant) -> bool {
        self.at_once == 0 && self.rests.is_none_or(|until| until <= now)
    }
}

impl Budget {
    /// Begins the queries for one mail of a domain; `None` if [`DNS_DOMAIN_AT_ONCE_MAX`] others are running, or if it did
    /// not answer within the last [`DNS_AGAIN`].
    pub(super) fn begin(&self, domain: &str) -> Option<Turn<'_>> {
        let mut domains = self.0.lock();
        let now = Instant::now();
        if domains.len() >= DNS_DOMAINS_MAX {
            domains.retain(|_, known| !known.is_idle(now));
        }
        if domains.len() >= DNS_DOMAINS_MAX {
            domains.retain(|_, known| known.at_once > 0);
        }
        let known = domains.entry(domain.into()).or_default();
        if known.at_once >= DNS_DOMAIN_AT_ONCE_MAX || known.rests.is_some_and(|until| until > now) {
            return None;
        }
        known.at_once += 1;
        Some(Turn { budget: self, domain: domain.into(), failed: false })
    }
}

/// One mail of a domain with running queries.
pub(super) struct Turn<'b> {
    budget: &'b Budget,
    domain: Box<str>,
    failed: bool,
}

impl Turn<'_> {
    /// The domain did not answer.
    pub(super) fn failed(mut self) {
        self.failed = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut domains = self.budget.0.lock();
        let Some(known) = domains.get_mut(&self.domain) else { return };
        known.at_once -= 1;
        if self.failed {
            known.rests = Some(Instant::now() + DNS_AGAIN);
        } else if known.at_once == 0 && known.rests.is_none() {
            domains.remove(&self.domain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_asked_for_a_few_mails_at_once_and_rests_where_it_does_not_answer() {
        let budget = Budget::default();
        let turns: Vec<_> = (0..DNS_DOMAIN_AT_ONCE_MAX).filter_map(|_| budget.begin("a.example")).collect();
        assert_eq!(turns.len(), DNS_DOMAIN_AT_ONCE_MAX);
        assert!(budget.begin("a.example").is_none());
        // Other domains are not affected.
        assert!(budget.begin("b.example").is_some());
        drop(turns);
        budget.begin("a.example").expect("a turn is free again").failed();
        assert!(budget.begin("a.example").is_none());
        assert!(budget.begin("b.example").is_some());
    }

    #[test]
    fn so_many_domains_are_remembered_and_no_more() {
        let budget = Budget::default();
        let busy = budget.begin("busy.example").expect("a turn");
        for number in 0..DNS_DOMAINS_MAX + 5 {
            budget.begin(&format!("{number}.example")).expect("a turn").failed();
        }
        assert!(budget.0.lock().len() <= DNS_DOMAINS_MAX);
        assert_eq!(budget.0.lock()["busy.example"].at_once, 1);
        drop(busy);
    }
}
