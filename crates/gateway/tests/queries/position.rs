//! Random positions of sessions.

use switchward_machine::{GateKind, NodeIx, Status};
use switchward_state::session::{
    GatePosition, ItemPosition, Listening, Loaded, Meters, Position, RunPosition,
};
use switchward_testkit::session_warnings;

use crate::draw::Draw;

pub(crate) fn position(draw: &mut Draw) -> Position {
    Position {
        sequence: draw.number(),
        status: draw.pick(&Status::ALL),
        reason: draw.option(Draw::text),
        updated: draw.time(),
        ended: draw.option(Draw::time),
        root: run(draw),
        leaf: draw.option(run),
        opening: draw.coin(),
        text: draw.option(Draw::text),
        takes_answers: draw.coin(),
        gates: draw.list(gate),
        items: draw.list(item),
        voided: draw.list(Draw::open),
        warnings: draw.list(|draw| draw.pick(&session_warnings())),
        meters: Meters {
            usd_micros: draw.number(),
            reserved_micros: draw.number(),
            tokens: draw.number(),
            mails: draw.number(),
        },
        usd_cap: draw.option(Draw::number),
        mail_cap: draw.option(Draw::number),
        listens: draw.option(|draw| Listening { run: draw.run(), entry: draw.small() }),
        loaded: Loaded::default(),
    }
}

fn run(draw: &mut Draw) -> RunPosition {
    RunPosition { machine: draw.option(Draw::digest), node: NodeIx(draw.small()) }
}

fn gate(draw: &mut Draw) -> GatePosition {
    GatePosition {
        gate: draw.open(),
        kind: draw.pick(&GateKind::ALL),
        state: draw.text(),
        capability: draw.option(Draw::text),
        shown: draw.option(Draw::digest),
        at: draw.time(),
        to: draw.texts(),
        open: draw.coin(),
        needed: draw.small(),
        approvals: draw.small(),
        unnotified: draw.coin(),
    }
}

fn item(draw: &mut Draw) -> ItemPosition {
    ItemPosition {
        kind: draw.text(),
        of: draw.text(),
        state: draw.text(),
        at: draw.time(),
        due: draw.option(Draw::time),
    }
}
