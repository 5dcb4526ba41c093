//! How events of one aggregate become events.

use crate::Event;
use crate::approval::ApprovalEvent;
use crate::catalogue::{CatalogueEvent, TenantFact, VersionFact};
use crate::delivery::{DeliveryEvent, WebhookSourceFact};
use crate::policy::{PolicyEvent, PolicyFact};
use crate::run::{PendingFact, RunEvent};
use crate::session::SessionEvent;
use crate::work::WorkEvent;

macro_rules! events {
    ($($aggregate:ident($event:ident) from $($fact:ident as $kind:ident),*;)*) => {$(
        impl From<$event> for Event {
            fn from(event: $event) -> Self {
                Self::$aggregate(event)
            }
        }
        $(
            impl From<$fact> for Event {
                fn from(fact: $fact) -> Self {
                    Self::$aggregate($event::$kind(fact))
                }
            }
        )*
    )*};
}

events! {
    Session(SessionEvent) from ;
    Run(RunEvent) from PendingFact as Pending;
    Approval(ApprovalEvent) from ;
    Work(WorkEvent) from ;
    Delivery(DeliveryEvent) from WebhookSourceFact as WebhookSources;
    Policy(PolicyEvent) from PolicyFact as Policies;
    Catalogue(CatalogueEvent) from VersionFact as Versions, TenantFact as Tenants;
}
