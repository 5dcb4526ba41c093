//! Values of the page codes by which decision pages recognise people.

use switchward_machine::{Decision, OpenId, Time};
use switchward_state::approval::{
    ApprovalEvent, Gate, GateRequest, PageCodeStep, PageCodes, Resolution, Via,
};
use switchward_state::catalogue::{LinkAuth, Tenancy};
use switchward_state::{Event, Reply, Row};

use super::tenancy;
use crate::stored::open::{gate_row, open_gate};
use crate::stored::{Closed, asked, gate};

fn decided(via: Via) -> Resolution {
    Resolution::Decided { decision: Decision::Approve, by: "kim".into(), comment: "fine".into(), via }
}

/// Rows.
pub(crate) fn rows() -> Vec<(&'static str, Row)> {
    let codes =
        PageCodes { to: "lead@example.com".into(), sent: vec![Time(5), Time(9)], wrong: 2, used: true };
    let asked = GateRequest { codes: vec![codes], ..asked() };
    let closed = |via| Row::Closed(Closed { open: open_gate(), resolution: decided(via), at: Time(4) });
    vec![
        ("tenancy-link-auth", Row::Tenancy(Tenancy { link_auth: Some(LinkAuth::Link), ..tenancy() })),
        ("open-codes", gate_row(Gate { asked: Some(asked), ..gate() })),
        ("closed-by-code", closed(Via::PageByCode)),
        ("closed-by-oidc", closed(Via::PageByOidc)),
    ]
}

/// Facts.
pub(crate) fn events() -> impl Iterator<Item = Event> {
    [PageCodeStep::Sent, PageCodeStep::Refused, PageCodeStep::Accepted]
        .into_iter()
        .map(|step| Event::Approval(ApprovalEvent::PageCodes(crate::stored::page_code_fact(step))))
}

/// An answer.
pub(crate) fn reply() -> Reply {
    Reply::PageCode { gate: OpenId(6), accepted: false, left: 4 }
}
