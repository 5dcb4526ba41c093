use bytes::Bytes;
use std::{fs, io::ErrorKind, ops::Bound, os::unix::fs::PermissionsExt as _, path::Path, sync::mpsc};
use switchward_store::{
    DataDir, Done, GroupId, LogOptions, LogRecord, Record, SegmentLog, State, StateOptions, StateStore,
    StoreError,
};

pub(crate) const GROUP: GroupId = GroupId(7);

/// A row of text; a parked one does not stay in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) parked: bool,
}

impl Record for Text {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.parked));
        out.extend_from_slice(self.text.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (parked, text) = bytes.split_first().ok_or("it is empty")?;
        let text = String::from_utf8(text.to_vec()).map_err(|error| error.to_string())?;
        Ok(Text { text, parked: *parked == 1 })
    }

    fn weight(&self) -> usize {
        self.text.len()
    }

    fn cache(&self) -> bool {
        !self.parked
    }
}

pub(crate) fn text(text: &str) -> Option<Text> {
    Some(Text { text: text.to_owned(), parked: false })
}

/// Applies an entry of these rows.
pub(crate) fn apply<R: Record, K: AsRef<[u8]>>(
    state: &State<R>,
    rows: impl IntoIterator<Item = (K, Option<R>)>,
    applied: impl Into<Bytes>,
) {
    state.apply(rows.into_iter().map(|(key, row)| (key.as_ref().into(), row)), applied);
}

pub(crate) fn open_state(path: &Path) -> State<Text> {
    open_state_with(path, &StateOptions::default())
}

pub(crate) fn open_state_with(path: &Path, options: &StateOptions) -> State<Text> {
    let dir = DataDir::open(path).unwrap();
    StateStore::open(&dir).unwrap().group(GROUP, options).unwrap()
}

/// Keys and texts of all rows.
pub(crate) fn rows(state: &State<Text>) -> Vec<(String, String)> {
    range(state, Bound::Unbounded, Bound::Unbounded, usize::MAX)
}

pub(crate) fn range(
    state: &State<Text>,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    limit: usize,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let visit = |key: &[u8], row: &Text| {
        found.push((String::from_utf8(key.to_vec()).unwrap(), row.text.clone()));
        std::ops::ControlFlow::Continue(())
    };
    state.scan(from, to, limit, visit).unwrap();
    found
}

pub(crate) fn open_log(path: &Path) -> SegmentLog {
    let on_fatal = Box::new(|error: &StoreError| panic!("{error}"));
    SegmentLog::open(&DataDir::open(path).unwrap(), LogOptions { on_fatal, sync_fault: None }).unwrap()
}

/// A callback and where its result arrives.
pub(crate) fn receipt() -> (Done, mpsc::Receiver<Result<(), StoreError>>) {
    let (sender, receiver) = mpsc::channel();
    (Box::new(move |result| drop(sender.send(result))), receiver)
}

/// Makes a write and waits until it is durable.
pub(crate) fn durably(write: impl FnOnce(Done)) -> Result<(), StoreError> {
    let (done, durable) = receipt();
    write(done);
    durable.recv().unwrap()
}

pub(crate) fn record(index: u64, bytes: impl Into<Vec<u8>>) -> LogRecord {
    LogRecord { index, bytes: bytes.into().into() }
}

/// Copies a folder, as it would be found if the process were killed now. The newest files come first: the log removes its
/// oldest ones meanwhile.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    let mut entries: Vec<_> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries.into_iter().rev() {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
            continue;
        }
        match fs::copy(&entry, target) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
}
