//! Outgoing mail. Heading *Process fields*, `email_config`.

use switchward_machine::limits::ADDRESSES_MAX;
use switchward_machine::{
    AddressPattern, ArgRule, Breach, Budget, BudgetUnit, Layer, Num, Otherwise, Rule, SENDING,
};

use super::tools::pattern;
use crate::codes::ADDRESS;
use crate::document::Node;
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
