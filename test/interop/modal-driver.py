"""Modal's own client for Python, driven by a test: each line of standard input is one call in JSON, each line of
standard output what came of it."""

import base64
import json
import sys

import modal


class Driver:
    def create(self, image, env=None, **options):
        app = modal.App.lookup("interop", create_if_missing=True)
        secrets = [modal.Secret.from_dict(env)] if env else []
        self.sandbox = modal.Sandbox.create(
            app=app, image=modal.Image.from_registry(image), secrets=secrets, **options
        )
        return {"id": self.sandbox.object_id}

    def execute(self, argv, stdin=None, **options):
        process = self.sandbox.exec(*argv, **options)
        if stdin is not None:
            process.stdin.write(stdin)
            process.stdin.write_eof()
            process.stdin.drain()
        stdout, stderr = process.stdout.read(), process.stderr.read()
        return {"code": process.wait(), "stdout": stdout, "stderr": stderr}

    def write(self, path, content):
        self.sandbox.filesystem.write_bytes(base64.b64decode(content), path)

    def read(self, path):
        return base64.b64encode(self.sandbox.filesystem.read_bytes(path)).decode()

    def terminate(self):
        self.sandbox.terminate()


driver = Driver()
for line in sys.stdin:
    call = json.loads(line)
    try:
        answer = {"value": getattr(driver, call["call"])(**call.get("args", {}))}
    except Exception as error:  # the test decides what it expects
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
