//! Calls in JSON: the first line is a method's path, the rest its body.

use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage as _};
use switchward_gateway::transcode;

/// Used if the first line names no method, so that bytes without one are also read.
const METHOD: &str = "/switchward.v1.DefinitionService/DeployDefinition";

/// Returns true if the body is a message of the method.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (first, rest) = end.map_or((bytes, &bytes[..0]), |end| (&bytes[..end], &bytes[end + 1..]));
    let named = std::str::from_utf8(first).ok().and_then(|path| transcode::read(path, rest));
    let read = named.or_else(|| transcode::read(METHOD, bytes));
    match read.expect("the method exists") {
        Ok(message) => {
            check(&message);
            true
        }
        Err(refusal) => {
            assert!(!refusal.message().is_empty(), "a body is refused without a message");
            false
        }
    }
}

/// Checks that the binary and the JSON form of a message are the same.
fn check(message: &DynamicMessage) {
    let sent = DynamicMessage::decode(message.descriptor(), message.encode_to_vec().as_slice())
        .expect("an encoded message can be decoded");
    assert!(sent == *message, "a message differs after encoding and decoding");
    let shown = serde_json::to_vec(message).expect("a message from JSON can be written as JSON");
    let path = path_of(message);
    let again = transcode::read(&path, &shown).expect("the method exists");
    let again = again.unwrap_or_else(|refusal| panic!("{refusal:?}: {}", String::from_utf8_lossy(&shown)));
    let again_json = || serde_json::to_string(&again).unwrap_or_default();
    assert!(again == *message, "{} is read as {}", String::from_utf8_lossy(&shown), again_json());
}

/// Returns the path of a method that takes such a message.
fn path_of(message: &DynamicMessage) -> String {
    let methods =
        switchward_api::descriptor_pool().services().flat_map(|it| it.methods().collect::<Vec<_>>());
    let mut taking = methods.filter(|method| method.input() == message.descriptor());
    let method = taking.next().expect("a method accepts the body");
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}
