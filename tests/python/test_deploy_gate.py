"""A Python client that uses only proto/: an agent passes the deploy gate.

Your own program needs the channel of Server, a key in the metadata of each call, and the stubs.
"""

import json
import tempfile
import unittest

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from support import ROOT, Server, bearer, detail, reason
from switchward.v1 import api_key_pb2, api_key_pb2_grpc
from switchward.v1 import definition_pb2, definition_pb2_grpc
from switchward.v1 import gate_pb2, gate_pb2_grpc
from switchward.v1 import policy_pb2, policy_pb2_grpc
from switchward.v1 import session_pb2, session_pb2_grpc
from switchward.v1 import tenant_pb2, tenant_pb2_grpc


class Keyed(grpc.StreamStreamClientInterceptor):
    """Adds a key to the calls of a library that accepts no metadata."""

    def __init__(self, metadata):
        self.metadata = metadata

    def intercept_stream_stream(self, continuation, details, requests):
        return continuation(details._replace(metadata=self.metadata), requests)


class DeployGate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.server = Server(folder.name)
        self.addCleanup(self.server.stop)
        channel = self.server.connect()
        self.definitions = definition_pb2_grpc.DefinitionServiceStub(channel)
        self.sessions = session_pb2_grpc.SessionServiceStub(channel)
        self.policy = policy_pb2_grpc.PolicyServiceStub(channel)
        self.gates = gate_pb2_grpc.GateServiceStub(channel)
        self.agent, self.person = bearer(self.server.agent), bearer(self.server.person)
        self.deploy(self.person)

    def second_tenant(self):
        """A tenant beside the server's first one, with the deploy gate: its agent and its approver."""
        channel = self.server.channel
        request = tenant_pb2.CreateTenantRequest(tenant_id="globex")
        created = tenant_pb2_grpc.TenantServiceStub(channel).CreateTenant(request, metadata=self.person)
        admin = bearer(created.admin_secret)
        keys = api_key_pb2_grpc.ApiKeyServiceStub(channel)
        roles = [api_key_pb2.KEY_ROLE_AGENT, api_key_pb2.KEY_ROLE_APPROVER]
        wanted = [api_key_pb2.CreateApiKeyRequest(role=role) for role in roles]
        agent, approver = [bearer(keys.CreateApiKey(request, metadata=admin).secret) for request in wanted]
        self.deploy(admin)
        return agent, approver

    def deploy(self, admin):
        source = (ROOT / "tests/gallery/deploy-gate/deploy-gate.json").read_bytes()
        file = definition_pb2.DefinitionFile(path="deploy-gate.json", content=source)
        request = definition_pb2.DeployDefinitionRequest(files=[file])
        deployed = self.definitions.DeployDefinition(request, metadata=admin)
        self.assertEqual(deployed.version.number, 1)

    def start(self, key, agent=None, **more):
        request = session_pb2.StartSessionRequest(definition="deploy-gate", session_id=key, **more)
        return self.sessions.StartSession(request, metadata=agent or self.agent).session

    def answer(self, name, answer, agent=None, **more):
        request = session_pb2.AnswerCheckpointRequest(name=name, answer=answer, **more)
        return self.sessions.AnswerCheckpoint(request, metadata=agent or self.agent).session

    def history(self, name, agent=None):
        request = session_pb2.ListSessionEventsRequest(name=name, page_size=1000)
        return list(self.sessions.ListSessionEvents(request, metadata=agent or self.agent).events)

    def unknown(self, method, request, metadata):
        """Makes a call that is refused with NOT_FOUND; returns the message."""
        with self.assertRaises(grpc.RpcError) as refused:
            method(request, metadata=metadata)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(reason(refused.exception).reason, "NOT_FOUND")
        return refused.exception.details()

    def test_an_agent_is_walked_through_the_gate(self):
        session = self.start("release-42")
        self.assertEqual(list(session.at), ["env-check"])
        self.assertEqual([option.key for option in session.checkpoint.answers], ["yes", "no"])
        bash = policy_pb2.AuthorizeToolCallRequest(session="release-42", capability="bash")
        allowed = self.policy.AuthorizeToolCall(bash, metadata=self.agent)
        self.assertEqual(allowed.decision, policy_pb2.TOOL_DECISION_ALLOW)
        self.assertEqual(allowed.remaining.calls, 49)
        for answer in ["yes", "n/a", "yes"]:
            session = self.answer("release-42", answer)
        self.assertEqual(session.status, session_pb2.SESSION_STATUS_COMPLETED)

        watch = session_pb2.WatchSessionRequest(name="release-42")
        watched = self.sessions.WatchSession(watch, metadata=self.agent)
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

    def test_a_refused_definition_names_every_line_that_is_wrong(self):
        source = b'{"name": "Bad Name", "initial": "nowhere", "states": {"a": {"answers": {"yes": {"next": "b"}}}}}'
        file = definition_pb2.DefinitionFile(path="bad.json", content=source)
        with self.assertRaises(grpc.RpcError) as refused:
            self.definitions.DeployDefinition(
                definition_pb2.DeployDefinitionRequest(files=[file]), metadata=self.person
            )
        self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(reason(refused.exception).reason, "DEFINITION_INVALID")
        violations = detail(refused.exception, error_details_pb2.BadRequest).field_violations
        self.assertGreaterEqual(len(violations), 3)
        self.assertTrue(all(violation.field.startswith("bad.json:1:") for violation in violations), violations)

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

        used = self.policy.AuthorizeToolCall(ask, metadata=self.agent)
        self.assertEqual((used.decision, used.grant_used), (policy_pb2.TOOL_DECISION_ALLOW, True))
        again = self.policy.AuthorizeToolCall(ask, metadata=self.agent)
        self.assertEqual(again.decision, policy_pb2.TOOL_DECISION_ASK)

    def test_a_retry_is_one_transition(self):
        self.start("release-42")
        first = self.answer("release-42", "yes", request_id="answer-1")
        history = self.history("release-42")
        again = self.answer("release-42", "yes", request_id="answer-1")
        self.assertEqual(again, first)
        self.assertEqual(list(again.at), ["migration-check"])
        with self.assertRaises(grpc.RpcError) as refused:
            self.answer("release-42", "no", request_id="answer-1")
        self.assertEqual(reason(refused.exception).reason, "REQUEST_ID_REUSED")
        self.assertEqual(self.history("release-42"), history)

    def test_two_tenants_play_the_gate_with_the_same_keys_and_do_not_see_each_other(self):
        agents, people = zip((self.agent, self.person), self.second_tenant())
        names, gates = [], []
        for agent in agents:
            session = self.start("release-42", agent, request_id="start")
            self.assertEqual(list(session.at), ["env-check"])
            names.append(session.name)
            bash = policy_pb2.AuthorizeToolCallRequest(session="release-42", capability="bash", call_id="call-1")
            self.assertEqual(self.policy.AuthorizeToolCall(bash, metadata=agent).remaining.calls, 49)
            delete = policy_pb2.AuthorizeToolCallRequest(session="release-42", capability="mcp:filesystem:delete_file")
            gates.append(self.policy.AuthorizeToolCall(delete, metadata=agent).gate)
        self.assertEqual([name.split("/")[1] for name in names], ["dev", "globex"])
        self.assertNotEqual(*[name.split("/")[-1] for name in names])
        approve = gate_pb2.DecideGateRequest(name=gates[1], decision=gate_pb2.GATE_DECISION_APPROVE)
        self.gates.DecideGate(approve, metadata=people[1])
        decisions = [self.policy.AuthorizeToolCall(delete, metadata=agent).decision for agent in agents]
        self.assertEqual(decisions, [policy_pb2.TOOL_DECISION_ASK, policy_pb2.TOOL_DECISION_ALLOW])

        self.answer("release-42", "yes", agents[1], request_id="answer-1")
        blocked = self.answer("release-42", "no", agents[0], request_id="answer-1")
        self.assertEqual(blocked.status, session_pb2.SESSION_STATUS_BLOCKED)
        for answer in ["n/a", "yes"]:
            session = self.answer("release-42", answer, agents[1])
        self.assertEqual(session.status, session_pb2.SESSION_STATUS_COMPLETED)
        for agent, name, last in zip(agents, names, ["session.blocked", "session.completed"]):
            self.assertEqual(self.history("release-42", agent)[-1].type, last)
            listed = self.sessions.ListSessions(session_pb2.ListSessionsRequest(), metadata=agent).sessions
            self.assertEqual([session.name for session in listed], [name])

    def test_the_ids_of_another_tenant_are_answered_like_ids_that_never_existed(self):
        agents, people = zip((self.agent, self.person), self.second_tenant())
        delete = policy_pb2.AuthorizeToolCallRequest(session="release-42", capability="mcp:filesystem:delete_file")
        names = [self.start("release-42", agent).name for agent in agents]
        gates = [self.policy.AuthorizeToolCall(delete, metadata=agent).gate for agent in agents]
        histories = [self.history("release-42", agent) for agent in agents]
        for mine, theirs in [(0, 1), (1, 0)]:
            answers = []
            for name in [names[theirs].split("/")[-1], "ses_00000000000000000000000000"]:
                requests = {
                    self.sessions.GetSession: session_pb2.GetSessionRequest(name=name),
                    self.sessions.AnswerCheckpoint: session_pb2.AnswerCheckpointRequest(name=name, answer="yes"),
                    self.sessions.ListSessionEvents: session_pb2.ListSessionEventsRequest(name=name),
                    self.policy.AuthorizeToolCall: policy_pb2.AuthorizeToolCallRequest(session=name, capability="bash"),
                }
                said = [self.unknown(method, request, agents[mine]) for method, request in requests.items()]
                answers.append([text.replace(name, "it") for text in said])
            self.assertEqual(*answers)
            approve = gate_pb2.DecideGateRequest(name=gates[theirs], decision=gate_pb2.GATE_DECISION_APPROVE)
            self.unknown(self.gates.DecideGate, approve, people[mine])
            listed = self.gates.ListGates(gate_pb2.ListGatesRequest(), metadata=people[mine]).gates
            self.assertEqual([gate.name for gate in listed], [gates[mine]])
        self.assertEqual([self.history("release-42", agent) for agent in agents], histories)

    def test_reflection_finds_the_services_for_every_key(self):
        with self.assertRaises(grpc.RpcError) as refused:
            ProtoReflectionDescriptorDatabase(self.server.channel).get_services()
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        keyed = grpc.intercept_channel(self.server.channel, Keyed(self.agent))
        reflected = ProtoReflectionDescriptorDatabase(keyed)
        found = reflected.get_services()
        names = ["ApiKey", "Clock", "Definition", "Gate", "Policy", "Session", "Tenant", "Worker"]
        self.assertLessEqual({f"switchward.v1.{name}Service" for name in names}, set(found))
        described = DescriptorPool(reflected).FindServiceByName("switchward.v1.SessionService")
        self.assertEqual(
            [method.name for method in described.methods],
            [method.name for method in session_pb2.DESCRIPTOR.services_by_name["SessionService"].methods],
        )


if __name__ == "__main__":
    unittest.main()
