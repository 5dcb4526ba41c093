"""A client in Python, made from proto/ alone: it walks an agent through the deploy gate.

The stubs are generated here, as any user would generate them, and the server is the built program.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import grpc
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATED = pathlib.Path(os.environ["SWITCHWARD_GENERATED"])


def generate():
    """Stubs of every file of proto/, importable from GENERATED."""
    proto = ROOT / "proto"
    files = sorted(str(file.relative_to(proto)) for file in proto.glob("switchward/v1/*.proto"))
    well_known = pathlib.Path(protoc.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{proto}", f"-I{well_known}", f"--python_out={GENERATED}", f"--grpc_python_out={GENERATED}"]
    if protoc.main(arguments + files) != 0:
        raise RuntimeError("the stubs could not be generated")
    sys.path.insert(0, str(GENERATED))


generate()

from switchward.v1 import definition_pb2, definition_pb2_grpc  # noqa: E402
from switchward.v1 import gate_pb2, gate_pb2_grpc  # noqa: E402
from switchward.v1 import policy_pb2, policy_pb2_grpc  # noqa: E402
from switchward.v1 import session_pb2, session_pb2_grpc  # noqa: E402


class Server:
    """A development server in a folder of its own."""

    def __init__(self, folder):
        environment = dict(os.environ, SWITCHWARD_PROFILE=os.path.join(folder, "profile.json"))
        command = [os.environ["SWITCHWARD_BIN"], "dev", "--port", "0", "-o", "json", "--data-dir", os.path.join(folder, "data")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        ready = json.loads(self.process.stdout.readline())
        self.address = ready["address"].removeprefix("http://")
        self.agent, self.person = ready["agent_key"], ready["person_key"]
        config = (ROOT / "proto" / "service_config.json").read_text()
        self.channel = grpc.insecure_channel(self.address, options=[("grpc.service_config", config)])

    def stop(self):
        self.channel.close()
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()


def bearer(key):
    return [("authorization", f"Bearer {key}")]


def reason(error):
    """The ErrorInfo of a refused call."""
    for detail in rpc_status.from_call(error).details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            return info
    raise AssertionError(f"no ErrorInfo in {error}")


class DeployGate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.server = Server(folder.name)
        self.addCleanup(self.server.stop)
        channel = self.server.channel
        self.definitions = definition_pb2_grpc.DefinitionServiceStub(channel)
        self.sessions = session_pb2_grpc.SessionServiceStub(channel)
        self.policy = policy_pb2_grpc.PolicyServiceStub(channel)
        self.gates = gate_pb2_grpc.GateServiceStub(channel)
        self.agent, self.person = bearer(self.server.agent), bearer(self.server.person)

        source = (ROOT / "tests/gallery/deploy-gate/deploy-gate.json").read_bytes()
        file = definition_pb2.DefinitionFile(path="deploy-gate.json", content=source)
        deployed = self.definitions.DeployDefinition(
            definition_pb2.DeployDefinitionRequest(files=[file]), metadata=self.person
        )
        self.assertEqual(deployed.version.number, 1)

    def start(self, key):
        request = session_pb2.StartSessionRequest(definition="deploy-gate", session_id=key)
        return self.sessions.StartSession(request, metadata=self.agent).session

    def answer(self, name, answer, **more):
        request = session_pb2.AnswerCheckpointRequest(name=name, answer=answer, **more)
        return self.sessions.AnswerCheckpoint(request, metadata=self.agent).session

    def test_an_agent_is_walked_through_the_gate(self):
        session = self.start("release-42")
        self.assertEqual(list(session.at), ["env-check"])
        for answer in ["yes", "n/a", "yes"]:
            session = self.answer("release-42", answer)
        self.assertEqual(session.status, session_pb2.SESSION_STATUS_COMPLETED)

        watched = self.sessions.WatchSession(session_pb2.WatchSessionRequest(name="release-42"), metadata=self.agent)
        types = [update.event.type for update in watched if update.HasField("event")]
        self.assertEqual(types[0], "session.started")
        self.assertEqual(types[-1], "session.completed")

    def test_a_refusal_says_what_would_have_been_allowed(self):
        self.start("release-42")
        with self.assertRaises(grpc.RpcError) as refused:
            self.answer("release-42", "maybe")
        self.assertEqual(refused.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        info = reason(refused.exception)
        self.assertEqual((info.reason, info.domain), ("ANSWER_NOT_ALLOWED", "switchward.dev"))
        self.assertEqual(json.loads(info.metadata["allowed"]), ["yes", "no"])

    def test_a_person_approves_a_call_and_the_agent_cannot(self):
        self.start("release-42")
        ask = policy_pb2.AuthorizeToolCallRequest(
            session="release-42", capability="mcp:filesystem:delete_file", args=b'{"path":"/a"}'
        )
        asked = self.policy.AuthorizeToolCall(ask, metadata=self.agent)
        self.assertEqual(asked.decision, policy_pb2.TOOL_DECISION_ASK)

        approve = gate_pb2.DecideGateRequest(name=asked.gate, decision=gate_pb2.GATE_DECISION_APPROVE)
        with self.assertRaises(grpc.RpcError) as refused:
            self.gates.DecideGate(approve, metadata=self.agent)
        self.assertEqual(reason(refused.exception).reason, "ROLE_NOT_ALLOWED")
        self.gates.DecideGate(approve, metadata=self.person)

        self.assertEqual(self.policy.AuthorizeToolCall(ask, metadata=self.agent).decision, policy_pb2.TOOL_DECISION_ALLOW)
        self.assertEqual(self.policy.AuthorizeToolCall(ask, metadata=self.agent).decision, policy_pb2.TOOL_DECISION_ASK)

    def test_a_retry_is_one_transition(self):
        self.start("release-42")
        first = self.answer("release-42", "yes", request_id="answer-1")
        again = self.answer("release-42", "yes", request_id="answer-1")
        self.assertEqual(first.sequence, again.sequence)
        self.assertEqual(list(again.at), ["migration-check"])

    def test_reflection_finds_the_services(self):
        found = ProtoReflectionDescriptorDatabase(self.server.channel).get_services()
        for service in ["SessionService", "PolicyService", "GateService", "DefinitionService"]:
            self.assertIn(f"switchward.v1.{service}", found)


if __name__ == "__main__":
    unittest.main()
