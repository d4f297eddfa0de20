// SandboxAgent: what it takes, its states, and its rules for a remote sandbox, against a sandbox in
// memory whose calls can be held.
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { describe, test } from "node:test";

import { SandboxAgent, SandboxError } from "cloudsandbox";

import { fakeSandbox } from "../support/fake.js";
import { event, rejection } from "../support/wait.js";

const FILES = [{ path: "x", contents: "y" }, { path: "b", contents: "AA==", encoding: "base64" }];
const SEEDED = [["start"], ["writeFile", "x", "y", "utf8"], ["writeFile", "b", "AA==", "base64"]];

function over(answers, config) {
  const fake = fakeSandbox(answers);
  return { ...fake, agent: new SandboxAgent({ backend: "remote", remote: fake.sandbox, ...config }) };
}

const lost = () => new SandboxError("the sandbox is gone", { code: "ERR_SANDBOX_LOST" });
const coded = async (promise, code, words) => {
  const error = await rejection(promise);
  assert.equal(error.code, `ERR_SANDBOX_${code}`);
  if (words) assert.match(error.message, words);
};

/** An answer that comes when `go.fire()` is called; `asked.happened` tells that it is waited for. */
function held(value) {
  const [asked, go] = [event(), event()];
  const answer = async () => {
    asked.fire();
    await go.happened;
    if (value instanceof Error) throw value;
    return value;
  };
  return { answer, asked, go };
}

