"""OmniCoreAgent's own http provider, driven by a test: each line of standard input is one call in JSON, each line of
standard output what came of it."""

import asyncio
import base64
import json
import sys

from omnicoreagent.sandbox.http_sandbox import HttpSandboxRuntime
from omnicoreagent.sandbox.models import SandboxExecRequest, SandboxManifest


class Driver:
    def __init__(self, options):
        self.runtime = HttpSandboxRuntime(options=options)

    async def create(self, manifest):
        session = await self.runtime.create(SandboxManifest(**manifest))
        return {"session": session.session_id, "remote": session.metadata["remote_session_id"]}

    async def execute(self, session, **request):
        result = await self.runtime.execute(session, SandboxExecRequest(authority=None, **request))
        return {
            "exit_code": result.exit_code,
            "stdout": result.stdout,
            "stderr": result.stderr,
            "timed_out": result.timed_out,
        }

    async def write(self, session, path, content):
        await self.runtime.write_file(session, path, base64.b64decode(content))

    async def read(self, session, path):
        return base64.b64encode(await self.runtime.read_file(session, path)).decode()

    async def terminate(self, session):
        await self.runtime.terminate(session)


async def main():
    driver = Driver(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"result": await getattr(driver, name)(**arguments)}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


asyncio.run(main())
