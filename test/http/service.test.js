// The service of examples/: what the page of the protocol points at must do what that page says.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { HttpSandbox } from "cloudsandbox";

import { startService } from "../../examples/http-service.js";
import { ask } from "../emulators/ask.js";
import { rejection } from "../support/wait.js";

async function open(t, options) {
  const service = await startService({ token: "secret-of-this-test" });
  const sandbox = new HttpSandbox({ baseURL: service.url, token: "secret-of-this-test", network: "allow", ...options });
  t.after(async () => {
    await sandbox.close().catch(() => {});
    await service.close();
  });
  return { service, sandbox };
}

describe("the service in one file", { concurrency: 4 }, () => {
  test("commands, code, files, a list, input, variables", async (t) => {
    const { sandbox } = await open(t, { env: { LEVEL: "9" } });
    assert.deepEqual(await sandbox.shell("echo $LEVEL; echo to stderr >&2; exit 3"), { output: "9\nto stderr\n", exitCode: 3 });
    assert.equal((await sandbox.run("print(6 * 7)")).output, "42\n");
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    await sandbox.writeFile("a/b.bin", bytes);
    assert.deepEqual(await sandbox.readBytes("a/b.bin"), bytes);
    assert.equal(await sandbox.readFile("missing"), null);
    assert.deepEqual(await sandbox.listFiles(), [{ path: "a/b.bin", size: 256 }]);
    assert.equal((await sandbox.exec({ command: "cat; cat /workspace/x", stdin: "in" })).stdout, "in");
    await assert.rejects(sandbox.writeFile("a", "x"), { code: "ERR_SANDBOX_INVALID_ARG" });
  });

  test("limits, and a call that is cancelled: what runs is ended", async (t) => {
    const { sandbox } = await open(t);
    assert.deepEqual(await sandbox.shell("echo begun; sleep 300", { timeoutSeconds: 5 }), { output: "begun\n", exitCode: 124, timedOut: true });
    const stop = new AbortController();
    const running = sandbox.exec({ command: "sleep 300", signal: stop.signal });
    setTimeout(() => stop.abort(), 500);
    const { status, termination } = await running;
    assert.deepEqual([status, termination], ["cancelled", "confirmed"]);
  });

  test("what it cannot give is refused before anything is made", async (t) => {
    for (const options of [{ network: "deny" }, { image: "x" }, { memory: "1g" }, { cpu: 1 }, { gpu: true }, { allowedHosts: ["a.b"] }]) {
      const { sandbox } = await open(t, options);
      assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_UNSUPPORTED", JSON.stringify(options));
    }
  });

  test("a wrong token, a session that has ended, and requests that are none", async (t) => {
    const { service, sandbox } = await open(t, { onLost: "reject" });
    const wrong = new HttpSandbox({ baseURL: service.url, token: "another-secret" });
    assert.equal((await rejection(wrong.start())).code, "ERR_SANDBOX_AUTH");
    await sandbox.start();
    const headers = { authorization: "Bearer secret-of-this-test" };
    const send = (path, method, body) => ask(`${service.url}/sessions/${sandbox.sandboxId}${path}`, { method, headers, body });
    for (const body of ["", "{", "[]", "{}", '{"command":[]}', '{"command":"true"}', '{"command":[1]}']) {
      assert.equal((await send("/exec", "POST", body)).status, 400, body);
    }
    for (const name of ["/etc/hostname", "/workspace/../x", ""]) assert.equal((await send(`/files?path=${name}`, "GET")).status, 403, name);
    assert.equal((await send("", "DELETE")).status, 204);
    assert.equal((await send("", "DELETE")).json.error.code, "session_not_found");
    assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
  });
});
