// C188: a service that answers 200 and repeats what it was sent. No message shows a credential.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";

import { DaytonaSandbox, E2BSandbox, HttpSandbox } from "cloudsandbox";

import { rejection } from "../support/wait.js";
import { withoutVariables } from "./remote.js";

withoutVariables();

const TOKEN = "tok_0123456789abcdef";
const KEY = "key_SUPERSECRET0123456789";
const HEADER = "extra_0123456789abcdef";

/** `answer(request, sent)` is [status, type, body]. */
async function serve(t, answer) {
  const server = createServer((request, response) => {
    let sent = "";
    request.on("data", (bytes) => (sent += bytes));
    request.on("end", () => {
      const [status, type, body] = answer(request, sent);
      response.writeHead(status, { "content-type": type });
      response.end(body);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.closeAllConnections() ?? server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

const json = (status, value) => [status, "application/json", JSON.stringify(value)];

/** The end of a stream of the Connect protocol that says this error. */
function streamError(message) {
  const payload = Buffer.from(JSON.stringify({ error: { code: "internal", message } }));
  const head = Buffer.alloc(5);
  head[0] = 2;
  head.writeUInt32BE(payload.length, 1);
  return [200, "application/connect+json", Buffer.concat([head, payload])];
}

function assertHidden(error, rest) {
  for (const secret of [TOKEN, KEY, HEADER]) assert.ok(!error.message.includes(secret.slice(0, 12)), error.message);
  assert.match(error.message, rest);
}

describe("C188 credentials that a 200 repeats are in no message", () => {
  const all = ({ headers }) => `${headers["x-api-key"]} ${headers["x-access-token"]} ${headers["x-extra-token"]} ${headers.authorization}`;

  test("e2b: an error at the end of a command's stream, also where it is cut", async (t) => {
    let before = "";
    const url = await serve(t, (request) => {
      if (request.method === "DELETE") return [204, "text/plain", ""];
      if (request.url.includes("sandboxes")) return json(201, { sandboxID: "abc", envdVersion: "0.5.7", envdAccessToken: TOKEN });
      return streamError(`${before}bad token ${all(request)}`);
    });
    const options = { apiKey: KEY, baseURL: url, sandboxUrl: url, headers: { "X-Extra-Token": HEADER } };
    const sandbox = new E2BSandbox(options);
    assertHidden(await rejection(sandbox.shell("true")), /bad token undefined \*{3} \*{3} undefined/);
    for (const length of [475, 480, 485]) {
      before = "x".repeat(length);
      assertHidden(await rejection(sandbox.shell("true")), /xxx/);
    }
    await sandbox.close();
  });

  test("daytona: a command's result", async (t) => {
    let name;
    const url = await serve(t, (request, sent) => {
      if (request.method === "DELETE") return json(200, {});
      if (request.url.includes("work-dir")) return json(200, { dir: "/home/daytona" });
      if (request.url.includes("execute")) return json(200, { result: `echo of ${all(request)}`, exitCode: 0 });
      if (request.method === "POST") ({ name } = JSON.parse(sent));
      return json(200, { id: "mine", name, state: "started", toolboxProxyUrl: `${url}/toolbox` });
    });
    const sandbox = new DaytonaSandbox({ apiKey: KEY, baseURL: `${url}/api` });
    assertHidden(await rejection(sandbox.shell("true")), /echo of .*\*{3}/);
    await sandbox.close();
  });

  test("http: what commands print in place of a report, and refusals", async (t) => {
    let refused = false;
    const url = await serve(t, (request, sent) => {
      if (request.method === "DELETE") return [204, "text/plain", ""];
      if (request.url === "/sessions") return json(201, { session_id: "mine" });
      const stderr = `echo of ${all(request)}`;
      if (refused) return json(400, { error: { code: "x", message: stderr } });
      if (sent.includes("pwd -P")) return json(200, { exit_code: 0, stdout: "/workspace\n", stderr: "" });
      return json(200, { exit_code: 127, stdout: "", stderr });
    });
    const sandbox = new HttpSandbox({ token: KEY, baseURL: url, headers: { "X-Extra-Token": HEADER } });
    assertHidden(await rejection(sandbox.shell("true")), /echo of undefined undefined( \*{3})+/);
    refused = true;
    assertHidden(await rejection(sandbox.shell("true")), /echo of undefined undefined( \*{3})+/);
    await sandbox.close();
  });
});
