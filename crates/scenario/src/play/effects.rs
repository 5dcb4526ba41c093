//! Deliveries that fail.

use std::ops::ControlFlow;
use switchward_state::catalogue::Role;
use switchward_state::delivery::{DeliveryCommand, EffectBody, FailEffect};
use switchward_state::{Actor, Body, Key, Kind, Row, Scope};

use super::moves::no_session;
use super::{Moved, Player};
use crate::system::read;

/// The actor of the report.
const OPERATOR: &str = "operator";
/// The error code of the failure.
const CODE: &str = "undeliverable";

impl Player<'_> {
    pub(super) fn undelivered(&mut self, wanted: &str) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let tenant = self.tenant;
        let newest = read(self.system, tenant, &Scope::Session(id), |view| {
            let mut newest = None;
            view.scan(&Key::prefix_of_session(tenant, id, Kind::Outbox), None, &mut |_, row| {
                if let Row::Outbox(effect) = &**row
                    && let EffectBody::Message { to, .. } = &effect.body
                    && to == wanted
                    && effect.dead_letter().is_none()
                {
                    newest = Some(effect.number);
                }
                ControlFlow::Continue(())
            })?;
            Ok(newest)
        })?;
        let Some(number) = newest else { return Ok(Err(self.nothing_takes(id, "undelivered")?)) };
        let operator = Actor { subject: OPERATOR.into(), role: Role::Operator };
        let (code, detail) = (CODE.parse().expect("a code of a program"), None);
        let body =
            Body::Delivery(DeliveryCommand::FailEffect(FailEffect { number, code, detail, round: None }));
        Ok(self.about_session(operator, body)?.map(|_| ()))
    }
}
