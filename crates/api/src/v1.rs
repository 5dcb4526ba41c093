//! Generated from `proto/switchward/v1`. Its documentation is that of the sources.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "the generator writes them"
)]

tonic::include_proto!("switchward.v1");
