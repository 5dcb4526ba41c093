//! Removes from every reply what the caller may not read: reply tokens, for all but operators and admins.
//!
//! A token may occur wherever a definition's text or data leads: in instructions, messages, data, work, gates, effects and
//! history. So it is not hidden field by field: every message that leaves a gRPC service is searched, and one with a token
//! is decoded by its descriptor and rewritten. JSON and gRPC-Web are made from these messages. Stored texts have marks
//! instead of tokens: a caller who may read tokens gets them in place of the marks; for all others marks are hidden, too.

use axum::body::Body;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, Request, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use memchr::memmem::Finder;
use prost::Message;
use prost_reflect::{DynamicMessage, MapKey, MessageDescriptor, MethodDescriptor, Value};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use switchward_api::PACKAGE;
use switchward_query::GetMailKeys;
use switchward_shard::Cluster;
use switchward_state::approval::{MailKey, MailToken};
use switchward_state::session::ReplyTokens;

use crate::around::Answers;
use crate::by_name::{Answered, ByName};
use crate::calls::{FRAME_HEADER_BYTES, frame, method_at};
use crate::reply_tokens::{MARK, PREFIX, may_read};
use crate::{auth, stale};

/// What a reply token and the mark of one begin with.
static PREFIXES: LazyLock<(Finder<'_>, Finder<'_>)> =
    LazyLock::new(|| (Finder::new(PREFIX), Finder::new(MARK)));
/// The text shown instead of a reply token.
const HIDDEN: &str = "swr_…";
/// The text shown instead of a mail token.
const MAIL_HIDDEN: &str = "…";
/// The shortest text of a mail token: a session, three numbers and a code, 35 bytes, at five bits a character.
const MAIL_TOKEN_BYTES_MIN: usize = 56;

/// Services by name, whose replies lose what their callers may not read. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HidingServices(Arc<Parts>);

struct Parts {
    services: ByName,
    callers: Option<Cluster>,
}

impl HidingServices {
    /// These services. `callers` has the keys and roles of callers; without it nothing is hidden.
    pub(crate) fn new(services: ByName, callers: Option<Cluster>) -> Self {
        Self(Arc::new(Parts { services, callers }))
    }
}

impl Answers for HidingServices {
    type Future = Shown;

    fn answer(&self, request: Request<Body>) -> Shown {
        let Parts { services, callers } = &*self.0;
        let hidden = callers.as_ref().zip(method_at(request.uri().path()));
        let replies = hidden.map(|(callers, method)| Replies {
            cluster: callers.clone(),
            credential: request.headers().get(header::AUTHORIZATION).cloned(),
            method,
            pending: BytesMut::new(),
            reads: None,
        });
        Shown { answered: services.call(request), replies }
    }
}

/// The answer of a service, whose replies are as their caller may read them.
pub(crate) struct Shown {
    answered: Answered,
    /// `None` if nothing is hidden.
    replies: Option<Replies>,
}

impl Future for Shown {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(response) = ready!(self.answered.as_mut().poll(context));
        let Some(mut replies) = self.replies.take() else {
            return Poll::Ready(Ok(response.map(Body::new)));
        };
        Poll::Ready(Ok(response.map(|body| {
            Body::new(body.map_frame(move |frame| match frame.into_data() {
                Ok(data) => Frame::data(replies.shown(data)),
                Err(trailers) => trailers,
            }))
        })))
    }
}

/// The replies of one call.
struct Replies {
    cluster: Cluster,
    credential: Option<HeaderValue>,
    method: &'static MethodDescriptor,
    /// The beginning of a message whose rest has not come yet.
    pending: BytesMut,
    /// The tokens of a caller who may read them; `Some(None)` if they may not, and `None` until that was looked up.
    reads: Option<Option<ReplyTokens>>,
}

impl Replies {
    /// What may be sent of these bytes: whole messages without what the caller may not read, and with what they may.
    fn shown(&mut self, data: Bytes) -> Bytes {
        if self.pending.is_empty() && is_whole(&data) && !holds_token(&data) {
            return data;
        }
        self.pending.extend_from_slice(&data);
        let mut shown = BytesMut::new();
        while let Some(length) = first(&self.pending) {
            let whole = self.pending.split_to(FRAME_HEADER_BYTES + length).freeze();
            if !holds_token(&whole) {
                shown.extend_from_slice(&whole);
                continue;
            }
            let bytes = whole.slice(FRAME_HEADER_BYTES..);
            let (cluster, credential) = (&self.cluster, self.credential.as_ref());
            let written = match self.reads.get_or_insert_with(|| tokens_of(cluster, credential)) {
                None => rewritten(&self.method.output(), bytes, &without),
                Some(tokens) => rewritten(&self.method.output(), bytes, &|text| tokens.put_into(text)),
            };
            shown.extend_from_slice(&frame(&written));
        }
        shown.freeze()
    }
}

