"""Approvals by mail over real servers: a person's reply decides, and nothing else does.

SWITCHWARD_BIN is the path of the built program.
"""

import email
import email.policy
import email.utils
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.request

from servers import PASSWORD, Servers, answers, free_port, until

DEPLOY_GATE = pathlib.Path(__file__).resolve().parents[1] / "gallery/deploy-gate/deploy-gate.json"
KEY = "swk_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

GATE = """name: {name}
states:
  - {{name: ask, type: approval, approvers: [{approver}]}}
  - {{name: go, type: conversation}}
  - {{name: stop, type: conversation}}
transitions:
  - {{from: ask, port: approved, to: go}}
  - {{from: ask, port: rejected, to: stop}}
"""


class Switchward:
    """A server that sends by Postfix, reads by IMAP from Dovecot, listens for LMTP, and asks unbound."""

    def __init__(self, servers):
        self.servers, self.port, self.metrics = servers, free_port(), free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        port, at = servers.port, servers.folder
        servers.write("admin.key", KEY, 0o600)
        servers.write("password", PASSWORD, 0o600)
        self.config = servers.write(
            "switchward.toml",
            f"""data_dir = "{at}/data"
keys_file = "{at}/switchward-keys"
listen = "127.0.0.1:{self.port}"
shards = 1
[metrics]
listen = "127.0.0.1:{self.metrics}"
[[tenants]]
name = "acme"
admin_key_file = "{at}/admin.key"
[redis]
url = "redis://127.0.0.1:{port['redis']}"
[mail]
from = "Acme approvals <approvals@acme.example>"
reply = "r+{{token}}@reply.acme.example"
pages = "{self.address}"
[mail.smtp]
host = "localhost"
port = {port['smtp']}
user = "switchward"
password_file = "{at}/password"
hello = "sw.acme.example"
[mail.dkim]
domain = "acme.example"
selector = "sw1"
key_file = "{at}/acme.pem"
[mail.in]
dns = ["127.0.0.1:{port['dns']}"]
lmtp = "127.0.0.1:{port['switchward_lmtp']}"
[mail.in.imap]
host = "localhost"
port = {port['imaps']}
user = "r@reply.acme.example"
password_file = "{at}/password"
done_folder = "Done"
quarantine_folder = "Quarantine"
""",
        )
        # The system trusts only this certificate, so that TLS is checked as usual.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(at), "SSL_CERT_FILE": str(at / "tls.crt")}
        self.environment |= {"SWITCHWARD_ADDRESS": self.address, "SWITCHWARD_API_KEY": KEY}
        self.run("secrets", "create", at / "switchward-keys")

    def start(self):
        command = [os.environ["SWITCHWARD_BIN"], "server", "--config", self.config]
        log = open(self.servers.folder / "switchward.log", "ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        log.close()

        def is_ready():
            if self.process.poll() is not None:
                raise AssertionError(self.servers.log("switchward"))
            return answers(self.port)

        until("switchward is ready", is_ready)
        return self

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=30)

    def run(self, *words, code=0):
        command = [os.environ["SWITCHWARD_BIN"], *map(str, words), "-o", "json"]
        ended = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=60)
        assert ended.returncode == code, f"{words}: {ended.returncode} {ended.stdout} {ended.stderr}"
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def state(self, key):
        return self.run("get", key)[0]["session"]["at"][0]

    def events(self, key, kind):
        """The session's events of a type."""
        listed = self.run("list", "events", key)
        return [event for page in listed for event in page["events"] if event["type"] == kind]

    def counted(self, name):
        """The value of a metric; 0 if it is missing."""
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=30).read().decode()
        found = re.search(rf"^{re.escape(name)} (\d+)$", text, re.M)
        return int(found.group(1)) if found else 0

    def came(self, outcome, why=""):
        return self.counted(f'switchward_mail_in_total{{outcome="{outcome}",why="{why}"}}')

    def asked(self, key, approver):
        """Starts a session whose gate asks this person."""
        name = f"gate-{approver.split('@')[0]}"
        definition = self.servers.write(f"{name}.yaml", GATE.format(name=name, approver=approver))
        self.run("deploy", definition)
        self.run("start", name, "--key", key)


