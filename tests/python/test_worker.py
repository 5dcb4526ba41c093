"""The worker of docs/workers.md, unchanged: it works on refunds and is killed at the worst moments."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc
from support import GENERATED, ROOT, Server, bearer, commands_of, reason
from switchward.v1 import clock_pb2, clock_pb2_grpc
from switchward.v1 import definition_pb2, definition_pb2_grpc
from switchward.v1 import session_pb2, session_pb2_grpc
from switchward.v1 import worker_pb2, worker_pb2_grpc

# How long anything may take, seconds.
PATIENCE = 60
# The lease that the page's worker asks for, in seconds. A clock that went further would end the next lease as well.
LEASE = 30
COMPLETE = "/switchward.v1.WorkerService/CompleteWork"
POLL = "/switchward.v1.WorkerService/PollWork"


def program():
    """The program that docs/workers.md shows."""
    page = (ROOT / "docs" / "workers.md").read_text()
    (text,) = re.findall(r"^```python worker\.py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return text


class Worker:
    """The page's worker as a process, with the address of its server."""

    def __init__(self, address, key):
        more = {"SWITCHWARD_ADDRESS": address, "SWITCHWARD_API_KEY": key, "PYTHONPATH": str(GENERATED)}
        self.process = subprocess.Popen([sys.executable, "-c", program()], env={**os.environ, **more}, cwd=ROOT)

    def kill(self):
        """Ends the worker with SIGKILL, so that it sends nothing more."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE)


class Commands:
    """The commands of a page in a shell, with the packages of this Python, in a folder that has what the repository has."""

    def __init__(self, folder, commands, **variables):
        here = pathlib.Path(folder)
        (here / "proto").symlink_to(ROOT / "proto")
        (here / "worker.py").write_text(program())
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "HOME": folder, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
        shell = ["sh", "-e", "-c", commands]
        self.process = subprocess.Popen(
            shell, cwd=here, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def output(self):
        """What they print; they must end by themselves."""
        printed, _ = self.process.communicate(timeout=PATIENCE)
        if self.process.returncode != 0:
            raise AssertionError(f"exit code {self.process.returncode}: {printed}")
        return printed

    def kill(self):
        """Ends them with all that they have started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()


class Between(grpc.GenericRpcHandler):
    """A proxy between a worker and the server. It records the calls, fails those that are to fail, and can hold back a
    CompleteWork from the server, or the server's answer from the worker. Such a call lasts until its worker is gone."""

    def __init__(self, channel):
        self.channel = channel
        self.keeps = None
        self.kept = threading.Event()
        self.fails = {}
        self.failed = threading.Event()
        self.items, self.results = [], []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=8), handlers=[self])
        self.address = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.pass_on(details, request, context))

    def pass_on(self, details, request, context):
        codes = self.fails.get(details.method)
        if codes:
            self.failed.set()
            context.abort(codes.pop(0), "not now")
        if details.method == COMPLETE:
            self.results.append(request)
            if self.keeps == "request":
                self.keep(context)
        metadata = [(key, value) for key, value in details.invocation_metadata if key == "authorization"]
        call = self.channel.unary_unary(details.method).future(request, metadata=metadata, timeout=PATIENCE)
        context.add_callback(call.cancel)
        try:
            reply = call.result()
        except grpc.RpcError as refused:
            context.abort(refused.code(), refused.details())
        if details.method == POLL:
            self.items += worker_pb2.PollWorkResponse.FromString(reply).items
        if details.method == COMPLETE and self.keeps == "answer":
            self.keep(context)
        return reply

    def keep(self, context):
        gone = threading.Event()
        if context.add_callback(gone.set):
            self.kept.set()
            gone.wait(PATIENCE)
        context.abort(grpc.StatusCode.CANCELLED, "kept")

    def stop(self):
        self.server.stop(grace=None).wait(PATIENCE)