/// The tokens that a caller may read, all of their tenant's; `None` if they may read none.
fn tokens_of(cluster: &Cluster, credential: Option<&HeaderValue>) -> Option<ReplyTokens> {
    let caller = auth::caller(cluster, credential.and_then(auth::bearer))
        .ok()
        .filter(|caller| may_read(caller.actor.role))?;
    let keys = stale::answer(cluster, &GetMailKeys { tenant: caller.tenant }).ok()?;
    let keys = MailKey::open_all(&cluster.ring(), caller.tenant, &keys);
    Some(ReplyTokens::of_tenant(caller.tenant_name, keys))
}

/// The bytes of the first message of a body, if all of it is there.
fn first(mut bytes: &[u8]) -> Option<usize> {
    if bytes.len() < FRAME_HEADER_BYTES {
        return None;
    }
    bytes.advance(1);
    let length = usize::try_from(bytes.get_u32()).ok()?;
    (bytes.len() >= length).then_some(length)
}

/// Returns true if the bytes are whole messages.
fn is_whole(mut bytes: &[u8]) -> bool {
    while let Some(length) = first(bytes) {
        bytes = &bytes[FRAME_HEADER_BYTES + length..];
    }
    bytes.is_empty()
}

/// Returns true if a reply token, or the mark of one, may stand in the bytes.
fn holds_token(bytes: &[u8]) -> bool {
    [&PREFIXES.0, &PREFIXES.1].into_iter().any(|begins| begins.find(bytes).is_some())
}

/// A text as it is shown; `None` if it is shown as it is.
type Without<'w> = &'w dyn Fn(&str) -> Option<String>;

/// The message with its texts as they are shown. One that cannot be read is sent empty.
fn rewritten(descriptor: &MessageDescriptor, bytes: Bytes, without: Without<'_>) -> Vec<u8> {
    let Ok(mut message) = DynamicMessage::decode(descriptor.clone(), bytes) else { return Vec::new() };
    hide_in(&mut message, without);
    message.encode_to_vec()
}

/// The message, named inside the package, without anything that opens a way in: reply tokens, and the tokens of mails and
/// decision pages. For what is kept outside and read by others than its caller.
pub(crate) fn masked<M: Message + Default>(name: &str, message: M) -> M {
    let bytes = message.encode_to_vec();
    if !may_hold_any(&bytes) {
        return message;
    }
    let descriptor = switchward_api::descriptor_pool().get_message_by_name(&format!("{PACKAGE}.{name}"));
    let dynamic = descriptor.and_then(|descriptor| DynamicMessage::decode(descriptor, &bytes[..]).ok());
    // A message that cannot be read is left out rather than shown with its tokens.
    let Some(mut dynamic) = dynamic else { return M::default() };
    hide_in(&mut dynamic, &without_any);
    M::decode(&dynamic.encode_to_vec()[..]).unwrap_or_default()
}

fn hide_in(message: &mut DynamicMessage, without: Without<'_>) {
    message.fields_mut().for_each(|(_, value)| hide(value, without));
}

fn hide(value: &mut Value, without: Without<'_>) {
    match value {
        Value::String(text) => {
            if let Some(without) = without(text) {
                *text = without;
            }
        }
        Value::Bytes(bytes) => {
            if let Some(without) = without(&String::from_utf8_lossy(bytes)) {
                *bytes = Bytes::from(without);
            }
        }
        Value::Message(message) => hide_in(message, without),
        Value::List(list) => list.iter_mut().for_each(|value| hide(value, without)),
        Value::Map(map) => {
            map.values_mut().for_each(|value| hide(value, without));
            let named = |key: &MapKey| key.as_str().and_then(&without);
            let keys: Vec<(MapKey, String)> =
                map.keys().filter_map(|key| Some((key.clone(), named(key)?))).collect();
            for (key, name) in keys {
                if let Some(value) = map.remove(&key) {
                    map.insert(MapKey::String(name), value);
                }
            }
        }
        Value::Bool(_)
        | Value::I32(_)
        | Value::I64(_)
        | Value::U32(_)
        | Value::U64(_)
        | Value::F32(_)
        | Value::F64(_)
        | Value::EnumNumber(_) => {}
    }
}

/// The text without its reply tokens and their marks; `None` if it has none.
pub(crate) fn without(text: &str) -> Option<String> {
    let next = |text: &str| [PREFIX, MARK].into_iter().filter_map(|begins| text.find(begins)).min();
    next(text)?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = next(rest) {
        let (before, token) = rest.split_at(at);
        let own = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let end = token.find(|c| !own(c)).unwrap_or(token.len());
        out.push_str(before);
        // A name may end like the beginning of a token, as `…swr_7` of a gate does. A token has its parts behind points.
        out.push_str(if token[..end].contains('.') { HIDDEN } else { &token[..end] });
        rest = &token[end..];
    }
    out.push_str(rest);
    Some(out)
}

/// The text without its reply tokens and its mail tokens; `None` if it has none.
pub(crate) fn without_any(text: &str) -> Option<String> {
    let first = without(text);
    without_mail(first.as_deref().unwrap_or(text)).or(first)
}

