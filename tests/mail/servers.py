"""Real servers of mail on high ports of this machine, in a folder of their own: unbound, OpenDKIM, Dovecot, Postfix and
Redis. Nothing outside the folder is read or written but the programs themselves.

Who sends and receives:

    switchward --SMTP, TLS, login--> Postfix --LMTP--> Dovecot: the mailboxes of corp.example
    a person --SMTP--> Postfix, OpenDKIM signs --LMTP--> Dovecot: r@reply.acme.example --IMAP--> switchward
                                               or --LMTP--> switchward itself

They are started and ended here. Root starts Postfix and Dovecot, which then drop their privileges.
"""

import base64
import imaplib
import os
import pathlib
import random
import re
import shutil
import signal
import smtplib
import socket
import ssl
import subprocess
import time

PATIENCE = 30
"""How long anything may take, seconds."""

PASSWORD = "correct-horse"
PEOPLE = ["lead@corp.example", "dana@corp.example", "away@corp.example", "r@reply.acme.example", "approvals@acme.example"]


def until(what, condition, patience=PATIENCE):
    """Waits until the condition returns something true, and returns it."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.05)


def free_port():
    """A free port below the ephemeral ports of Linux, so that no outgoing connection takes it."""
    while True:
        port = random.randrange(10_000, 32_000)
        if not answers(port):
            return port


def answers(port):
    """Whether somebody listens on a port."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Servers:
    """All of them, started."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        # Servers without privileges must be able to enter.
        self.folder.chmod(0o755)
        self.running = {}
        names = "dns dkim imaps lmtp auth smtp signing switchward_lmtp by_lmtp redis".split()
        self.port = {name: free_port() for name in names}
        self.certificate()
        self.keys()

    def start(self):
        self.start_dns()
        self.start_dkim()
        self.start_dovecot()
        self.start_postfix()
        self.start_redis()
        return self

    def stop(self):
        for name in list(self.running)[::-1]:
            self.end(name)

    def run(self, name, command, ready):
        log = open(self.folder / f"{name}.log", "ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        log.close()
        self.running[name] = process

        def is_ready():
            if process.poll() is not None:
                raise AssertionError(f"{name} ended: {self.log(name)}")
            return ready()

        until(f"{name} is ready", is_ready)

    def end(self, name):
        """Ends a server and all that it has started."""
        process = self.running.pop(name)
        if name == "postfix":
            # Its master has left the session that it was started in.
            subprocess.run(["postfix", "-c", self.folder / "postfix", "stop"], capture_output=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass
            try:
                process.wait(timeout=10)
                break
            except subprocess.TimeoutExpired:
                continue

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def certificate(self):
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            + ["-days", "30", "-subj", "/CN=localhost", "-addext", names]
            + ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=digitalSignature"]
            + ["-keyout", self.folder / "tls.key", "-out", self.folder / "tls.crt"],
            check=True,
            capture_output=True,
        )

    def keys(self):
        """A key of the company that approves, and one of ours: both RSA, as PKCS #8 PEM, which is what OpenSSL writes."""
        self.public = {}
        for name in ("corp", "acme"):
            key = self.folder / f"{name}.pem"
            command = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key]
            subprocess.run(command, check=True, capture_output=True)
            key.chmod(0o600)
            command = ["openssl", "rsa", "-in", key, "-pubout", "-outform", "DER"]
            public = subprocess.run(command, check=True, capture_output=True).stdout
            self.public[name] = base64.b64encode(public).decode()

    def start_dns(self):
        def text(name, value):
            # A string of a record has at most 255 bytes; a record can have several strings.
            parts = " ".join(f'"{value[at:at + 200]}"' for at in range(0, len(value), 200))
            return f"  local-data: '{name} 60 IN TXT {parts}'\n"

        records = "".join(
            [
                text("mail._domainkey.corp.example.", f"v=DKIM1; k=rsa; p={self.public['corp']}"),
                text("corp.example.", "v=spf1 -all"),
                text("_dmarc.corp.example.", "v=DMARC1; p=reject; adkim=s; aspf=s"),
                text("sw1._domainkey.acme.example.", f"v=DKIM1; k=rsa; p={self.public['acme']}"),
                text("acme.example.", "v=spf1 ip4:127.0.0.1 -all"),
                text("_dmarc.acme.example.", "v=DMARC1; p=quarantine"),
                text("reply.acme.example.", "v=spf1 ip4:127.0.0.1 -all"),
                "  local-data: 'reply.acme.example. 60 IN MX 10 mx.acme.example.'\n",
                "  local-data: 'mx.acme.example. 60 IN A 127.0.0.1'\n",
            ]
        )
        port = self.port["dns"]
        config = self.write(
            "unbound.conf",
            f"server:\n  interface: 127.0.0.1@{port}\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n"
            f"  directory: \"{self.folder}\"\n  pidfile: \"\"\n  use-syslog: no\n  module-config: \"iterator\"\n"
            "  verbosity: 1\n  num-threads: 1\n  outgoing-range: 64\n  num-queries-per-thread: 32\n"
            f"  local-zone: \"example.\" static\n{records}remote-control:\n  control-enable: no\n",
        )
        self.run("unbound", ["unbound", "-d", "-c", config], lambda: answers(port))

    def start_dkim(self):
        port = self.port["dkim"]
        config = self.write(
            "opendkim.conf",
            f"Syslog no\nMode s\nSocket inet:{port}@127.0.0.1\nDomain corp.example\nSelector mail\n"
            f"KeyFile {self.folder}/corp.pem\nCanonicalization relaxed/simple\nInternalHosts 127.0.0.1\n"
            # By default it does not sign Message-ID, and such a reply could be sent again under another one.
            "SignHeaders *,+Message-ID\nOversignHeaders From\nRequireSafeKeys no\nBackground no\n",
        )
        self.run("opendkim", ["opendkim", "-f", "-x", config], lambda: answers(port))

    def start_dovecot(self):
        at = self.folder / "dovecot"
        people = "".join(f"{name}:{{PLAIN}}{PASSWORD}::::::\n" for name in [*PEOPLE, "switchward"])
        users = self.write("users", people)
        mails = self.folder / "mails"
        mails.mkdir(exist_ok=True)
        shutil.chown(mails, "nobody", "nogroup")
        vacation = 'require ["vacation"];\nvacation :days 1 :addresses ["away@corp.example"] "Approved by nobody: I am away.";\n'
        self.write("vacation.sieve", vacation)
        sieve = self.folder / "sieve"
        sieve.mkdir(exist_ok=True)
        shutil.copy(self.folder / "vacation.sieve", sieve / "away@corp.example.sieve")
        shutil.chown(sieve, "nobody", "nogroup")
        port = self.port
        config = self.write(
            "dovecot.conf",
            f"""protocols = imap lmtp
listen = 127.0.0.1
base_dir = {at}/run
state_dir = {at}/state
log_path = {self.folder}/dovecot-mail.log
auth_mechanisms = plain login
auth_username_format = %Lu
first_valid_uid = 1
mail_location = maildir:{mails}/%u
recipient_delimiter = +
submission_host = 127.0.0.1:{port['smtp']}
submission_ssl = no
postmaster_address = postmaster@corp.example
hostname = mail.corp.example
ssl = required
ssl_cert = <{self.folder}/tls.crt
ssl_key = <{self.folder}/tls.key
passdb {{
  driver = passwd-file
  args = {users}
}}
userdb {{
  driver = passwd-file
  args = {users}
  override_fields = uid=nobody gid=nogroup home={mails}/%u
}}
service imap-login {{
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {port['imaps']}
    ssl = yes
  }}
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {port['lmtp']}
  }}
}}
service auth {{
  inet_listener {{
    address = 127.0.0.1
    port = {port['auth']}
  }}
}}
protocol lmtp {{
  mail_plugins = sieve
}}
plugin {{
  sieve = file:{sieve};active={sieve}/%u.sieve
}}
""",
        )
        # Compiled ones are written beside them.
        (sieve / "away@corp.example.sieve").chmod(0o644)
        self.run("dovecot", ["dovecot", "-F", "-c", config], lambda: answers(port["imaps"]) and answers(port["lmtp"]))

    def start_postfix(self):
        at = self.folder / "postfix"
        port = self.port
        for name in ("queue", "data"):
            (at / name).mkdir(parents=True, exist_ok=True)
        shutil.chown(at / "data", "postfix", "postfix")
        self.write(
            "postfix/main.cf",
            f"""compatibility_level = 3.6
queue_directory = {at}/queue
data_directory = {at}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
meta_directory = /etc/postfix
mail_owner = postfix
setgid_group = postdrop
maillog_file = {at}/mail.log
maillog_file_prefixes = {self.folder}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.acme.example
mydestination =
mynetworks =
alias_maps =
alias_database =
local_recipient_maps =
relay_domains = corp.example, acme.example, reply.acme.example
transport_maps = texthash:{at}/transport
recipient_delimiter = +
disable_dns_lookups = yes
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_tls_security_level = may
smtpd_tls_auth_only = yes
smtpd_tls_cert_file = {self.folder}/tls.crt
smtpd_tls_key_file = {self.folder}/tls.key
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{port['auth']}
smtpd_sasl_auth_enable = yes
smtpd_client_connection_rate_limit = 0
milter_default_action = tempfail
header_checks = regexp:{at}/fields
""",
        )
        self.write(
            "postfix/transport",
            f"away@corp.example old:inet:127.0.0.1:{port['lmtp']}\n"
            + "".join(f"{name} lmtp:inet:127.0.0.1:{port['lmtp']}\n" for name in ("corp.example", "acme.example"))
            + f"reply.acme.example lmtp:inet:127.0.0.1:{port['lmtp']}\n",
        )
        self.write("postfix/fields", "")
        # An old gateway that removes the fields which mark automatic mail.
        self.write("postfix/old", "/^(Auto-Submitted|X-Auto-Response-Suppress|Precedence):/ IGNORE\n")
        milter = f"smtpd_milters=inet:127.0.0.1:{port['dkim']}"
        self.write(
            "postfix/master.cf",
            f"""127.0.0.1:{port['smtp']} inet n - n - - smtpd
127.0.0.1:{port['signing']} inet n - n - - smtpd
  -o {milter}
127.0.0.1:{port['by_lmtp']} inet n - n - - smtpd
  -o {milter}
  -o content_filter=lmtp:inet:127.0.0.1:{port["switchward_lmtp"]}
old unix - - n - - lmtp
  -o lmtp_header_checks=regexp:{at}/old
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
  -o max_use=1
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
""",
        )
        self.run("postfix", ["postfix", "-c", at, "start-fg"], lambda: all(map(answers, (port["smtp"], port["signing"]))))

    def header_checks(self, rule):
        """Sets what Postfix does with header fields of later mail; a new process handles each mail."""
        self.write("postfix/fields", f"{rule}\n" if rule else "")

    def start_redis(self):
        port = self.port["redis"]
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
        self.run("redis", command, lambda: answers(port))

    # What people do with them.

    def send(self, message, sender, by="signing"):
        """Sends a person's mail: signed on the way, unsigned, or directly to the server."""
        recipients = [message["To"]]
        with smtplib.SMTP("127.0.0.1", self.port[by], timeout=PATIENCE) as smtp:
            smtp.send_message(message, sender, recipients)

    def mailbox(self, person):
        return Mailbox(self, person)

    def why_not_ours(self, raw):
        """Why OpenDKIM does not accept our signature of a mail; empty if it does."""
        key = f"sw1._domainkey.acme.example v=DKIM1; k=rsa; p={self.public['acme']}\n"
        config = f"Mode v\nSyslog no\nTestPublicKeys {self.write('keys.txt', key)}\n"
        mail = self.folder / "signed.eml"
        mail.write_bytes(raw)
        command = ["opendkim", "-x", self.write("verify.conf", config), "-t", mail]
        verified = subprocess.run(command, capture_output=True, text=True)
        said = verified.stdout + verified.stderr
        return "" if re.search(r"verification \(s=sw1, d=acme\.example, .*\) succeeded", said) else said


class Mailbox:
    """A person's mailbox, as their mail program sees it."""

    def __init__(self, servers, person):
        trusted = ssl.create_default_context(cafile=servers.folder / "tls.crt")
        self.imap = imaplib.IMAP4_SSL("localhost", servers.port["imaps"], ssl_context=trusted, timeout=PATIENCE)
        self.imap.login(person, PASSWORD)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.imap.shutdown()

    def all(self, folder="INBOX"):
        """The bytes of all messages of a folder; none if the folder does not exist."""
        if self.imap.select(folder, readonly=True)[0] != "OK":
            return []
        _, found = self.imap.search(None, "ALL")
        return [self.imap.fetch(number, "(BODY.PEEK[])")[1][0][1] for number in found[0].split()]

    def put(self, raw, folder="INBOX"):
        status, why = self.imap.append(folder, "", None, raw)
        assert status == "OK", why
