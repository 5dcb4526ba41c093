//! The Lua scripts. A script is atomic, and is loaded again if the server lost it.
//!
//! In all but those of the counters and the answers, `KEYS[1]` is the stream, `KEYS[2]` the counter of the bytes in it, `KEYS[3]` a hash of the ids in it. Counter and hash are
//! beside the stream, so that a flush removes all, and begin again whenever the stream is empty, so that no error in them
//! lasts. The hash has for each id until when it is taken, in milliseconds since 1970 by the server's clock, and after a
//! space the entry that holds it. So it has no more ids than the stream has entries.

use ::redis::Script;

/// `ARGV`: envelopes_max, bytes_max, id_known, tenant, id, body. Returns 1 if it was accepted, 0 if the stream is full, 2 if
/// the stream holds the id already. XADD is the first write, so that nothing is written when the memory is full.
const PUBLISH: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local held = redis.call('XLEN', KEYS[1])
local bytes = 0
if held > 0 then
    bytes = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
    local known = redis.call('HGET', KEYS[3], ARGV[5])
    local taken = known and tonumber(string.match(known, '^%d+'))
    if taken and taken > now then return 2 end
end
bytes = bytes + string.len(ARGV[6])
if held >= tonumber(ARGV[1]) or bytes > tonumber(ARGV[2]) then return 0 end
local entry = redis.call('XADD', KEYS[1], '*', 'tenant', ARGV[4], 'id', ARGV[5], 'body', ARGV[6])
redis.call('SET', KEYS[2], bytes)
if held == 0 then redis.call('DEL', KEYS[3]) end
redis.call('HSET', KEYS[3], ARGV[5], string.format('%.0f %s', now + tonumber(ARGV[3]), entry))
return 1
";

/// `ARGV`: envelopes_max, bytes_max. Returns 1 if there is capacity, 0 if the stream is full.
const READY: &str = r"
local held = redis.call('XLEN', KEYS[1])
if held == 0 then return 1 end
local bytes = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
if held >= tonumber(ARGV[1]) or bytes >= tonumber(ARGV[2]) then return 0 end
return 1
";

/// `ARGV`: group, consumer, idle, max. Returns rows of id, count, fields and the server's time in milliseconds: first
/// redeliveries, then new entries. A missing group is created at the beginning of the stream, as all its entries are
/// unacknowledged.
const TAKE: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local due = redis.pcall('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', ARGV[4])
if due.err then
    if not string.find(due.err, 'NOGROUP', 1, true) then return due end
    redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
    due = {}
end
local ids, counts, taken = {}, {}, {}
for i = 1, #due do
    ids[i] = due[i][1]
    counts[due[i][1]] = due[i][4]
end
if #ids > 0 then
    local claimed = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], unpack(ids))
    for i = 1, #claimed do
        local entry = claimed[i]
        if entry then taken[#taken + 1] = { entry[1], counts[entry[1]] + 1, entry[2], now } end
    end
end
local capacity = tonumber(ARGV[4]) - #taken
if capacity > 0 then
    local new = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', capacity, 'STREAMS', KEYS[1], '>')
    local entries = new and new[1][2] or {}
    for i = 1, #entries do taken[#taken + 1] = { entries[i][1], 1, entries[i][2], now } end
end
return taken
";

/// `ARGV`: group, then for each entry its id, its bytes and its envelope's id. Deletes acknowledged entries, so that the length of the stream counts the
/// unacknowledged ones. Keeps an entry that was not delivered: ids restart after a flush, so an old id may be that of a new
/// entry. Frees the envelope's id, unless a newer entry holds it. XACK comes first: a script that has begun to write may continue when the memory is full.
const ACK: &str = r"
local freed = 0
for i = 2, #ARGV, 3 do
    if redis.call('XACK', KEYS[1], ARGV[1], ARGV[i]) == 1 and redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
        freed = freed + tonumber(ARGV[i + 1])
        local known = redis.call('HGET', KEYS[3], ARGV[i + 2])
        if known and string.match(known, ' (.*)$') == ARGV[i] then
            redis.call('HDEL', KEYS[3], ARGV[i + 2])
        end
    end
end
if redis.call('XLEN', KEYS[1]) == 0 then
    redis.call('DEL', KEYS[2], KEYS[3])
elseif freed > 0 and redis.call('DECRBY', KEYS[2], freed) < 0 then
    redis.call('DEL', KEYS[2])
end
return freed
";

/// `ARGV`: group, consumer, idle, id_known, then for each entry its id and its envelope's id. Sets the idle time of each
/// delivery that the consumer holds: 0 keeps it, the bus's idle time releases it. With an `id_known` above 0 the envelope's
/// id is taken for as long from now on. XCLAIM comes first, as XACK above. The hash is `KEYS[2]` here.
const AGE: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local longer = tonumber(ARGV[4])
for i = 5, #ARGV, 2 do
    local held = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
    if held.err then
        if string.find(held.err, 'NOGROUP', 1, true) then return 0 end
        return held
    end
    if #held == 1 then
        redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'JUSTID')
        local known = longer > 0 and redis.call('HGET', KEYS[2], ARGV[i + 1])
        if known and string.match(known, ' (.*)$') == ARGV[i] then
            redis.call('HSET', KEYS[2], ARGV[i + 1], string.format('%.0f %s', now + longer, ARGV[i]))
        end
    end
end
return 1
";

/// `KEYS` are counters, each a set. `ARGV`: id, how long they are kept, then for each the most ids. Returns 0 if the id was
/// counted in all of them, else the position of the first one that has as many ids as it may have.
const COUNT: &str = r"
for i = 1, #KEYS do
    if redis.call('SISMEMBER', KEYS[i], ARGV[1]) == 0
        and redis.call('SCARD', KEYS[i]) >= tonumber(ARGV[i + 2]) then return i end
end
for i = 1, #KEYS do
    redis.call('SADD', KEYS[i], ARGV[1])
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
return 0
";

/// `KEYS` are counters. `ARGV`: id. Removes it from all of them.
const UNCOUNT: &str = r"
for i = 1, #KEYS do redis.call('SREM', KEYS[i], ARGV[1]) end
return 1
";

/// `KEYS[1]` is the list of the answers under a name. `ARGV`: answer, how long it is kept.
const ANSWER: &str = r"
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
";

/// `ARGV`: group, idle. Deletes the consumers that have been idle for longer and hold nothing; deleting one would lose the
/// deliveries that it holds.
const SWEEP: &str = r"
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return 0 end
local gone = 0
for i = 1, #consumers do
    local of = {}
    for j = 1, #consumers[i], 2 do of[consumers[i][j]] = consumers[i][j + 1] end
    if of['pending'] == 0 and of['idle'] > tonumber(ARGV[2]) then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], of['name'])
        gone = gone + 1
    end
end
return gone
";

/// The scripts with their digests.
pub(super) struct Scripts {
    pub(super) publish: Script,
    pub(super) ready: Script,
    pub(super) take: Script,
    pub(super) ack: Script,
    pub(super) age: Script,
    pub(super) count: Script,
    pub(super) uncount: Script,
    pub(super) sweep: Script,
    pub(super) answer: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            publish: Script::new(PUBLISH),
            ready: Script::new(READY),
            take: Script::new(TAKE),
            ack: Script::new(ACK),
            age: Script::new(AGE),
            count: Script::new(COUNT),
            uncount: Script::new(UNCOUNT),
            sweep: Script::new(SWEEP),
            answer: Script::new(ANSWER),
        }
    }
}