/// The text without its mail tokens; `None` if it has none. They occur in addresses and in paths, between characters that
/// no token has.
pub(crate) fn without_mail(text: &str) -> Option<String> {
    let other = |c: char| !c.is_ascii_alphanumeric();
    let is_token = |part: &str| part.len() >= MAIL_TOKEN_BYTES_MIN && part.parse::<MailToken>().is_ok();
    if !text.split(other).any(is_token) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(other) {
        let part = piece.trim_end_matches(other);
        out.push_str(if is_token(part) { MAIL_HIDDEN } else { part });
        out.push_str(&piece[part.len()..]);
    }
    Some(out)
}

/// Returns true if a message may hold a token of whatever kind. What stands before a text in its bytes may look like a part
/// of it, so a long word is enough.
fn may_hold_any(bytes: &[u8]) -> bool {
    holds_token(bytes)
        || bytes.split(|byte| !byte.is_ascii_alphanumeric()).any(|word| word.len() >= MAIL_TOKEN_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_api::v1;
    use switchward_machine::{OpenId, SessionId, TenantId};
    use switchward_state::approval::{MailKey, TokenUse};

    const TOKEN: &str = "swr_acme.ses_0.1.2.0a";

    #[test]
    fn the_tokens_of_a_text_are_replaced_by_a_mark() {
        let mark = TOKEN.replacen(PREFIX, MARK, 1);
        let text = format!("To {TOKEN}, and ({mark}) Ä swr_…");
        assert_eq!(without(&text).expect("the text has tokens"), "To swr_…, and (swr_…) Ä swr_…");
        assert_eq!(without("a cover"), None);
        let gate = "tenants/acme/gates/gat_5pft5bfan0474z2stdnrm40swr_12";
        assert_eq!(
            without(&format!("{gate}: x{TOKEN}")).expect("the text has a token"),
            format!("{gate}: xswr_…")
        );
    }

    #[test]
    fn no_field_of_a_message_keeps_a_token() {
        let text =
            |text: String| prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(text)) };
        let fields =
            [("a".to_owned(), text(format!("x{TOKEN}"))), (TOKEN.to_owned(), text(TOKEN.into()))].into();
        let session = v1::Session {
            name: "tenants/acme/sessions/s".into(),
            at: vec![TOKEN.into()],
            labels: [(TOKEN.to_owned(), TOKEN.to_owned())].into(),
            data: Some(prost_types::Struct { fields }),
            checkpoint: Some(v1::Checkpoint { question: TOKEN.into(), ..Default::default() }),
            ..Default::default()
        };
        let gate =
            v1::Gate { args: format!("{{\"to\":\"{TOKEN}\"}}").into_bytes().into(), ..Default::default() };
        for (kind, bytes) in [("Session", session.encode_to_vec()), ("Gate", gate.encode_to_vec())] {
            assert!(holds_token(&bytes));
            let name = format!("{}.{kind}", switchward_api::PACKAGE);
            let descriptor = switchward_api::descriptor_pool().get_message_by_name(&name).expect("a message");
            let shown = rewritten(&descriptor, bytes.into(), &without);
            let left = String::from_utf8_lossy(&shown).into_owned();
            assert!(!left.contains("swr_acme") && left.contains(HIDDEN), "{left}");
        }
        let broken = Bytes::from_static(b"\xff\xffswr_acme");
        let descriptor =
            switchward_api::descriptor_pool().get_message_by_name("switchward.v1.Gate").expect("one");
        assert!(rewritten(&descriptor, broken, &without).is_empty());
    }

    #[test]
    fn what_leaves_for_others_keeps_no_token_of_any_kind() {
        let key = MailKey([7; 32]);
        let token = |about, round| {
            let (tenant, session) = (TenantId(3), SessionId([9; 16]));
            key.token(TokenUse::Page, tenant, session, OpenId(about), round, "kim@acme.example").to_string()
        };
        for mail in [token(0, 0), token(127, 1), token(u64::MAX, u32::MAX)] {
            assert!(mail.len() >= MAIL_TOKEN_BYTES_MIN, "{mail}");
            let digest = "0a".repeat(32);
            let event = v1::SessionEvent {
                by: mail.clone(),
                message: format!(
                    "r+{mail}@acme.example http://a.example/a/{}?x ({TOKEN})",
                    mail.to_uppercase()
                ),
                state: digest.clone(),
                ..Default::default()
            };
            let shown = masked("SessionEvent", event.clone());
            assert_eq!(shown.message, "r+…@acme.example http://a.example/a/…?x (swr_…)");
            assert_eq!((shown.by.as_str(), &shown.state), ("…", &digest));
            let plain = v1::SessionEvent { by: "kim".into(), message: "swr_".into(), ..event };
            let plain = v1::SessionEvent { state: String::new(), ..plain };
            assert_eq!(masked("SessionEvent", plain.clone()), plain);
        }
    }

    #[test]
    fn frames_are_distinguished() {
        let both = [frame(b"one"), frame(b"")].concat();
        assert!(is_whole(&both) && is_whole(b"") && !is_whole(&both[..9]) && !is_whole(&both[..3]));
        assert_eq!((first(&both), first(&both[..7])), (Some(3), None));
    }
}
