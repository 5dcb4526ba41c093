//! A DNS of text records over UDP (RFC 1035). No other name exists.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

const HEAD_BYTES: usize = 12;
/// The type and the class of a question, behind its name.
const KIND_BYTES: usize = 4;
const TEXT: [u8; 4] = [0, 16, 0, 1];
/// A string of a record has at most this many bytes.
const STRING_BYTES_MAX: usize = 255;

/// The names below a domain that were asked for, which are never answered.
pub(crate) type Unanswered = Arc<Mutex<Vec<String>>>;

/// Starts a server that ends with the process, and returns its address.
pub(crate) fn start(records: impl IntoIterator<Item = (String, String)>) -> SocketAddr {
    start_silent(records, None).0
}

/// The same, which does not answer for names of a domain.
pub(crate) fn start_silent(
    records: impl IntoIterator<Item = (String, String)>,
    silent: Option<&'static str>,
) -> (SocketAddr, Unanswered) {
    let records: HashMap<String, String> = records.into_iter().collect();
    let unanswered = Unanswered::default();
    let asked = Arc::clone(&unanswered);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let mut question = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            let Some(name) = name(&question[..length]) else { continue };
            if silent.is_some_and(|domain| name.ends_with(domain)) {
                asked.lock().expect("nobody panics with it").push(name);
                continue;
            }
            if let Some(answer) = answer(&question[..length], &records) {
                // The client may be gone.
                let _gone = socket.send_to(&answer, from);
            }
        }
    });
    (address, unanswered)
}

/// The queried name, and where it ends.
fn name_and_end(asked: &[u8]) -> Option<(String, usize)> {
    let (mut at, mut labels) = (HEAD_BYTES, Vec::new());
    loop {
        let length = usize::from(*asked.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(asked.get(at..at + length)?).to_lowercase());
        at += length;
    }
}

fn name(asked: &[u8]) -> Option<String> {
    name_and_end(asked).map(|(name, _)| name)
}

/// The answer to one question.
fn answer(asked: &[u8], records: &HashMap<String, String>) -> Option<Vec<u8>> {
    let (name, end) = name_and_end(asked)?;
    let question = asked.get(HEAD_BYTES..end + KIND_BYTES)?;
    let known = records.get(&name);
    let text = known.filter(|_| question.ends_with(&TEXT));
    // An authoritative answer, or NXDOMAIN.
    let flags = [0x85, if known.is_some() { 0x80 } else { 0x83 }];
    let counts = [0, 1, 0, u8::from(text.is_some()), 0, 0, 0, 0];
    let mut answer = [&asked[..2], &flags[..], &counts, question].concat();
    if let Some(text) = text {
        let strings = text.as_bytes().chunks(STRING_BYTES_MAX);
        let data: Vec<u8> = strings.flat_map(|part| [&[part.len() as u8], part].concat()).collect();
        // The name of the question, and that it holds for a minute.
        answer.extend([&[0xc0, HEAD_BYTES as u8], &TEXT[..], &[0, 0, 0, 60]].concat());
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}
