"""The reference library of Standard Webhooks in Python and ours, against each other.

Each verifies what the other signs, and ours refuses every message that was changed on the way. WEBHOOK_LINES is the
path of our example program `webhook-lines`, which reads one JSON object per line and signs or verifies it.
"""

import base64
import datetime
import json
import os
import random
import subprocess
import time
import unittest

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

MESSAGES = 250
TOLERANCE_SECONDS = 300
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def ours(asks):
    """Our answers, one for each ask, in order."""
    lines = "".join(json.dumps(ask) + "\n" for ask in asks)
    done = subprocess.run(
        [os.environ["WEBHOOK_LINES"]], input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asks)
    return answers


def encoded(body):
    return base64.b64encode(body).decode()


class Message:
    """A message to be signed, drawn at random. Bodies are JSON, because the library reads them."""

    def __init__(self, dice, now):
        self.now = now + dice.randint(-60, 60)
        self.secret = secret(dice)
        self.id = "msg_" + "".join(dice.choices(ALPHABET, k=dice.randint(8, 40)))
        indent = dice.choice([None, 1])
        ascii_only = dice.random() < 0.5
        self.body = json.dumps(value(dice, 3), indent=indent, ensure_ascii=ascii_only).encode()

    def sign_ask(self, *more_secrets):
        secrets = [self.secret, *more_secrets]
        return {"do": "sign", "secrets": secrets, "id": self.id, "now": self.now, "body": encoded(self.body)}

    def signed_by_theirs(self):
        at = datetime.datetime.fromtimestamp(self.now, datetime.timezone.utc)
        signature = Webhook(self.secret).sign(self.id, at, self.body.decode())
        return {ID: self.id, TIMESTAMP: str(self.now), SIGNATURE: signature}


def secret(dice):
    return "whsec_" + encoded(dice.randbytes(dice.randint(24, 64)))


def value(dice, depth):
    """Some JSON."""
    kind = dice.randint(0, 6 if depth else 4)
    if kind == 0:
        return dice.choice([None, True, False])
    if kind == 1:
        return dice.randint(-(2**53), 2**53)
    if kind == 2:
        return dice.random()
    if kind <= 4:
        return "".join(dice.choices('abc .,"\\/äß€語😀\n\u200e\u0000', k=dice.randint(0, 20)))
    items = [value(dice, depth - 1) for _ in range(dice.randint(0, 5))]
    return items if kind == 5 else {str(at): item for at, item in enumerate(items)}


def verify_ask(secrets, headers, body, now):
    return {
        "do": "verify",
        "kind": "standard-webhooks",
        "secrets": secrets,
        "headers": headers,
        "now": now,
        "body": encoded(body),
    }


def changed_texts(dice, text):
    """A text with one character changed, removed or inserted, or two exchanged."""
    at = dice.randrange(len(text))
    other = dice.choice([letter for letter in ALPHABET if letter != text[at]])
    changed = [text[:at] + other + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + other + text[at:]]
    pairs = [at for at in range(len(text) - 1) if text[at] != text[at + 1]]
    if pairs:
        at = dice.choice(pairs)
        changed.append(text[:at] + text[at + 1] + text[at] + text[at + 2 :])
    return changed


def changed_bodies(dice, body):
    """A body with a bit flipped, a byte removed or inserted, two exchanged, nothing left, or other spaces in it."""
    at = dice.randrange(len(body))
    flipped = bytes([body[at] ^ (1 << dice.randrange(8))])
    changed = [body[:at] + flipped + body[at + 1 :], body[:at] + body[at + 1 :], body[:at] + b"x" + body[at:]]
    changed += [body + b"\n", b" " + body, b""]
    pairs = [at for at in range(len(body) - 1) if body[at] != body[at + 1]]
    if pairs:
        at = dice.choice(pairs)
        changed.append(body[:at] + body[at + 1 : at + 2] + body[at : at + 1] + body[at + 2 :])
    again = json.dumps(json.loads(body), separators=(" ,", " :")).encode()
    return changed + ([again] if again != body else [])


