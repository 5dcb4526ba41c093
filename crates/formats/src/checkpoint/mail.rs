//! Outgoing mail. See `docs/formats-checkpoint.md#money-and-mail`.

use switchward_machine::limits::ADDRESSES_MAX;
use switchward_machine::{
    AddressPattern, ArgRule, Breach, Budget, BudgetUnit, Fallback, Layer, Num, Otherwise, Rule, SENDING,
};

use super::tools::pattern;
use crate::codes::{ADDRESS, MAIL_DENIED};
use crate::document::{Node, Span};
use crate::limits::EMAILS_MAX;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, quoted};

const EMAIL_CONFIG: Shape = Shape {
    what: "`email_config`",
    keys: &["max_emails_per_session", "allowed_from", "allowed_to"],
    ignored: &[],
    hints: &[],
};

/// The result of compiling `email_config`.
pub(crate) struct Mail {
    /// Allows only mails whose addresses match.
    pub(crate) layer: Layer,
    /// The mail cap of a session.
    pub(crate) budget: Option<Budget>,
}

/// Returns `None` if there is no `email_config`: mail is then like any other capability.
pub(crate) fn read(node: Option<&Node>, report: &mut Report) -> Option<Mail> {
    let fields = Fields::open(node?, &EMAIL_CONFIG, report)?;
    let max = fields
        .optional("max_emails_per_session")
        .and_then(|node| shape::integer(node, "`max_emails_per_session`", 0..=EMAILS_MAX, report));
    let from = fields.optional("allowed_from").map(|node| addresses(node, "`allowed_from`", report));
    let to = fields.optional("allowed_to").map(|node| addresses(node, "`allowed_to`", report));
    let rule = Rule {
        pattern: pattern(SENDING),
        limits: Vec::new(),
        gate: None,
        args: Some(ArgRule::Mail { from, to }),
    };
    let layer = Layer {
        name: "email_config".into(),
        covers: pattern(SENDING),
        except: Vec::new(),
        deny: Vec::new(),
        ask: Vec::new(),
        allow: vec![rule],
        otherwise: Otherwise::Deny,
        at: None,
    };
    let budget = max.map(|max| Budget {
        unit: BudgetUnit::Mails,
        cap: Num::Literal(max),
        breach: Breach::DenyCalls,
        covers: pattern(SENDING),
        except: Vec::new(),
    });
    Some(Mail { layer, budget })
}

/// Warns of mail limits beside a policy that denies all mail by its default.
pub(crate) fn warn_denied(layer: &Layer, span: Span, report: &mut Report) {
    let mut rules = layer.deny.iter().chain(&layer.ask).chain(&layer.allow);
    let denies = layer.otherwise == Otherwise::Stated(Fallback::Deny);
    if report.errors() == 0 && denies && !rules.any(|rule| rule.pattern.covers(SENDING)) {
        let message = "no rule allows `resend-email`, so `default_effect: deny` denies every mail, and `email_config` has \
                       no effect";
        report.add(Finding::new(MAIL_DENIED, span, message).hint(ALLOW_HINT));
    }
}

const ALLOW_HINT: &str = "add `{capability: resend-email}` to `allow`, or to `ask`";

/// An empty list allows no address; that is not the same as no list.
fn addresses(node: &Node, what: &str, report: &mut Report) -> Vec<AddressPattern> {
    let items = shape::list(node, what, ADDRESSES_MAX, report).unwrap_or_default();
    let read = items.iter().filter_map(|item| {
        let text = shape::text(item, &format!("an address in {what}"), usize::MAX, report)?;
        let address = AddressPattern::new(text);
        if address.is_none() {
            let message = format!("{} in {what} is not an address", quoted(text));
            report.add(
                Finding::new(ADDRESS, item.span, message)
                    .hint("write name@domain, or *@domain for all of a domain"),
            );
        }
        address
    });
    read.collect()
}