class AWorker(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.server = Server(folder.name, "--clock", "manual")
        self.addCleanup(self.server.stop)
        channel = self.server.connect()
        self.sessions = session_pb2_grpc.SessionServiceStub(channel)
        self.work = worker_pb2_grpc.WorkerServiceStub(channel)
        self.clock = clock_pb2_grpc.ClockServiceStub(channel)
        self.agent, self.person = bearer(self.server.agent), bearer(self.server.person)
        self.between = Between(channel)
        self.addCleanup(self.between.stop)
        self.deploy("refund.yaml", (ROOT / "tests/gallery/refund/refund.yaml").read_bytes())

    def deploy(self, path, source):
        file = definition_pb2.DefinitionFile(path=path, content=source)
        definitions = definition_pb2_grpc.DefinitionServiceStub(self.server.channel)
        definitions.DeployDefinition(definition_pb2.DeployDefinitionRequest(files=[file]), metadata=self.person)

    def start_worker(self, address=None):
        worker = Worker(address or self.server.address, self.server.worker)
        self.addCleanup(worker.kill)
        return worker

    def start_commands(self, page, **variables):
        """Starts the commands of a page, with the address and the worker's key of this server."""
        (commands,) = commands_of(page)
        commands = commands.replace("http://127.0.0.1:7400", self.server.address)
        commands = commands.replace("swk_...", self.server.worker)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        started = Commands(folder.name, commands, **variables)
        self.addCleanup(started.kill)
        return started

    def start(self, key, definition="refund"):
        request = session_pb2.StartSessionRequest(
            definition=definition, session_id=key, contact="sam@example.com"
        )
        self.sessions.StartSession(request, metadata=self.agent)

    def say(self, key, text):
        """The user says something, and the agent's turn is over: a worker is needed."""
        self.sessions.PostMessage(session_pb2.PostMessageRequest(name=key, text=text), metadata=self.person)
        self.sessions.EndTurn(session_pb2.EndTurnRequest(name=key), metadata=self.agent)

    def session(self, key):
        return self.sessions.GetSession(session_pb2.GetSessionRequest(name=key), metadata=self.agent).session

    def history(self, key):
        request = session_pb2.ListSessionEventsRequest(name=key, page_size=1000)
        events = self.sessions.ListSessionEvents(request, metadata=self.agent).events
        return [event for event in events if event.type.startswith("work.")]

    def types(self, key):
        return [event.type.removeprefix("work.") for event in self.history(key)]

    def watched(self, key):
        """Everything that happens in a session, to its end."""
        watch = session_pb2.WatchSessionRequest(name=key)
        watched = self.sessions.WatchSession(watch, metadata=self.agent, timeout=PATIENCE)
        return [update.event for update in watched]

    def wait_until_done(self, key, times=1):
        """Waits until this many pieces of a session's work are done; returns the session."""
        watch = session_pb2.WatchSessionRequest(name=key)
        watched = self.sessions.WatchSession(watch, metadata=self.agent, timeout=PATIENCE)
        for update in watched:
            times -= update.event.type == "work.done"
            if times == 0:
                watched.cancel()
                return self.session(key)
        raise AssertionError(f"{key} ended before its work was done")

    def advance(self, seconds):
        request = clock_pb2.AdvanceClockRequest(duration={"seconds": seconds})
        self.clock.AdvanceClock(request, metadata=self.person)

    def killed_worker(self, key, keeps):
        """Starts a session whose worker has done the work, and was killed before it received the result of the call."""
        self.between.keeps = keeps
        worker = self.start_worker(self.between.address)
        self.start(key)
        self.say(key, "Order A-17, 250 dollars")
        self.assertTrue(self.between.kept.wait(PATIENCE))
        worker.kill()
        self.between.keeps = None

    def test_the_program_is_short(self):
        self.assertLess(len(program().splitlines()), 40)

    def test_the_commands_of_the_page_generate_the_stubs_and_start_the_worker(self):
        self.start_commands("workers.md")
        self.start("refund-1")
        self.say("refund-1", "Order A-17, 250 dollars")
        self.assertEqual(list(self.wait_until_done("refund-1").at), ["review"])

    def test_a_generic_client_reads_a_session(self):
        self.start("release-42")
        printed = self.start_commands("api.md", KEY=self.server.agent).output()
        self.assertEqual(json.loads(printed)["session"]["sessionId"], "release-42")

    def test_every_block_that_names_this_step_is_run(self):
        pages = sorted(path.name for path in (ROOT / "docs").glob("*.md") if "contributing" not in path.name)
        self.assertEqual([page for page in pages if commands_of(page)], ["api.md", "workers.md"])

    def test_a_refund_goes_through_with_what_the_worker_has_read(self):
        self.start_worker()
        self.start("refund-1")
        self.say("refund-1", "It was broken: 250 dollars!")
        self.assertEqual(list(self.wait_until_done("refund-1").at), ["collect"])
        self.say("refund-1", "Order A-17, 250 dollars")
        session = self.wait_until_done("refund-1", times=2)
        self.assertEqual(list(session.at), ["review"])
        self.assertEqual((session.data["order"], session.data["amount"]), ("A-17", 250))
        self.assertIn("Confirm order A-17 with the customer.", session.instructions)
        self.say("refund-1", "Yes, exactly.")
        self.assertEqual(list(self.session("refund-1").at), ["settle"])
        self.advance(24 * 3600)
        (mail,) = [event for event in self.watched("refund-1") if event.type == "effect.queued"]
        self.assertEqual(mail.data["subject"], "Your refund for A-17")
        self.assertEqual(self.session("refund-1").status, session_pb2.SESSION_STATUS_COMPLETED)

    def test_what_the_worker_cannot_do_is_failed_and_reported(self):
        self.start_worker()
        source = (ROOT / "tests/gallery/refund/refund.yaml").read_text()
        source = source.replace("name: refund", "name: paint").replace("name: order", "name: colour")
        self.deploy("paint.yaml", source.replace("{gathered.order}", "{gathered.colour}").encode())
        self.start("paint-1", "paint")
        self.say("paint-1", "Red, 250 dollars")
        self.assertEqual(list(self.wait_until_done("paint-1").at), ["collect"])
        self.assertIn("colour", self.history("paint-1")[-1].data["wrong"])
        self.start("refund-1")
        self.say("refund-1", "Order A-17, 250 dollars")
        self.assertEqual(list(self.wait_until_done("refund-1").at), ["review"])

    def test_a_worker_goes_on_where_its_calls_fail(self):
        self.between.fails = {COMPLETE: [grpc.StatusCode.ABORTED]}
        self.start_worker(self.between.address)
        self.start("refund-1")
        self.say("refund-1", "Order A-17, 250 dollars")
        self.assertTrue(self.between.failed.wait(PATIENCE))
        self.start("refund-2")
        self.say("refund-2", "Order B-2, 3 dollars")
        self.assertEqual(list(self.wait_until_done("refund-2").at), ["settle"], "the worker takes other work")
        self.assertEqual(list(self.session("refund-1").at), ["read"])
        self.advance(LEASE)
        self.assertEqual(list(self.wait_until_done("refund-1").at), ["review"])
        self.assertEqual(self.types("refund-1"), ["opened", "leased", "released", "leased", "done"])

        # More polls in a row than are retried.
        self.between.fails[POLL] = [grpc.StatusCode.UNAVAILABLE] * 9
        for key in ["refund-3", "refund-4"]:
            self.start(key)
            self.say(key, "Order C-3, 4 dollars")
            self.assertEqual(list(self.wait_until_done(key).at), ["settle"])
        self.assertEqual(self.between.fails, {POLL: [], COMPLETE: []})

    def test_what_a_killed_worker_had_taken_is_done_once_by_another(self):
        self.killed_worker("refund-1", keeps="request")
        self.assertEqual(list(self.session("refund-1").at), ["read"])
        poll = worker_pb2.PollWorkRequest()
        self.assertEqual(len(self.work.PollWork(poll, metadata=self.person).items), 0, "no other worker gets it yet")

        self.start_worker(self.between.address)
        self.advance(LEASE)
        session = self.wait_until_done("refund-1")
        self.assertEqual(list(session.at), ["review"])
        self.assertEqual((session.data["order"], session.data["amount"]), ("A-17", 250))
        self.assertEqual(self.types("refund-1"), ["opened", "leased", "released", "leased", "done"])
        first, second = self.between.items
        self.assertEqual((first.name, first.attempt), (second.name, second.attempt))
        self.assertEqual(second.attempt, 1)
        self.assertEqual(first.idempotency_key, second.idempotency_key)
        self.assertNotEqual(first.lease_token, second.lease_token)

        # The late result of the killed worker changes nothing.
        late = worker_pb2.CompleteWorkRequest.FromString(self.between.results[0])
        with self.assertRaises(grpc.RpcError) as refused:
            self.work.CompleteWork(late, metadata=self.person)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.ABORTED)
        self.assertEqual(reason(refused.exception).reason, "LEASE_LOST")
        self.assertEqual(self.session("refund-1"), session)

    def test_what_a_killed_worker_had_handed_in_is_not_done_again(self):
        self.killed_worker("refund-1", keeps="answer")
        session = self.session("refund-1")
        self.assertEqual(list(session.at), ["review"])
        self.start_worker(self.between.address)
        self.advance(LEASE)
        self.start("refund-2")
        self.say("refund-2", "Order B-2, 3 dollars")
        self.assertEqual(list(self.wait_until_done("refund-2").at), ["settle"], "another worker continues")
        self.assertEqual(self.types("refund-1"), ["opened", "leased", "done"])
        self.assertEqual([item.session for item in self.between.items].count(session.name), 1)

        # Repeating the call returns the answer that the killed worker did not receive.
        again = worker_pb2.CompleteWorkRequest.FromString(self.between.results[0])
        reply = self.work.CompleteWork(again, metadata=bearer(self.server.worker))
        self.assertTrue(reply.accepted)
        self.assertEqual(self.session("refund-1"), session)


if __name__ == "__main__":
    unittest.main()
