// Code in the interpreter of templates that have one: state, contexts, results, errors, limits, faults.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { SandboxToolkit } from "cloudsandbox";

import { proxyReplies } from "../emulators/e2b/index.js";
import { replies } from "../emulators/engine.js";
import { toolsByRole } from "../support/host.js";
import { HANG_MS, event, eventually, rejection } from "../support/wait.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

const EXECUTE = "interpreter POST /execute";
const CONTEXTS = "interpreter POST /contexts";
const RESTART = "interpreter POST /contexts/{id}/restart";
const HEALTH = "envd GET /health";
const template = "code-interpreter-v1";

const lines = (...values) => ({
  status: 200,
  headers: {},
  body: values.map((value) => `${typeof value === "string" ? value : JSON.stringify(value)}\n`).join(""),
});
const end = { type: "end_of_execution" };

describe("code", { concurrency: 4 }, () => {
  test("K10 keeps its variables, in each language, and shell commands are commands", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.run("x = 40");
    assert.deepEqual(await sandbox.run("print(x + 2)"), { output: "42\n", exitCode: 0 });
    await sandbox.run("globalThis.y = 1", { language: "node" });
    assert.deepEqual(await sandbox.run("console.log(y)", { language: "node" }), { output: "1\n", exitCode: 0 });
    assert.deepEqual(await sandbox.shell("echo $((6*7))"), { output: "42\n", exitCode: 0 });
    const bodies = engine.requests(EXECUTE).map((entry) => JSON.parse(entry.body));
    assert.deepEqual(bodies.map((body) => body.language), ["python", "python", "javascript", "javascript"]);
  });

  test("K10 variables of the environment are set for the run only", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template });
    const code = "import os; print(os.environ.get('V'))";
    assert.equal((await sandbox.run(code, { env: { V: "hello big world" } })).output, "hello big world\n");
    assert.equal((await sandbox.run(code)).output, "None\n");
  });

  test("values that the service would paste wrongly are refused", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    for (const value of ["it's", "back\\slash", "two\nlines", "cr\r"]) {
      const error = await rejection(sandbox.run("1", { env: { SECRET_V: value } }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.match(error.message, /SECRET_V/);
      assert.ok(!error.message.includes(value));
    }
    assert.equal(engine.count(EXECUTE), 0);
  });

  test("C007 code that fails: exit code 1, its output, a readable traceback, and the error by itself", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template });
    const { output, exitCode } = await sandbox.run("print('a')\n1/0");
    assert.equal(exitCode, 1);
    assert.match(output, /^a\n[^]*ZeroDivisionError: division by zero\n$/);
    assert.ok(!output.includes("\u001b"), "no colours for a terminal");
    const { error, results } = await sandbox.exec({ code: "1/0" });
    assert.deepEqual([error.name, error.value], ["ZeroDivisionError", "division by zero"]);
    assert.match(error.traceback, /ZeroDivisionError/);
    assert.deepEqual(results, []);
  });

  test("rich results", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    const { results, stdout } = await sandbox.exec({ code: "40 + 2" });
    assert.deepEqual(results, [{ text: "42", isMainResult: true }]);
    assert.equal(stdout, "");
    const shown = { text: "x", html: "<b>x</b>", png: "iVBORw0KGgo=", chart: { type: "bar", elements: [1.5] }, extra: { "a/b": 1 } };
    engine.fault(EXECUTE, { instead: lines({ type: "result", ...shown }, { type: "result", text: "y", extra: {}, is_main_result: true }, end) });
    const rich = await sandbox.exec({ code: "show()" });
    assert.deepEqual(rich.results, [{ ...shown, isMainResult: false }, { text: "y", isMainResult: true }]);
    assert.equal("droppedResults" in rich, false);
    assert.equal("error" in rich, false);
    assert.deepEqual(await sandbox.run("40 + 2"), { output: "", exitCode: 0 }, "the port's result has the port's keys");
    assert.equal("results" in (await sandbox.exec({ command: "true" })), false);
  });

  test("output is heard as it comes, in both streams", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template });
    const said = event();
    const call = sandbox.exec({
      code: "import sys, time\nprint('out \u{1F600}', flush=True)\ntime.sleep(0.3)\nprint('err', file=sys.stderr)",
      onStdout: said.fire,
    });
    await said.happened;
    const { stdout, stderr } = await call;
    assert.deepEqual([stdout, stderr], ["out \u{1F600}\n", "err\n"]);
  });

  test("NUL, other control characters and lone surrogates in output", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(EXECUTE, { instead: lines(String.raw`{"type":"stdout","text":"a\u0000b\u001b[1m\ud83d\ude00\ud83d"}`, end) });
    assert.equal((await make({ template }).run("x")).output, "a\0b\u001b[1m\u{1F600}\ufffd");
  });

  test("stdin is refused", async (t) => {
    const { make } = await open(t);
    assert.equal((await rejection(make({ template }).exec({ code: "1", stdin: "x" }))).code, "ERR_SANDBOX_UNSUPPORTED");
  });

  test("`interpreter` decides where the template's name does not", async (t) => {
    const { engine, make } = await open(t, { templates: { mine: { interpreter: true }, "code-interpreter-like": {} } });
    assert.equal((await make({ template: "mine", interpreter: true }).run("print(1)")).output, "1\n");
    assert.equal(engine.count(EXECUTE), 1);
    assert.equal((await make({ template: "code-interpreter-like", interpreter: false }).run("print(1)")).output, "1\n");
    assert.equal(engine.count(EXECUTE), 1);
  });

  test("a traffic token is sent to the interpreter", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template, network: { allowPublicTraffic: false } });
    assert.equal((await sandbox.run("print(1)")).output, "1\n");
  });
});

