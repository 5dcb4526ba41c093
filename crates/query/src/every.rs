//! The form in which a query is sent.

use minicbor::{CborLen, Decode, Encode};

use crate::approval::ApprovalQuery;
use crate::catalogue::CatalogueQuery;
use crate::delivery::DeliveryQuery;
use crate::export::ExportQuery;
use crate::policy::PolicyQuery;
use crate::session::SessionQuery;
use crate::tenant::TenantQuery;
use crate::work::WorkQuery;

/// A query, by what it is about, as one server sends it to another that has the rows. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Query {
    /// About sessions and their histories.
    #[n(0)]
    Session(#[n(0)] SessionQuery),
    /// About gates.
    #[n(1)]
    Approval(#[n(0)] ApprovalQuery),
    /// About work and timers.
    #[n(2)]
    Work(#[n(0)] WorkQuery),
    /// About what goes out, and about sources of webhooks.
    #[n(3)]
    Delivery(#[n(0)] DeliveryQuery),
    /// About calls and their limits.
    #[n(4)]
    Policy(#[n(0)] PolicyQuery),
    /// About definitions, their versions and assistants.
    #[n(5)]
    Catalogue(#[n(0)] CatalogueQuery),
    /// About tenants, their keys and their settings.
    #[n(6)]
    Tenant(#[n(0)] TenantQuery),
    /// About what an export walks through.
    #[n(7)]
    Export(#[n(0)] ExportQuery),
}
