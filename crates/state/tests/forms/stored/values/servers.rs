//! Values of the servers of a cluster; they stand in row.v1.txt and decision.v1.txt.

use switchward_machine::Time;
use switchward_state::catalogue::{
    BucketMap, BucketRange, CatalogueEvent, ClusterChange, ClusterMap, Server, ServerState,
};
use switchward_state::{Event, Level, Levels, Row};

fn server(state: ServerState) -> Server {
    let address = "10.0.0.2:7001".into();
    let replaced_by = (state == ServerState::Draining).then_some(4);
    Server {
        number: 2,
        folder: [2; 16],
        address,
        state,
        levels: Levels::OF_PROGRAM,
        joined: Time(5),
        replaced_by,
    }
}

fn map() -> ClusterMap {
    ClusterMap::founded([1; 16], 1, 2, Level(1), 3).changed(&server(ServerState::Active))
}

pub(super) fn rows() -> Vec<(&'static str, Row)> {
    let ranges = [(0, 1), (2_048, 2)].map(|(first, group)| BucketRange { first, group });
    let ranges = ClusterMap { buckets: BucketMap::Ranges(ranges.to_vec()), ..map() };
    vec![
        ("server", Row::Server(server(ServerState::Active))),
        ("server-draining", Row::Server(server(ServerState::Draining))),
        ("server-removed", Row::Server(server(ServerState::Removed))),
        ("cluster-map", Row::ClusterMap(map())),
        ("cluster-map-ranges", Row::ClusterMap(ranges)),
    ]
}

pub(super) fn events() -> Vec<Event> {
    let change = ClusterChange { server: server(ServerState::Active), map: map() };
    let placed = map().placed(2, &[2]);
    vec![
        Event::Catalogue(CatalogueEvent::ClusterChanged(Box::new(change))),
        Event::Catalogue(CatalogueEvent::LevelRaised(Box::new(map()))),
        Event::Catalogue(CatalogueEvent::VotersPlaced(Box::new(placed))),
    ]
}