describe("contexts", { concurrency: 4 }, () => {
  test("each has its own state; one is made at its first use, once", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    const runs = ["a", "a", "b"].map((context, i) => sandbox.run(`x = ${i}`, { context }));
    await Promise.all(runs);
    assert.equal(engine.count(CONTEXTS), 2);
    assert.equal((await sandbox.run("print('x' in globals())")).output, "False\n");
    assert.equal((await sandbox.exec({ code: "print(x)", context: "b" })).stdout, "2\n");
    await sandbox.run("globalThis.z = 1", { context: "a", language: "node" });
    assert.equal(engine.count(CONTEXTS), 3, "another language, another kernel");
  });

  test("C193 a working directory that is none is refused, and nothing runs at home instead", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.writeFile("file", "x");
    await sandbox.writeFile("it's/f", "x");
    for (const cwd of ["no/such", "file", "it's"]) {
      const error = await rejection(sandbox.exec({ code: "print(1)", cwd }));
      assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_INVALID_ARG", false], cwd);
      assert.ok(error.message.includes(cwd), error.message);
    }
    assert.equal(engine.count(CONTEXTS), 0);
    assert.equal((await sandbox.exec({ code: "import os; print(os.path.basename(os.getcwd()))", cwd: "~" })).exitCode, 0);
  });

  test("a directory is a context of its own", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.writeFile("sub/f", "x");
    const code = "import os; print(os.listdir('.'))";
    assert.equal((await sandbox.exec({ code, cwd: "sub" })).stdout, "['f']\n");
    assert.equal((await sandbox.exec({ code, cwd: "sub" })).stdout, "['f']\n");
    assert.equal(engine.count(CONTEXTS), 1);
    assert.equal(JSON.parse(engine.requests(CONTEXTS)[0].body).cwd, "/home/user/sub");
  });

  test("one that cannot be made: all who wait are told, and the next use tries again", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.start();
    engine.fault(CONTEXTS, { instead: { status: 500, headers: {}, body: "Failed to create context: no" } });
    const errors = await Promise.all([1, 2].map(() => rejection(sandbox.run("1", { context: "a" }))));
    for (const error of errors) {
      assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_PROVIDER", false]);
      assert.match(error.message, /Failed to create context/);
    }
    assert.equal((await sandbox.run("print(1)", { context: "a" })).output, "1\n");
    assert.equal(engine.count(CONTEXTS), 2);
  });

  test("of two that wait for one, one is cancelled", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.start();
    const gate = engine.gate();
    engine.fault(CONTEXTS, { before: gate });
    const controller = new AbortController();
    const cancelled = sandbox.exec({ code: "print(1)", context: "a", signal: controller.signal });
    const other = sandbox.exec({ code: "print(2)", context: "a" });
    await gate.arrived();
    controller.abort();
    assert.equal((await cancelled).status, "cancelled");
    gate.open();
    assert.equal((await other).stdout, "2\n");
    assert.deepEqual([engine.count(CONTEXTS), engine.count(EXECUTE), engine.count(RESTART)], [1, 1, 0]);
  });

  test("one that the service has forgotten is made anew", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.run("x = 1", { context: "a" });
    engine.fault(EXECUTE, { instead: { status: 404, headers: {}, body: "Context 1 not found" } });
    const error = await rejection(sandbox.run("x", { context: "a" }));
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_NOT_FOUND", false]);
    assert.equal((await sandbox.run("print('x' in globals())", { context: "a" })).output, "False\n");
    assert.equal(engine.count(CONTEXTS), 2);
  });
});

