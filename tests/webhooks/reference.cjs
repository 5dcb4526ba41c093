// The reference library of Standard Webhooks in JavaScript and ours, against each other, as reference.py does for Python.
// WEBHOOK_LINES is the path of our example program, which reads one JSON object per line and signs or verifies it.

"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { randomBytes, randomInt } = require("node:crypto");
const { test } = require("node:test");
const { Webhook } = require("standardwebhooks");

const MESSAGES = 250;
const TOLERANCE_SECONDS = 300;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const [ID, TIMESTAMP, SIGNATURE] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

/** Our answers, one for each ask, in order. */
function ours(asks) {
  const input = asks.map((ask) => `${JSON.stringify(ask)}\n`).join("");
  const done = spawnSync(process.env.WEBHOOK_LINES, { input, encoding: "utf8", maxBuffer: 1 << 28, timeout: 120_000 });
  assert.equal(done.status, 0, `${done.error ?? ""}${done.stderr}`);
  const answers = done.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.equal(answers.length, asks.length);
  return answers;
}

const encoded = (bytes) => Buffer.from(bytes).toString("base64");
const secret = () => `whsec_${encoded(randomBytes(randomInt(24, 65)))}`;
const choice = (items) => items[randomInt(items.length)];
const now = Math.floor(Date.now() / 1000);

/** Some JSON. */
function value(depth) {
  switch (randomInt(depth > 0 ? 6 : 4)) {
    case 0:
      return choice([null, true, false]);
    case 1:
      return randomInt(2 ** 40) * choice([1, -1]);
    case 2:
      return Math.random();
    case 3:
      return Array.from({ length: randomInt(20) }, () => choice([..."abc .,\"\\/äß€語😀\n\u200e\u0000"])).join("");
    case 4:
      return Array.from({ length: randomInt(5) }, () => value(depth - 1));
    default:
      return Object.fromEntries(Array.from({ length: randomInt(5) }, (_, at) => [`k${at}`, value(depth - 1)]));
  }
}

/** A message to be signed. Bodies are JSON, because the library reads them. */
function draw() {
  const id = `msg_${Array.from({ length: randomInt(8, 40) }, () => choice(ALPHABET)).join("")}`;
  const body = Buffer.from(JSON.stringify(value(3), null, choice([0, 1])));
  return { id, body, secret: secret(), now: now + randomInt(-60, 61) };
}

const messages = Array.from({ length: MESSAGES }, draw);

function signedByTheirs({ id, body, secret, now }) {
  const signature = new Webhook(secret).sign(id, new Date(now * 1000), body.toString());
  return { [ID]: id, [TIMESTAMP]: String(now), [SIGNATURE]: signature };
}

function signAsk({ id, body, secret, now }, ...more) {
  return { do: "sign", secrets: [secret, ...more], id, now, body: encoded(body) };
}

function verifyAsk(secrets, headers, body, now) {
  return { do: "verify", kind: "standard-webhooks", secrets, headers: Object.entries(headers), now, body: encoded(body) };
}

/** A text with one character changed, removed or inserted. */
function changedTexts(text) {
  const at = randomInt(text.length);
  const other = choice([...ALPHABET].filter((letter) => letter !== text[at]));
  const [before, after] = [text.slice(0, at), text.slice(at + 1)];
  return [before + other + after, before + after, before + other + text[at] + after];
}

/** A body with one bit flipped, one byte removed or inserted. */
function changedBodies(body) {
  const at = randomInt(body.length);
  const flipped = Buffer.from(body);
  flipped[at] ^= 1 << randomInt(8);
  const [before, after] = [body.subarray(0, at), body.subarray(at)];
  return [flipped, Buffer.concat([before, after.subarray(1)]), Buffer.concat([before, Buffer.from("x"), after])];
}

/** Changes to a message on the way, as requests that must be refused. */
function mutants(message, strange) {
  const headers = signedByTheirs(message);
  const asks = [];
  const ask = (changes) => {
    const { secrets, also, body, at } = { secrets: [message.secret], also: {}, body: message.body, at: message.now, ...changes };
    asks.push(verifyAsk(secrets, { ...headers, ...also }, body, at));
  };
  for (const name of Object.keys(headers)) {
    const { [name]: text, ...rest } = headers;
    asks.push(verifyAsk([message.secret], rest, message.body, message.now));
    ask({ also: { [name.toUpperCase()]: text } });
    changedTexts(text).forEach((changed) => ask({ also: { [name]: changed } }));
  }
  changedBodies(message.body).forEach((body) => ask({ body }));
  ask({ also: { [SIGNATURE]: strange[SIGNATURE] } });
  ask({ also: { [SIGNATURE]: headers[SIGNATURE].replace("v1,", "v1a,") } });
  ask({ also: { [ID]: strange[ID] } });
  ask({ secrets: [secret()] });
  for (const shift of [1, -1]) {
    ask({ also: { [TIMESTAMP]: String(message.now + shift) } });
    ask({ at: message.now + shift * (TOLERANCE_SECONDS + randomInt(1, 1_000_000)) });
  }
  return asks;
}

test("theirs verifies what ours signs, while a secret is rotated too", () => {
  const others = messages.map(() => secret());
  const answers = ours(messages.map((message, at) => signAsk(message, others[at])));
  messages.forEach((message, at) => {
    const { headers } = answers[at];
    for (const known of [message.secret, others[at]]) {
      assert.deepEqual(new Webhook(known).verify(message.body, headers), JSON.parse(message.body));
    }
    assert.throws(() => new Webhook(secret()).verify(message.body, headers));
  });
});

test("ours signs as theirs does", () => {
  const answers = ours(messages.map((message) => signAsk(message)));
  messages.forEach((message, at) => assert.deepEqual(answers[at].headers, signedByTheirs(message)));
});

test("ours verifies what theirs signs", () => {
  const asks = messages.map((message) => {
    const late = message.now + randomInt(-TOLERANCE_SECONDS, TOLERANCE_SECONDS + 1);
    return verifyAsk([secret(), message.secret], signedByTheirs(message), message.body, late);
  });
  ours(asks).forEach((answer, at) => assert.deepEqual(answer, { id: messages[at].id }));
});

test("ours refuses what was changed", () => {
  const asks = messages.flatMap((message, at) => mutants(message, signedByTheirs(messages.at(at - 1))));
  ours(asks).forEach((answer, at) => assert.ok(answer.refused, JSON.stringify(asks[at])));
  console.log(`${asks.length} changed messages refused`);
  assert.ok(asks.length > 20 * MESSAGES);
});