describe("construction", () => {
  test("C086 an unknown backend, and a remote one without `remote`", () => {
    for (const backend of ["Docker", "dokcer", "", undefined, null, 7, Symbol("x"), {}]) {
      assert.throws(() => new SandboxAgent({ backend }), { code: "ERR_SANDBOX_UNSUPPORTED", message: /Unsupported.*"docker".*"unix-local".*"remote" with a sandbox/ });
    }
    assert.throws(() => new SandboxAgent(), { code: "ERR_SANDBOX_UNSUPPORTED" });
    for (const remote of [undefined, null]) assert.throws(() => new SandboxAgent({ backend: "remote", remote }), /requires `remote`/);
    assert.throws(() => new SandboxAgent({ backend: "remote", remote: { providerId: "x" } }), /no function `start`/);
  });

  test("what is of the wrong shape is named, before anything is created", () => {
    const { sandbox: remote, calls } = fakeSandbox();
    const wrong = [
      [{ workspace: 7 }, /workspace/],
      [{ workspace: { file: [] } }, /did you mean `files`/],
      [{ workspace: { files: {} } }, /`workspace.files` must be an array/],
      [{ workspace: { files: [{ path: "a" }] } }, /`workspace.files\[0\].contents` must be a string/],
      [{ workspace: { files: [{ path: 7, contents: "" }] } }, /`workspace.files\[0\].path`/],
      [{ workspace: { files: [FILES[0], null] } }, /workspace.files\[1\]/],
      [{ workspace: { files: [{ path: "a", contents: "", mode: 7 }] } }, /`mode`/],
      [{ workspace: { files: [{ path: "a", contents: "", encoding: "hex" }] } }, /encoding/],
      [{ workspace: { env: { "A B": "x" } } }, /workspace.env/],
      [{ workspace: { env: { A: 1 } } }, /`workspace.env.A`/],
      [{ workspace: { gitClones: [{ repo: "r" }] } }, /`workspace.gitClones\[0\].path`/],
      [{ workspace: { gitClones: [{ repo: "r", path: "p" }] } }, /gitClones.*"unix-local" and "docker"/],
      [{ backend: "unix-local", remote: undefined, inheritEnv: "PATH" }, /`inheritEnv` must be an array/],
      [{ backend: "unix-local", remote: undefined, inheritEnv: ["A=B"] }, /`inheritEnv`: a variable name/],
      [{ backend: "unix-local", remote: undefined, maxOutputBytes: 0 }, /`maxOutputBytes` must be/],
      [{ backend: "unix-local", remote: undefined, maxOutputBytes: 1.5 }, /`maxOutputBytes` must be/],
      [{ backend: "unix-local", remote: undefined, maxOutputBytes: "64" }, /`maxOutputBytes` must be/],
      [{ dockerImage: "node" }, /dockerImage/],
      [{ docker: {} }, /`docker` goes with backend "docker" only/],
      [{ backend: "unix-local", remote: undefined, docker: {} }, /`docker` goes with backend "docker" only/],
      [{ backend: "docker" }, /`remote` goes with backend "remote" only/],
      [{ backend: "docker", remote: undefined, inheritEnv: ["LANG"] }, /`inheritEnv`.*`workspace.env`/],
      [{ backend: "docker", remote: undefined, maxOutputBytes: 64 }, /`maxOutputBytes` goes into `docker`/],
      [{ backend: "docker", remote: undefined, docker: { imgae: "x" } }, /SandboxAgent: `docker`: there is no option `imgae`; did you mean `image`/],
      [{ backend: "docker", remote: undefined, docker: { user: "root" } }, /`user` must be numbers/],
      [{ backend: "docker", remote: undefined, docker: 7 }, /must be an object/],
      [{ files: [] }, /there is no option `files`; it goes into `workspace`/],
      [{ env: {} }, /there is no option `env`; it goes into `workspace`/],
    ];
    for (const [config, words] of wrong) {
      assert.throws(() => new SandboxAgent({ backend: "remote", remote, ...config }), { code: "ERR_SANDBOX_INVALID_ARG", message: words }, inspect(config));
    }
    assert.deepEqual(calls, []);
  });

  test("what the backend would ignore is refused", () => {
    const { sandbox: remote } = fakeSandbox();
    const wrong = [
      [{ backend: "unix-local", remote }, /`remote` goes with backend "remote" only/],
      [{ backend: "remote", remote, inheritEnv: ["LANG"] }, /`inheritEnv` goes with backend "unix-local" only/],
      [{ backend: "remote", remote, maxOutputBytes: 64 }, /`maxOutputBytes` goes with backend "unix-local" only/],
    ];
    for (const [config, message] of wrong) assert.throws(() => new SandboxAgent(config), { code: "ERR_SANDBOX_INVALID_ARG", message });
    new SandboxAgent({ backend: "unix-local", remote: undefined });
    new SandboxAgent({ backend: "remote", remote, inheritEnv: undefined, maxOutputBytes: undefined });
  });

  test("no I/O, and the manifest is copied deeply", async () => {
    const workspace = { files: structuredClone(FILES), env: { A: "1" } };
    const { agent, calls } = over({}, { workspace });
    workspace.files[0].contents = "changed";
    workspace.files.pop();
    workspace.env.A = "changed";
    assert.deepEqual(calls, []);
    assert.deepEqual([agent.kind, agent.ready], ["sandbox-agent", false]);
    await agent.start();
    await agent.shell("c");
    assert.deepEqual(calls, [...SEEDED, ["shell", "c", { env: { A: "1" } }]]);
  });

  test("console.log() tells provider and state", async () => {
    const { agent } = over();
    assert.match(inspect(agent), /^SandboxAgent \{ providerId: 'sandbox-agent-[^']+', state: 'new' \}$/);
    await agent.start();
    assert.match(inspect(agent), /state: 'ready'/);
    await agent.close();
    assert.match(inspect(agent), /state: 'closed'/);
  });

  test("a method that was taken off its agent says so", async () => {
    const { agent, calls } = over();
    const { start, run, shell, readFile, writeFile, snapshot, resume, close } = agent;
    for (const method of [start, run, shell, readFile, writeFile, snapshot, resume, close]) {
      const error = await rejection(method("x"));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.ok(error.message.startsWith(`${method.name}() was called without its agent, and did nothing: write agent.${method.name}(`), error.message);
    }
    assert.deepEqual(calls, []);
  });

  test("nothing of the configuration shows", () => {
    const { agent } = over({}, { workspace: { env: { KEY: "canary" }, files: [{ path: "f", contents: "canary" }] } });
    assert.doesNotMatch(inspect(agent, { depth: 9, showHidden: true }) + JSON.stringify(agent), /canary/);
  });
});

describe("states", () => {
  const calls = (agent) => [
    () => agent.run("1"), () => agent.shell("c"), () => agent.readFile("f"), () => agent.writeFile("f", ""), () => agent.snapshot(),
  ];

  test("new: not ready; closed: closed", async () => {
    const { agent, named } = over();
    for (const call of calls(agent)) await coded(call(), "NOT_READY", /not ready/);
    await agent.close();
    for (const call of [...calls(agent), () => agent.start()]) await coded(call(), "CLOSED", /closed/);
    assert.deepEqual([named("start").length, named("close").length], [0, 1], "the agent owns its remote");
  });

  test("starting: shared, and calls wait for it", async () => {
    const start = held();
    const { agent, calls: seen } = over({ start: start.answer });
    const [one, two] = [agent.start(), agent.start()];
    assert.equal(one, two);
    const call = agent.shell("c");
    await start.asked.happened;
    assert.equal(agent.ready, false);
    assert.deepEqual(seen, [["start"]]);
    start.go.fire();
    await call;
    assert.equal(agent.ready, true);
    await agent.start();
    assert.deepEqual(seen, [["start"], ["shell", "c", { env: {} }]]);
  });

  test("starting: who waits for it can give up; the start goes on", async () => {
    const start = held();
    const { agent, calls } = over({ start: start.answer });
    const starting = agent.start();
    const abort = new AbortController();
    const { signal } = abort;
    const waiting = [
      agent.run("1", { signal }),
      agent.shell("c", { signal }),
      agent.readFile("f", "utf8", { signal }),
      agent.writeFile("f", "", "utf8", { signal }),
    ].map(rejection);
    await start.asked.happened;
    abort.abort("why");
    assert.deepEqual(await Promise.all(waiting), ["why", "why", "why", "why"]);
    assert.equal(await rejection(agent.shell("c", { signal })), "why");
    await coded(agent.shell("c", { signal: "stop" }), "INVALID_ARG", /`signal`/);
    start.go.fire();
    await starting;
    assert.deepEqual(calls, [["start"]]);
    assert.equal(agent.ready, true);
  });

  test("a signal that is aborted while resume() reads the snapshot leaves no rejection behind", async () => {
    const abort = new AbortController();
    const snapshot = {
      get files() {
        abort.abort("why");
        return [{ path: "../out", contents: "" }];
      },
    };
    const agent = new SandboxAgent({ backend: "unix-local" });
    // An unhandled rejection fails the test.
    assert.equal(await rejection(agent.resume(snapshot, { signal: abort.signal })), "why");
    await agent.close();
  });

  test("start and resume: who waits can give up; aborted before, nothing begins", async () => {
    const start = held();
    const { agent, calls } = over({ start: start.answer });
    const aborted = { signal: AbortSignal.abort("early") };
    assert.equal(await rejection(agent.start(aborted)), "early");
    assert.equal(await rejection(agent.resume({ files: [] }, aborted)), "early");
    assert.deepEqual(calls, []);
    await coded(agent.start({ timeout: 1 }), "INVALID_ARG", /start: .*`timeout`/);
    const abort = new AbortController();
    const given = rejection(agent.start({ signal: abort.signal }));
    const resumed = rejection(agent.resume({ files: [] }, { signal: abort.signal }));
    await start.asked.happened;
    abort.abort("late");
    assert.deepEqual(await Promise.all([given, resumed]), ["late", "late"]);
    start.go.fire();
    await agent.close();
    assert.equal(agent.ready, false);
  });

  test("a failed start: its error for everybody who waits, the remote closed, and it can be tried again", async () => {
    let mistake = new Error("denied");
    const { agent, calls: seen } = over({ writeFile: () => mistake && Promise.reject(mistake) }, { workspace: { files: FILES } });
    const [start, call] = await Promise.all([rejection(agent.start()), rejection(agent.shell("c"))]);
    assert.equal(start, mistake);
    assert.equal(call, mistake);
    assert.deepEqual(seen, [SEEDED[0], SEEDED[1], ["close"]]);
    await coded(agent.shell("c"), "NOT_READY");
    mistake = undefined;
    await agent.start();
    assert.equal(agent.ready, true);
  });

  test("a failed start whose cleanup fails too: the first error, and close() tries again", async () => {
    const mistake = new Error("denied");
    let refuse = new Error("busy");
    const { agent, named } = over({ start: mistake, close: () => refuse && Promise.reject(refuse) });
    assert.equal(await rejection(agent.start()), mistake);
    assert.equal(await rejection(agent.close()), refuse);
    await coded(agent.start(), "CLOSED");
    refuse = undefined;
    await agent.close();
    assert.equal(named("close").length, 3);
    await agent.close();
    assert.equal(named("close").length, 3);
  });

  test("close: at once for new calls, once for the remote, one promise for all", async () => {
    const close = held();
    const { agent, named } = over({ close: close.answer });
    await agent.start();
    const [one, two] = [agent.close(), agent.close()];
    assert.equal(one, two);
    for (const call of [...calls(agent), () => agent.start()]) await coded(call(), "CLOSED", /closed/);
    assert.equal(agent.ready, false);
    close.go.fire();
    await one;
    await agent[Symbol.asyncDispose]();
    assert.equal(named("close").length, 1);
  });

  test("C171 close passes its options on, and refuses wrong ones before anything is closed", async () => {
    const { agent, calls: seen } = over({});
    await agent.start();
    await coded(agent.close({ graceSeconds: -1 }), "INVALID_ARG", /graceSeconds/);
    assert.equal(agent.ready, true);
    await agent.close({ graceSeconds: 0 });
    assert.deepEqual(seen.at(-1), ["close", { graceSeconds: 0 }]);
  });

  test("close during the start: the start completes, then the remote is closed", async () => {
    const start = held();
    const { agent, calls: seen } = over({ start: start.answer }, { workspace: { files: FILES } });
    const starting = agent.start();
    const waiting = agent.shell("c");
    const closing = agent.close();
    await coded(agent.shell("c"), "CLOSED");
    start.go.fire();
    await starting;
    await coded(waiting, "CLOSED");
    await closing;
    assert.deepEqual(seen, [...SEEDED, ["close"]]);
  });

  test("close during a start that fails: one close, and closed", async () => {
    const start = held(new Error("denied"));
    const { agent, calls: seen } = over({ start: start.answer });
    const starting = rejection(agent.start());
    const closing = agent.close();
    start.go.fire();
    assert.equal((await starting).message, "denied");
    await closing;
    assert.deepEqual(seen, [["start"], ["close"]]);
    await coded(agent.start(), "CLOSED");
  });
});

describe("remote", () => {
  test("calls are passed on, with the workspace's variables under the call's", async () => {
    const content = { readFile: "content" };
    const { agent, calls } = over(content, { workspace: { env: { A: "1", B: "1" } } });
    await agent.start();
    const { signal } = new AbortController();
    assert.deepEqual(await agent.run("1", { language: "python", timeoutSeconds: 5, env: { B: "2" }, signal }), { output: "ran", exitCode: 0 });
    assert.deepEqual(await agent.run("2"), { output: "ran", exitCode: 0 });
    assert.deepEqual(await agent.shell("c"), { output: "shelled", exitCode: 0 });
    assert.equal(await agent.writeFile("../x", "y"), undefined);
    await agent.writeFile("x", "AA==", "base64");
    assert.equal(await agent.readFile("/abs"), "content");
    await agent.readFile("x", "base64", { signal });
    const env = { A: "1", B: "1" };
    assert.deepEqual(calls.slice(1), [
      ["run", "1", { language: "python", timeoutSeconds: 5, env: { A: "1", B: "2" }, signal }],
      ["run", "2", { env }],
      ["shell", "c", { env }],
      ["writeFile", "../x", "y", "utf8"],
      ["writeFile", "x", "AA==", "base64"],
      ["readFile", "/abs", "utf8"],
      ["readFile", "x", "base64", { signal }],
    ]);
  });

  test("an error of the remote passes unchanged, and the agent stays ready", async () => {
    const mistake = new Error("mine");
    const { agent } = over({ run: mistake });
    await agent.start();
    assert.equal(await rejection(agent.run("1")), mistake);
    assert.equal(agent.ready, true);
  });

  test("a signal that was aborted before rejects with its reason, and nothing is sent", async () => {
    const { agent, calls } = over();
    await agent.start();
    const reason = new Error("stopped");
    const options = { signal: AbortSignal.abort(reason) };
    const aborted = [
      () => agent.run("1", options),
      () => agent.shell("c", options),
      () => agent.readFile("f", "utf8", options),
      () => agent.writeFile("f", "", "utf8", options),
    ];
    for (const call of aborted) {
      assert.equal(await rejection(call()), reason);
    }
    assert.deepEqual(calls, [["start"]]);
  });

  test("a signal that is none is refused in words", async () => {
    const { agent, calls } = over();
    await agent.start();
    for (const signal of [{}, "stop", new AbortController()]) await coded(agent.shell("c", { signal }), "INVALID_ARG", /`signal`/);
    assert.deepEqual(calls, [["start"]]);
  });

  test("snapshots are the provider's business", async () => {
    const { agent } = over();
    await agent.start();
    await coded(agent.snapshot(), "UNSUPPORTED", /provider-specific/);
  });

  test("a close that fails rejects; the next one tries again", async () => {
    let refuse = new Error("busy");
    const { agent, named } = over({ close: () => refuse && Promise.reject(refuse) });
    await agent.start();
    assert.equal(await rejection(agent.close()), refuse);
    await coded(agent.run("1"), "CLOSED");
    refuse = undefined;
    await agent.close();
    assert.equal(named("close").length, 2);
  });

  test("C090 of several agents on one remote, the last one to close closes it", async () => {
    const { sandbox: remote, named } = fakeSandbox();
    const [one, two, idle] = [1, 2, 3].map(() => new SandboxAgent({ backend: "remote", remote }));
    await Promise.all([one.start(), two.start()]);
    await idle.close();
    await one.close();
    await one.close();
    assert.equal(named("close").length, 0, "the second agent still works");
    await two.shell("c");
    await two.close();
    assert.equal(named("close").length, 1);
  });

  test("C090 a failed start does not close a remote that another agent uses", async () => {
    let refuse = null;
    const { sandbox: remote, named } = fakeSandbox({ writeFile: () => refuse && Promise.reject(refuse) });
    const [one, two] = [1, 2].map(() => new SandboxAgent({ backend: "remote", remote, workspace: { files: FILES } }));
    await one.start();
    refuse = new Error("denied");
    assert.equal(await rejection(two.start()), refuse);
    assert.equal(named("close").length, 0);
    await one.close();
    assert.equal(named("close").length, 1);
  });
});

describe("loss", () => {
  test("the call that finds it rejects; the next one seeds first, once for all who wait", async () => {
    let gone = false;
    const shell = () => (gone ? Promise.reject(lost()) : { output: "", exitCode: 0 });
    const { agent, calls } = over({ shell }, { workspace: { files: FILES } });
    await agent.start();
    gone = true;
    await coded(agent.shell("a"), "LOST");
    gone = false;
    assert.equal(agent.ready, true);
    await Promise.all([agent.shell("b"), agent.readFile("f")]);
    assert.deepEqual(calls.map(([method]) => method), [
      "start", "writeFile", "writeFile", "shell", "start", "writeFile", "writeFile", "shell", "readFile",
    ]);
  });

  test("seeding that fails rejects that call, and the next one tries again", async () => {
    let refuse = false;
    const { agent, named } = over({ run: lost(), writeFile: () => refuse && Promise.reject(new Error("denied")) }, { workspace: { files: FILES } });
    await agent.start();
    await coded(agent.run("1"), "LOST");
    refuse = true;
    await assert.rejects(agent.shell("c"), /denied/);
    refuse = false;
    await agent.shell("c");
    assert.equal(named("shell").length, 1);
    assert.equal(named("writeFile").length, 2 + 1 + 2);
  });

  test("a loss that is told late, by a call to the earlier sandbox, changes nothing", async () => {
    const late = held(lost());
    const { agent, named } = over({ run: late.answer, shell: (command) => (command === "a" ? Promise.reject(lost()) : { output: "" }) });
    await agent.start();
    const first = agent.run("1");
    await late.asked.happened;
    await coded(agent.shell("a"), "LOST");
    await agent.shell("b");
    late.go.fire();
    await coded(first, "LOST");
    await agent.shell("c");
    assert.equal(named("start").length, 2);
  });

  test("who waits for the seeding can give up; the seeding goes on", async () => {
    let begin = null;
    const { agent, calls } = over({ run: lost(), start: () => begin?.answer() });
    await agent.start();
    await coded(agent.run("1"), "LOST");
    begin = held();
    const controller = new AbortController();
    const reason = new Error("enough");
    const call = agent.shell("a", { signal: controller.signal });
    await begin.asked.happened;
    controller.abort(reason);
    assert.equal(await rejection(call), reason);
    begin.go.fire();
    await agent.shell("b");
    assert.deepEqual(calls.map(([method, text]) => [method, text]), [["start", undefined], ["run", "1"], ["start", undefined], ["shell", "b"]]);
  });
});

describe("resume", () => {
  const snapshot = { takenAt: 1, files: FILES, env: { S: "snapshot" } };

  test("from new: starts with the snapshot instead of the manifest", async () => {
    const { agent, calls } = over({}, { workspace: { files: [{ path: "old", contents: "" }], env: { OLD: "1" } } });
    await agent.resume(snapshot);
    await agent.shell("c");
    assert.deepEqual(calls, [...SEEDED, ["shell", "c", { env: { S: "snapshot" } }]]);
  });

  test("without variables of its own the agent's stay; an empty list has none", async () => {
    const { agent, named } = over({}, { workspace: { env: { OWN: "1" } } });
    const envOf = async () => (await agent.shell("c"), named("shell").at(-1)[2].env);
    await agent.resume({ files: FILES });
    assert.deepEqual(await envOf(), { OWN: "1" });
    await agent.resume(snapshot);
    await agent.resume({ files: FILES });
    assert.deepEqual(await envOf(), { S: "snapshot" });
    await agent.resume({ files: FILES, env: {} });
    assert.deepEqual(await envOf(), {});
  });

  test("from ready and from closed: closes first", async () => {
    const { agent, calls } = over();
    await agent.start();
    await agent.resume(snapshot);
    await agent.close();
    await agent.resume(snapshot);
    assert.equal(agent.ready, true);
    assert.deepEqual(calls, [["start"], ["close"], ...SEEDED, ["close"], ...SEEDED]);
  });

  test("from starting: waits for the start", async () => {
    const start = held();
    const { agent, calls } = over({ start: start.answer });
    const starting = agent.start();
    const resuming = agent.resume(snapshot);
    start.go.fire();
    await Promise.all([starting, resuming]);
    assert.deepEqual(calls, [["start"], ["close"], ...SEEDED]);
  });

  test("over a sandbox that can be closed only once, it rejects with that sandbox's error", async () => {
    let closed = false;
    const { agent } = over({ start: () => closed && Promise.reject(new Error("closed for good")), close: () => void (closed = true) });
    await agent.start();
    await assert.rejects(agent.resume(snapshot), /closed for good/);
    assert.equal(agent.ready, false);
  });

  test("a second one rejects while the first runs; calls meanwhile are those of the state", async () => {
    const close = held();
    const { agent } = over({ close: close.answer });
    await agent.start();
    const first = agent.resume(snapshot);
    await coded(agent.resume(snapshot), "CONFLICT");
    await coded(agent.shell("c"), "CLOSED");
    close.go.fire();
    await first;
    await agent.resume(snapshot);
  });

  test("close during a resume waits for it, then closes; new calls see it at once", async () => {
    const start = held();
    let begin = null;
    const { agent, calls } = over({ start: () => begin?.answer() });
    await agent.start();
    begin = start;
    const resuming = agent.resume(snapshot);
    const [one, two] = [agent.close(), agent.close()];
    assert.equal(one, two);
    await start.asked.happened;
    await coded(agent.shell("c"), "CLOSED");
    await coded(agent.start(), "CLOSED");
    start.go.fire();
    await resuming;
    await one;
    assert.equal(agent.ready, false);
    assert.deepEqual(calls, [["start"], ["close"], ...SEEDED, ["close"]]);
    await agent.resume(snapshot);
    assert.equal(agent.ready, true);
  });

  test("close during a resume that fails closes too", async () => {
    const { agent, named } = over({ writeFile: new Error("denied") });
    await agent.start();
    const resuming = rejection(agent.resume(snapshot));
    await agent.close();
    assert.equal((await resuming).message, "denied");
    assert.ok(named("close").length >= 2);
    await coded(agent.start(), "CLOSED");
  });

  test("a snapshot of the wrong shape is refused, and the workspace stays", async () => {
    const { agent, calls } = over();
    await agent.start();
    const wrong = [
      [undefined, /the snapshot must be an object.*agent\.snapshot\(\).*not undefined/],
      [null, /the snapshot must be an object.*not null/],
      [7, /the snapshot must be an object/],
      [[], /the snapshot must be an object/],
      [JSON.stringify(snapshot), /JSON.parse\(\) it first/],
      [Promise.resolve(snapshot), /await agent.snapshot\(\) first/],
      [{}, /no `files`/],
      [{ env: {} }, /no `files`/],
      [{ ...snapshot, gitClones: [] }, /no option `gitClones`/],
      [{ ...snapshot, takenAt: "today" }, /`snapshot.takenAt` must be a number/],
      [{ files: "x" }, /`snapshot.files` must be an array/],
      [{ files: [{ path: "x" }] }, /`snapshot.files\[0\].contents`/],
      [{ files: [{ path: "x", contents: "***", encoding: "base64" }] }, /`snapshot.files\[0\].contents` is not base64/],
      [{ files: [], env: { A: 1 } }, /`snapshot.env.A`/],
    ];
    for (const [bad, words] of wrong) await coded(agent.resume(bad), "INVALID_ARG", words);
    assert.equal(agent.ready, true);
    assert.deepEqual(calls, [["start"]]);
  });
});
