"""Shared code of the Python tests: stubs of proto/, generated as any user would generate them, and a server."""

import json
import os
import pathlib
import re
import subprocess
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATED = pathlib.Path(os.environ["SWITCHWARD_GENERATED"])


def generate():
    """Stubs of every file of proto/, importable from GENERATED."""
    proto = ROOT / "proto"
    files = sorted(str(file.relative_to(proto)) for file in proto.glob("switchward/v1/*.proto"))
    well_known = pathlib.Path(protoc.__file__).parent / "_proto"
    folders = [f"-I{proto}", f"-I{well_known}", f"--python_out={GENERATED}", f"--grpc_python_out={GENERATED}"]
    if protoc.main(["protoc", *folders, *files]) != 0:
        raise RuntimeError("failed to generate the stubs")
    sys.path.insert(0, str(GENERATED))


generate()


class Server:
    """A development server in its own folder, with a channel that retries as proto/service_config.json says."""

    def __init__(self, folder, *arguments):
        environment = dict(os.environ, SWITCHWARD_CONTEXTS=os.path.join(folder, "contexts"))
        data = os.path.join(folder, "data")
        command = [os.environ["SWITCHWARD_BIN"], "dev", "--port", "0", "-o", "json", "--data-dir", data]
        self.process = subprocess.Popen(command + list(arguments), stdout=subprocess.PIPE, env=environment, text=True)
        self.channel = None

    def connect(self):
        ready = json.loads(self.process.stdout.readline())
        self.agent, self.person, self.worker = ready["agent_key"], ready["person_key"], ready["worker_key"]
        self.address = ready["address"]
        config = (ROOT / "proto" / "service_config.json").read_text()
        address = self.address.removeprefix("http://")
        self.channel = grpc.insecure_channel(address, options=[("grpc.service_config", config)])
        return self.channel

    def stop(self):
        if self.channel is not None:
            self.channel.close()
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()


def commands_of(page):
    """The blocks of a page of docs/ that this step runs, each with its commands."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(r"^```sh by:python-client\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def bearer(key):
    return [("authorization", f"Bearer {key}")]


def detail(error, kind):
    """A google.rpc detail of a refused call: ErrorInfo has the reason, BadRequest the fields that are wrong."""
    for packed in rpc_status.from_call(error).details:
        if packed.Is(kind.DESCRIPTOR):
            unpacked = kind()
            packed.Unpack(unpacked)
            return unpacked
    raise AssertionError(f"no {kind.DESCRIPTOR.name} in {error}")


def reason(error):
    """The ErrorInfo of a refused call."""
    return detail(error, error_details_pb2.ErrorInfo)