// One after the other: their code takes all the time that a processor has.
describe("limits", { concurrency: 1 }, () => {
  for (const [name, context] of [["the default context", undefined], ["a context of one's own", "a"]]) {
    test(`${name}: the code is stopped by a restart, and the next run works`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make({ template });
      await sandbox.run("x = 1", { context });
      const begin = performance.now();
      const code = "print('before', flush=True)\nwhile True: pass";
      const result = await sandbox.exec({ code, context, timeoutSeconds: 2 });
      assert.deepEqual(
        [result.status, result.exitCode, result.stdout, result.termination],
        ["timedOut", 124, "before\n", "confirmed"],
      );
      assert.ok(performance.now() - begin < HANG_MS);
      assert.equal(engine.count(RESTART), 1);
      assert.equal((await sandbox.run("print('x' in globals())", { context })).output, "False\n");
    });
  }

  test("a cancel does the same", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template });
    const controller = new AbortController();
    const reason = new Error("enough");
    const said = event();
    const call = sandbox.exec({ code: "print('a', flush=True)\nwhile True: pass", signal: controller.signal, onStdout: said.fire });
    await said.happened;
    controller.abort(reason);
    const result = await call;
    assert.deepEqual([result.status, result.stdout, result.termination], ["cancelled", "a\n", "confirmed"]);
    assert.equal((await sandbox.run("print(1)")).output, "1\n");
  });

  // Each prints the number of its process, which has left the kernel's group.
  const CHILDREN = {
    "a session of its own": "subprocess.Popen(['sleep', '78'], start_new_session=True).pid",
    "and no environment": "subprocess.Popen(['sleep', '78'], start_new_session=True, env={}).pid",
    "and no parent": "subprocess.check_output('setsid sleep 78 >/dev/null 2>&1 & echo $!', shell=True, text=True).strip()",
  };
  for (const [name, child] of Object.entries(CHILDREN)) {
    for (const how of ["a limit", "a cancel"]) {
      test(`C194 ${how} ends a child with ${name}, and nothing of others`, async (t) => {
        const { make } = await open(t);
        const sandbox = make({ template });
        const code = `import subprocess\nprint(${child}, flush=True)\n`;
        const other = (await sandbox.run(code, { context: "other" })).output.trim();
        const controller = new AbortController();
        const options = how === "a limit" ? { timeoutSeconds: 4 } : { signal: controller.signal, onStdout: () => controller.abort() };
        const { stdout, termination } = await sandbox.exec({ code: `${code}while True: pass`, ...options });
        assert.match(stdout, /^\d+\n$/);
        assert.equal(termination, "confirmed");
        const look = async (/** @type {string} */ pid) => (await sandbox.shell(`grep -qs ') [^Z] ' /proc/${pid}/stat`)).exitCode === 0;
        assert.deepEqual([await look(stdout.trim()), await look(other)], [false, true]);
        await sandbox.shell(`kill -9 ${other}`);
      });
    }
  }

  test("C194 what ends children is refused: the code is stopped, and nothing is told as confirmed", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.start();
    const code = "import subprocess\nprint(subprocess.Popen(['sleep', '78'], start_new_session=True).pid, flush=True)\nwhile True: pass";
    const controller = new AbortController();
    for (const options of [{ timeoutSeconds: 4 }, { signal: controller.signal, onStdout: () => controller.abort() }]) {
      engine.fault("process.Process/Start", { instead: replies.html(503) });
      const { stdout, termination } = await sandbox.exec({ code, ...options });
      assert.match(stdout, /^\d+\n$/);
      assert.equal(termination, "requested");
      assert.equal((await sandbox.shell(`kill -0 ${stdout.trim()} && kill -9 ${stdout.trim()}`)).exitCode, 0);
    }
  });

  test("a restart that is refused: timed out all the same, and the end is not known", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.start();
    engine.fault("interpreter GET /contexts", { instead: replies.html(503) });
    const result = await sandbox.exec({ code: "import time; time.sleep(300)", timeoutSeconds: 0.5 });
    assert.deepEqual([result.status, result.termination], ["timedOut", "requested"]);
  });
});

