//! The descriptors of the API, embedded.

use std::sync::LazyLock;

use prost_reflect::DescriptorPool;

/// The protobuf package of every service and message here.
pub const PACKAGE: &str = "switchward.v1";

/// An encoded `google.protobuf.FileDescriptorSet`: the API's files and all that they import, without comments.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the build script wrote a valid descriptor set")
});

/// The descriptors of the API, decoded at the first call.
#[must_use]
pub fn descriptor_pool() -> &'static DescriptorPool {
    &POOL
}
