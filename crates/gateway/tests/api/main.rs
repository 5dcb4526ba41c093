//! A whole node behind its port: what each role, each of two tenants and each way in get from every call of the API.

#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::result_large_err,
    reason = "a test checks only the cases that it is about"
)]

mod browser;
mod client;
mod harness;
mod node;
mod openid;
mod protocols;
mod refusal;
mod rpcs;

mod approvals;
mod assigning;
mod assisting;
mod callbacks;
mod calling;
mod clock;
mod cluster;
mod credentials;
mod cut_off_leader;
mod deciding;
mod decision_page;
mod delivering;
mod disposing;
mod effects;
mod ending;
mod expiring;
mod export;
mod fields;
mod free_names;
mod frozen;
mod gateway_credentials;
mod hostile;
mod layers;
mod lesser;
mod lists;
mod mailing;
mod masks;
mod minority;
mod moving;
mod named;
mod outside;
mod page_codes;
mod page_sign_in;
mod posting;
mod proxying;
mod publishing;
mod quarantine;
mod quarantine_store;
mod quotas;
mod repeated;
mod requests;
mod revoking;
mod roles;
mod route_maps;
mod same;
mod servers;
mod sources;
mod starting;
mod streaming;
mod tasks;
mod tenants;
mod tokens;
mod transport;
mod unnotified;
mod vouching;
mod watching;
mod working;
