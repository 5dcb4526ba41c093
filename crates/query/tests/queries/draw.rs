//! Random values of the parts of queries: numbers of every width, texts with characters of several bytes, and lists that are
//! empty, short or longer than the first byte of their form can say.

use switchward_machine::{Bucket, Digest, OpenId, RunId, SessionId, TenantId, Time};
use switchward_query::Bounds;
use switchward_state::approval::{MailKey, MailToken, TokenUse};
use switchward_state::session::ReplyToken;
use switchward_testkit::Rng;

/// Characters of one to four bytes, and those that JSON escapes.
const CHARACTERS: [char; 10] = ['a', 'Z', '0', '.', '"', '\\', '\n', 'é', '漢', '🦀'];

/// Draws values.
pub(crate) struct Draw(Rng);

impl Draw {
    /// Draws the values of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        self.0.pick(from).clone()
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.0.once_in(2)
    }

    /// A number of up to 64 bits, of each width as often as of any other.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.bits() >> self.0.below(64)
    }

    /// A number of up to 32 bits, of each width as often as of any other.
    pub(crate) fn small(&mut self) -> u32 {
        let shift = 32 + self.0.below(32);
        u32::try_from(self.0.bits() >> shift).unwrap()
    }

    pub(crate) fn time(&mut self) -> Time {
        Time(self.number())
    }

    pub(crate) fn bytes<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        std::array::from_fn(|_| self.0.bits().to_le_bytes()[0])
    }

    pub(crate) fn digest(&mut self) -> Digest {
        Digest(self.bytes())
    }

    pub(crate) fn tenant(&mut self) -> TenantId {
        TenantId(self.small())
    }

    pub(crate) fn session(&mut self) -> SessionId {
        SessionId(self.bytes())
    }

    pub(crate) fn run(&mut self) -> RunId {
        RunId(self.small())
    }

    pub(crate) fn open(&mut self) -> OpenId {
        OpenId(self.number())
    }

    pub(crate) fn bucket(&mut self) -> Bucket {
        Bucket::of(self.bytes())
    }

    pub(crate) fn option<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(one(self)) } else { None }
    }

    /// A list: empty, of up to three, or of 30.
    pub(crate) fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = if self.0.once_in(10) { 30 } else { self.0.below(4) };
        (0..length).map(|_| one(self)).collect()
    }

    /// A text: empty, of up to 30 characters, or of 300.
    pub(crate) fn text(&mut self) -> String {
        let length = if self.0.once_in(10) { 300 } else { self.0.below(31) };
        (0..length).map(|_| self.pick(&CHARACTERS)).collect()
    }

    pub(crate) fn texts(&mut self) -> Vec<String> {
        self.list(Self::text)
    }

    pub(crate) fn bounds(&mut self) -> Bounds {
        Bounds { after: self.option(|draw| draw.text().into_bytes()), size: self.small() }
    }

    pub(crate) fn mail_token(&mut self) -> MailToken {
        let way = self.pick(&[TokenUse::Reply, TokenUse::Page, TokenUse::Bounce]);
        let key = MailKey(self.bytes());
        key.token(way, self.tenant(), self.session(), self.open(), self.small(), &self.text())
    }

    pub(crate) fn reply_token(&mut self) -> ReplyToken {
        let tenant = self.pick(&["acme", "a", "web-shop-2"]);
        MailKey(self.bytes()).reply_token(tenant, self.session(), self.run(), self.small())
    }
}