describe("faults", { concurrency: 8 }, () => {
  const said = { type: "stdout", text: "so far" };
  const table = {
    "no end line": [{ instead: lines(said) }, { code: "PROTOCOL", mayHaveRun: true }],
    "half a line, then a reset": [
      { instead: lines(said, '{"type":"std'), stop: { after: 40, how: "reset" } },
      { code: "NETWORK", retryable: true, mayHaveRun: true },
    ],
    "a line that is not JSON": [{ instead: lines(said, "nonsense", end) }, { code: "PROTOCOL", mayHaveRun: true }],
    "a line without a type": [{ instead: lines({ text: "x" }, end) }, { code: "PROTOCOL", mayHaveRun: true }],
    nothing: [{ instead: lines() }, { code: "PROTOCOL", mayHaveRun: true }],
    "the kernel's link is lost": [
      { instead: lines({ type: "error", name: "WebSocketError", value: "The connections was lost", traceback: "" }, end) },
      { code: "PROVIDER", retryable: true, mayHaveRun: true },
    ],
    "422": [{ instead: replies.json(422, { detail: [{ msg: "Field required" }] }) }, { code: "INVALID_ARG", status: 422 }],
    "400": [{ instead: { status: 400, headers: {}, body: "Only one of context_id or language" } }, { code: "INVALID_ARG", status: 400 }],
    "500": [{ instead: { status: 500, headers: {}, body: "Internal" } }, { code: "PROVIDER", retryable: true, mayHaveRun: true, status: 500 }],
    "403 of the traffic token": [{ instead: replies.json(403, { message: "Sandbox is secured", code: 403 }) }, { code: "FORBIDDEN", status: 403 }],
    "502, nothing listens": [
      { instead: proxyReplies.portClosed("i1", 49999) },
      { code: "PROVIDER", retryable: true, mayHaveRun: true, status: 502 },
    ],
    "a reset": [{ instead: "reset" }, { code: "NETWORK", retryable: true, mayHaveRun: true }],
  };
  for (const [name, [fault, expected]] of Object.entries(table)) {
    test(name, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make({ template });
      await sandbox.start();
      engine.fault(EXECUTE, fault);
      const error = await rejection(sandbox.run("x"));
      const { code, retryable, mayHaveRun, status } = error;
      const seen = { code: code.slice(12), retryable, mayHaveRun, ...(status !== undefined && { status }) };
      assert.deepEqual(seen, { retryable: false, mayHaveRun: false, ...expected }, error.message);
      assert.equal(engine.count(EXECUTE), 1);
      assert.ok(engine.count(HEALTH) <= 1);
      assert.equal((await sandbox.run("print(1)")).output, "1\n");
    });
  }

  test("C167 the run tool says that variables stay, and they do; of the last line's value it returns nothing", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template: "code-interpreter-v1" });
    const { run } = toolsByRole(new SandboxToolkit(sandbox));
    assert.equal(sandbox.capabilities.contexts, true);
    assert.match(run.description, /Variables and files stay.*use print\(\)/);
    const results = [];
    for (const code of ["kept = 7\nkept", "print(kept)"]) results.push(JSON.parse(await run.execute({ code })));
    assert.deepEqual(results, [{ output: "", exitCode: 0 }, { output: "7\n", exitCode: 0 }]);
  });

  test("a template without an interpreter: the error says what to do", async (t) => {
    const { make } = await open(t, { dialDelaysMs: [] });
    const error = await rejection(make({ interpreter: true }).run("1"));
    assert.match(error.message, /no interpreter.*interpreter: false/);
    // The same answer comes when the connection broke before the reply: nobody knows.
    assert.equal(error.mayHaveRun, true);
    const { run } = toolsByRole(new SandboxToolkit(make({ interpreter: true })));
    assert.equal((await rejection(run.execute({ code: "1" }))).message.match(/may have run/g).length, 1, "said once");
  });

  test("lines that are not known, and numbers that are none", async (t) => {
    const { engine, make } = await open(t);
    const odd = [
      { type: "keepalive" },
      { type: "number_of_executions", execution_count: 1 },
      { type: "of the future", text: 7 },
      '{"type":"result","data":{"a":NaN,"b":[Infinity,-Infinity,-1],"c":"NaN \\"NaN"},"is_main_result":true}',
      "",
      said,
    ];
    engine.fault(EXECUTE, { instead: lines(...odd, end), pieceBytes: 3 });
    const result = await make({ template }).exec({ code: "x" });
    assert.deepEqual([result.exitCode, result.stdout], [0, "so far"]);
    assert.deepEqual(result.results, [{ data: { a: null, b: [null, null, -1], c: 'NaN "NaN' }, isMainResult: true }]);
  });

  test("the kernel dies: exit code 1, and the error says so", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ template });
    const result = await sandbox.exec({ code: "import os; os._exit(3)" });
    assert.equal(result.exitCode, 1);
    assert.equal(result.error.name, "ContextRestarting");
    assert.match(result.stderr, /ContextRestarting: Context was restarted/);
    assert.equal((await sandbox.run("print(1)")).output, "1\n");
  });

  test("the end, and then a cut: the result stands", async (t) => {
    const { engine, make } = await open(t);
    const reply = lines(said, end, { type: "keepalive" });
    engine.fault(EXECUTE, { instead: reply, stop: { after: reply.body.length - 5, how: "close" } });
    assert.deepEqual(await make({ template }).run("x"), { output: "so far", exitCode: 0 });
  });

  for (const [name, value, expected] of [
    ["the end", said, { output: "so far", exitCode: 0 }],
    ["an error and the end", { type: "error", name: "E", value: "no", traceback: "" }, { output: "E: no\n", exitCode: 1 }],
  ]) {
    test(`${name}, and then a connection that stays open: the result stands, and the kernel keeps its state`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make({ template });
      await sandbox.run("x = 42");
      const rest = '{"type":"keepalive"}';
      const reply = lines(value, end, rest);
      engine.fault(EXECUTE, { instead: reply, stop: { after: reply.body.length - rest.length - 1, how: "hang" } });
      const begin = performance.now();
      assert.deepEqual(await sandbox.run("y", { timeoutSeconds: 60 }), expected);
      assert.ok(performance.now() - begin < HANG_MS);
      assert.equal((await sandbox.run("print(x)")).output, "42\n");
      assert.equal(engine.count(RESTART), 0);
    });
  }

  test("the end just before the limit, and a connection that stays open beyond it: no timeout", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ template });
    await sandbox.start();
    const reply = lines(said, end, "x");
    // The connection is given half a second. On a machine so busy that the end itself comes too late, once more.
    await eventually("an end in time", async () => {
      engine.fault(EXECUTE, { delayMs: 2600, instead: reply, stop: { after: reply.body.length - 2, how: "hang" } });
      const { timedOut, ...result } = await sandbox.run("y", { timeoutSeconds: 3 });
      const restarts = engine.count(RESTART);
      engine.clearLog();
      if (timedOut) return false;
      assert.deepEqual([result, restarts], [{ output: "so far", exitCode: 0 }, 0]);
      return true;
    });
  });

  test("a line beyond 16 MiB: TOO_LARGE", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(EXECUTE, { instead: lines({ type: "result", png: "A".repeat(16 * 1024 * 1024), extra: {} }, end) });
    const error = await rejection(make({ template }).exec({ code: "plot()" }));
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_TOO_LARGE", true]);
    assert.match(error.message, /16777216 bytes/);
  });

  test("a result of several megabytes is whole", async (t) => {
    const { engine, make } = await open(t);
    const png = "A".repeat(15_000_000);
    engine.fault(EXECUTE, { instead: lines({ type: "result", png, extra: {} }, end) });
    const { results } = await make({ template }).exec({ code: "plot()" });
    assert.equal(results[0].png.length, png.length);
  });

  test("lost during a run: LOST, and it may have run", async (t) => {
    const { emulator, make } = await open(t);
    const sandbox = make({ template });
    const heard = event();
    const failed = rejection(sandbox.exec({ code: "print(1, flush=True)\nimport time; time.sleep(300)", onStdout: heard.fire }));
    await heard.happened;
    emulator.lose(sandbox.sandboxId);
    const { code, mayHaveRun } = await failed;
    assert.deepEqual([code, mayHaveRun], ["ERR_SANDBOX_LOST", true]);
  });
});