def mutants(dice, message, headers, strange):
    """All changes to a message on the way, as requests that must be refused, each with its name."""
    pairs = list(headers.items())
    for name, text in pairs:
        rest = [pair for pair in pairs if pair[0] != name]
        yield f"without {name}", [message.secret], rest, message.body, message.now
        yield f"with {name} twice", [message.secret], [*pairs, (name.upper(), text)], message.body, message.now
        yield f"with an empty {name}", [message.secret], [*rest, (name, "")], message.body, message.now
        for changed in changed_texts(dice, text):
            yield f"with {name} {changed}", [message.secret], [*rest, (name, changed)], message.body, message.now
    for changed in changed_bodies(dice, message.body):
        yield f"with the body {changed!r}", [message.secret], pairs, changed, message.now

    def with_header(name, text):
        return [pair for pair in pairs if pair[0] != name] + [(name, text)]

    code = headers[SIGNATURE].removeprefix("v1,")
    for text in [f"v1a,{code}", f"v2,{code}", f",{code}", code, f"v1,{code}=", f"v1,{code.rstrip('=')}"]:
        yield f"signed as {text}", [message.secret], with_header(SIGNATURE, text), message.body, message.now
    yield "with another's signature", [message.secret], with_header(SIGNATURE, strange[SIGNATURE]), message.body, message.now
    yield "with another's id", [message.secret], with_header(ID, strange[ID]), message.body, message.now
    yield "under another secret", [secret(dice)], pairs, message.body, message.now
    for shift in [1, -1, dice.randint(2, 200), -dice.randint(2, 200)]:
        moved = with_header(TIMESTAMP, str(message.now + shift))
        yield f"signed {shift} s later", [message.secret], moved, message.body, message.now
    for beyond in [1, dice.randint(2, 10**6)]:
        for late in [message.now + TOLERANCE_SECONDS + beyond, message.now - TOLERANCE_SECONDS - beyond]:
            yield f"verified at {late}", [message.secret], pairs, message.body, late


class Reference(unittest.TestCase):
    def setUp(self):
        self.dice = random.Random("webhooks")
        self.messages = [Message(self.dice, int(time.time())) for _ in range(MESSAGES)]

    def test_theirs_verifies_what_ours_signs(self):
        rotated = [secret(self.dice) for _ in self.messages]
        asks = [message.sign_ask(other) for message, other in zip(self.messages, rotated)]
        for message, other, answer in zip(self.messages, rotated, ours(asks), strict=True):
            headers = answer["headers"]
            for known in [message.secret, other]:
                self.assertEqual(Webhook(known).verify(message.body, headers), json.loads(message.body))
            with self.assertRaises(WebhookVerificationError):
                Webhook(secret(self.dice)).verify(message.body, headers)

    def test_ours_signs_as_theirs_does(self):
        answers = ours([message.sign_ask() for message in self.messages])
        for message, answer in zip(self.messages, answers, strict=True):
            self.assertEqual(answer["headers"], message.signed_by_theirs())

    def test_ours_verifies_what_theirs_signs(self):
        asks = []
        for message in self.messages:
            secrets = [secret(self.dice), message.secret]
            headers = list(message.signed_by_theirs().items())
            asks.append(verify_ask(secrets, headers, message.body, message.now + self.dice.randint(-300, 300)))
        for message, answer in zip(self.messages, ours(asks), strict=True):
            self.assertEqual(answer, {"id": message.id})

    def test_ours_refuses_what_was_changed(self):
        names, asks = [], []
        for at, message in enumerate(self.messages):
            strange = self.messages[at - 1].signed_by_theirs()
            for name, *parts in mutants(self.dice, message, message.signed_by_theirs(), strange):
                names.append(name)
                asks.append(verify_ask(*parts))
        words = {}
        for name, ask, answer in zip(names, asks, ours(asks), strict=True):
            self.assertIn("refused", answer, f"{name}: {ask}")
            words[answer["refused"]] = words.get(answer["refused"], 0) + 1
        print(f"{len(asks)} changed messages refused: {words}")
        self.assertGreater(len(asks), 40 * MESSAGES)
        for word in ["HEADER_MISSING", "HEADER_MALFORMED", "TIMESTAMP_MALFORMED", "TIMESTAMP_TOO_OLD"]:
            self.assertIn(word, words)
        for word in ["TIMESTAMP_TOO_NEW", "SIGNATURE_MISMATCH"]:
            self.assertIn(word, words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