def read(raw):
    return email.message_from_bytes(raw, policy=email.policy.default)


def text_of(mail):
    return mail.get_body(("plain",)).get_content()


def reply(mail, sender, text):
    """The reply that a person's mail program sends."""
    answer = email.message.EmailMessage(policy=email.policy.SMTP)
    answer["From"], answer["To"] = f"A Person <{sender}>", mail["Reply-To"]
    answer["Subject"] = f"Re: {mail['Subject']}"
    answer["Date"] = email.utils.formatdate()
    answer["Message-ID"] = email.utils.make_msgid(domain=sender.split("@")[1])
    answer["In-Reply-To"] = mail["Message-ID"]
    answer["References"] = f"{mail['References']} {mail['Message-ID']}"
    quoted = "".join(f"> {line}\n" for line in text_of(mail).splitlines())
    answer.set_content(f"{text}\n\nOn Monday, Acme approvals wrote:\n{quoted}")
    return answer


class ByMail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="switchward-mail-"))
        cls.servers = Servers(cls.folder)
        cls.addClassCleanup(cls.servers.stop)
        cls.servers.start()
        cls.server = Switchward(cls.servers).start()
        cls.addClassCleanup(cls.end)

    @classmethod
    def end(cls):
        code = cls.server.stop()
        if code != 0:
            raise AssertionError(f"{code}: {cls.servers.log('switchward')}")

    def mails(self, person, of, folder="INBOX"):
        """The mails of a person that belong to a session's key or thread."""
        with self.servers.mailbox(person) as mailbox:
            return [mail for mail in map(read, mailbox.all(folder)) if of in mail.as_string()]

    def request(self, person, key):
        """The mail that asks this person about the session with this key; mails of other sessions may still arrive."""
        names = re.compile(rf"^\s*Session\s+{re.escape(key)}\s*$", re.M)
        asks = lambda mail: mail["Reply-To"] and names.search(text_of(mail))
        waiting = lambda: [mail for mail in self.mails(person, "") if asks(mail)]
        return until(f"a mail asks {person}", waiting)[0]

    def session(self, key, approver):
        self.server.asked(key, approver)
        return self.request(approver, key)

    def answers(self, mail, person):
        """The texts of the other mails to a person in the thread of a mail."""
        thread = mail["References"].split()[0]
        others = [it for it in self.mails(person, thread.strip("<>")) if it["Message-ID"] != mail["Message-ID"]]
        return [text_of(it) for it in others]

    def ask(self, key, approver):
        """Makes an agent's call that this person must approve; returns the call and the mail."""
        server = self.server
        server.run("deploy", DEPLOY_GATE)
        server.run("start", "deploy-gate", "--key", key, "--notify", approver)
        call = ["authorize", key, "mcp:filesystem:delete_file", "--args", '{"path": "/srv/old"}']
        server.run(*call, code=7)
        return call, self.request(approver, key)

    def test_a_gate_is_decided_by_a_reply_and_by_nothing_before_it(self):
        server, servers, lead = self.server, self.servers, "lead@corp.example"
        call, mail = self.ask("by-mail", lead)
        with servers.mailbox(lead) as mailbox:
            raw = [raw for raw in mailbox.all() if mail["Message-ID"].encode() in raw]
        self.assertEqual(servers.why_not_ours(raw[0]), "", "the mail that asks is signed by us")
        decided = lambda: server.events("by-mail", "approval.decided")

        page = re.search(r"Decision page: (\S+)", text_of(mail)).group(1)
        for method in ("GET", "HEAD", "GET"):
            asked = urllib.request.Request(page, method=method)
            self.assertEqual(urllib.request.urlopen(asked, timeout=30).status, 200)
        self.assertEqual(decided(), [], "a scanner that follows links decides nothing")

        servers.send(reply(mail, lead, "looks risky?"), lead)
        answers = until("the question is answered", lambda: self.answers(mail, lead))
        self.assertIn("It decides nothing", answers[0])
        recorded = server.events("by-mail", "reply.recorded")
        self.assertEqual([event["data"]["authenticated"] for event in recorded], ["true"])
        self.assertEqual(server.events("by-mail", "approval.discussed")[0]["data"]["by"], lead)
        self.assertEqual(decided(), [], "a question leaves the gate open")

        servers.send(reply(mail, lead, "Approved, thanks!"), lead)
        until("the reply decides", decided)
        server.run(*call)
        answers = until("the decision is acknowledged in the thread", lambda: self.answers(mail, lead)[1:])
        self.assertIn("Your decision is recorded: approve.", answers[0])
        thread = mail["References"].split()[0]
        moved = lambda: len(self.mails("r@reply.acme.example", thread, "Done")) == 2
        until("processed replies are moved", moved)

    def test_a_reply_that_nobody_signed_gets_the_page(self):
        server, dana = self.server, "dana@corp.example"
        _, mail = self.ask("unsigned", dana)
        self.servers.send(reply(mail, dana, "Approved"), dana, by="smtp")
        answers = until("the reply is answered", lambda: self.answers(mail, dana))
        self.assertIn("could not be verified", answers[0])
        self.assertIn(f"{server.address}/a/", answers[0])
        self.assertEqual(server.events("unsigned", "reply.recorded")[0]["data"]["authenticated"], "false")
        self.assertEqual(server.events("unsigned", "approval.decided"), [], "anybody could have written that")

    def test_an_answer_of_a_machine_is_none(self):
        server = self.server
        before = server.came("ignored", "auto_reply")
        self.session("away", "away@corp.example")
        until("the answer of Dovecot's vacation comes in", lambda: server.came("ignored", "auto_reply") > before)
        self.assertEqual(server.state("away"), "ask")
        self.assertEqual(server.events("away", "reply.recorded"), [])

    def test_what_cannot_be_delivered_is_reported(self):
        server = self.server
        server.asked("nobody", "nobody@corp.example")
        bounces = until("the bounce comes in", lambda: server.events("nobody", "approval.undeliverable"))
        self.assertEqual(bounces[0]["data"]["to"], "nobody@corp.example")
        self.assertIn("5.1.1", bounces[0]["data"]["message"])

    def test_a_reply_comes_by_lmtp(self):
        mail = self.session("by-lmtp", "dana@corp.example")
        self.servers.send(reply(mail, "dana@corp.example", "reject\n\nToo dear."), "dana@corp.example", by="by_lmtp")
        until("the reply decides", lambda: self.server.state("by-lmtp") == "stop")
        record = self.server.events("by-lmtp", "reply.recorded")
        self.assertEqual(record[0]["data"]["authenticated"], "true", record)

    def test_the_mailbox_is_read_again_after_a_failure_and_each_message_once(self):
        server, servers = self.server, self.servers
        mail = self.session("again", "lead@corp.example")
        failures = server.counted("switchward_mail_imap_failures_total")
        servers.end("dovecot")
        until("the failure is seen", lambda: server.counted("switchward_mail_imap_failures_total") > failures)
        self.assertEqual(server.counted("switchward_mail_imap_connected"), 0)
        servers.start_dovecot()
        servers.send(reply(mail, "lead@corp.example", "what is the risk?"), "lead@corp.example")
        until("the reply is read", lambda: server.events("again", "reply.recorded"), patience=60)
        self.assertEqual(server.counted("switchward_mail_imap_connected"), 1)
        thread, box = mail["References"].split()[0], "r@reply.acme.example"
        until("the reply is moved", lambda: self.mails(box, thread, "Done"))
        with servers.mailbox(box) as mailbox:
            raw = [raw for raw in mailbox.all("Done") if thread.encode() in raw]
            mailbox.put(raw[0])
            mailbox.put(b"no message at all\r\n")
        until("the same reply is read again", lambda: len(self.mails(box, thread, "Done")) == 2)
        until("the broken message is moved to the quarantine", lambda: self.mails(box, "no message", "Quarantine"))
        self.assertEqual(len(server.events("again", "reply.recorded")), 1)
        self.assertEqual(self.mails(box, ""), [], "nothing is left in the inbox")

    def test_a_doctor_finds_that_it_works_and_what_does_not(self):
        server = self.server
        report = server.run("doctor", "--config", server.config)[0]
        poor = [check for check in report["checks"] if check["status"] != "ok"]
        # The server runs, and so its port is taken; a test's folder may lie on any file system, and the mail servers read
        # the files in it as users of their own.
        machine = ("port", "data", "space", "files")
        self.assertEqual([check["check"] for check in poor if check["check"] not in machine], [])
        self.assertTrue(report["ok"])
        self.assertEqual(
            {"config", "tenants", "data", "space", "memory", "port", "files", "keys", "clock", "redis"}
            | {"smtp", "imap", "dkim", "mx", "spf", "dmarc"},
            {check["check"] for check in report["checks"]},
        )
        status, said, _ = self.forged(server.config)
        self.assertEqual(status, "ok", said)
        self.assertIn("no host is trusted", said)
        text = server.config.read_text()
        for what, old, new in [
            ("smtp", 'user = "switchward"', 'user = "stranger"'),
            ("imap", 'user = "r@reply.acme.example"', 'user = "x@reply.acme.example"'),
            ("dkim", f"{self.servers.folder}/acme.pem", f"{self.servers.folder}/corp.pem"),
            ("dkim", 'selector = "sw1"', 'selector = "sw2"'),
            ("redis", f":{self.servers.port['redis']}", f":{free_port()}"),
            ("keys", "switchward-keys", "admin.key"),
            ("config", "[redis]", "[reddis]"),
            ("tenants", "admin_key_file = \"", "admin_key_file = \"/nowhere"),
        ]:
            wrong = self.servers.write("wrong.toml", text.replace(old, new, 1))
            report = server.run("doctor", "--config", wrong, code=5)[0]
            self.assertEqual([check["check"] for check in report["checks"] if check["status"] == "fail"], [what], report)

    def forged(self, config, code=0):
        """The result of `doctor --send` about the forged field: its status, message and advice."""
        report = self.server.run("doctor", "--config", config, "--send", code=code)[0]
        (found,) = (check for check in report["checks"] if check["check"] == "forged")
        return found["status"], found["message"], found.get("advice", "")

    def test_a_doctor_finds_whether_a_forged_field_comes_through(self):
        text = self.server.config.read_text()
        trusting = text.replace("[mail.in]\n", "[mail.in]\ntrusted_hosts = [\"mx.acme.example\", \"mail.corp.example\"]\n")
        config = self.servers.write("trusting.toml", trusting)
        status, said, advice = self.forged(config)
        self.assertEqual(status, "warn", said)
        self.assertIn("below its Received field they are not trusted", said)
        self.assertIn("remove the host from mail.in.trusted_hosts", advice)
        # No Received field above it shows any more where it came from.
        self.servers.header_checks("/^Received:/ IGNORE")
        self.addCleanup(self.servers.header_checks, "")
        status, said, advice = self.forged(config, code=5)
        self.assertEqual(status, "fail", said)
        self.assertIn("anybody can approve", advice)
        self.servers.header_checks("/^Authentication-Results: *m[a-z]*\\.[a-z]*\\.example/ IGNORE")
        status, said, _ = self.forged(config)
        self.assertEqual(status, "ok", said)
        self.assertIn("removes", said)
        # Only one process can listen for LMTP, and the server does.
        by_lmtp = re.sub(r"(?s)\[mail\.in\.imap\].*", "", trusting)
        status, said, _ = self.forged(self.servers.write("lmtp.toml", by_lmtp))
        self.assertEqual(status, "warn", said)
        self.assertIn("is in use", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
