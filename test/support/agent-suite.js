// What every framework has to get right with our tools, on a real local sandbox. A framework's own test
// file says only how a scripted model sits in it: `drive(toolkit, script, signal)` runs the framework's
// agent loop until the script ends, and resolves with the last answer. A framework that has a mark for
// failed calls (`marks`) must set it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { LocalSandbox, LocalSandboxToolkit, SandboxToolkit } from "cloudsandbox";

import { mark } from "./processes.js";

export const ANSWER = "That is all.";

/**
 * A model that makes fixed calls: `turns` is a list of lists of [role or name, args]. Each turn is made when the
 * framework asks the model again, with the results of the turn before.
 */
export class Script {
  #turns;
  /** How often the model was asked. */
  asked = 0;
  /** The tools as the framework described them to the model: { name, description, schema }. */
  offered = [];
  /** What the model got to see of each call, by the call's id: { text, failed }. */
  #results = new Map();

  constructor(turns) {
    this.#turns = turns;
  }

  /**
   * One request to the model. `results` are those of the conversation, { id, text, failed }. Returns
   * the calls that the model makes, { id, name, args }; none when it answers.
   */
  next(offered, results) {
    this.offered = offered;
    for (const { id, ...result } of results) this.#results.set(id, result);
    const turn = this.asked++;
    return (this.#turns[turn] ?? []).map(([role, args], index) => {
      return { id: `call_${turn}_${index}`, name: role.startsWith("sandbox_") ? role : `sandbox_local_${role}`, args };
    });
  }

  /** What came back, in the order of the calls. */
  get results() {
    return this.#turns.flatMap((calls, turn) => calls.map((_, index) => this.#results.get(`call_${turn}_${index}`)));
  }

  get texts() {
    return this.results.map((result) => result?.text);
  }
}

/** The toolkit's tools in what the model is told: JSON only, without the hidden members. */
const described = (toolkit) =>
  toolkit.getTools().map(({ name, description, parameters }) => {
    return { name, description, schema: JSON.parse(JSON.stringify(parameters)) };
  });

const echoed = (word) => `{"output":"${word}\\n","exitCode":0}`;

export function suite(framework, drive, { marks = true } = {}) {
  describe(framework, { concurrency: 1 }, () => {
    function open(t, options) {
      const toolkit = new LocalSandboxToolkit({ isolation: "none", ...options });
      t.after(() => toolkit.close());
      return toolkit;
    }

    /** Runs a script whose turns have one call each. */
    async function play(toolkit, ...calls) {
      const script = new Script(calls.map((call) => [call]));
      assert.equal(await drive(toolkit, script), ANSWER);
      assert.equal(script.asked, calls.length + 1);
      return script;
    }

    test("the model is offered the four tools with their JSON Schemas", async (t) => {
      const toolkit = open(t);
      const script = new Script([]);
      assert.equal(await drive(toolkit, script), ANSWER);
      const offered = script.offered.map(({ name, description, schema: { $schema: _draft, ...schema } }) => {
        return { name, description, schema };
      });
      assert.deepEqual(offered, described(toolkit));
    });

    test("all four tools, a non-zero exit and a missing file", async (t) => {
      const { texts } = await play(
        open(t),
        ["write_file", { path: "data/in.txt", contents: "6 7\n" }],
        ["run", { code: "a, b = open('data/in.txt').read().split()\nprint(int(a) * int(b))" }],
        ["run", { code: "console.log(typeof require)", language: "node" }],
        ["shell", { command: "echo lost >&2; exit 3", timeoutSeconds: 20 }],
        ["read_file", { path: "data/in.txt" }],
        ["read_file", { path: "data/in.txt", encoding: "base64" }],
        ["read_file", { path: "absent.txt" }],
      );
      assert.deepEqual(texts, [
        "ok",
        '{"output":"42\\n","exitCode":0}',
        '{"output":"function\\n","exitCode":0}',
        '{"output":"lost\\n","exitCode":3}',
        "6 7\n",
        "NiA3Cg==",
        "[file not found]",
      ]);
    });

    test("a file that is no text", async (t) => {
      const toolkit = open(t);
      await toolkit.getSandbox().writeFile("b.bin", new Uint8Array([0, 255, 1, 128]));
      const { texts } = await play(toolkit, ["read_file", { path: "b.bin", encoding: "base64" }]);
      assert.deepEqual(texts, ["AP8BgA=="]);
    });

    test("two toolkits in one agent: each call reaches its own sandbox", async (t) => {
      const second = new SandboxToolkit(new LocalSandbox({ isolation: "none" }), { name: "build" });
      t.after(() => second.close());
      const toolkits = [open(t), second];
      const { texts } = await play(
        { getTools: () => toolkits.flatMap((toolkit) => toolkit.getTools()) },
        ["write_file", { path: "f", contents: "first" }],
        ["sandbox_build_write_file", { path: "f", contents: "second" }],
        ["read_file", { path: "f" }],
        ["sandbox_build_shell", { command: "cat f; echo" }],
      );
      assert.deepEqual(texts, ["ok", "ok", "first", echoed("second")]);
    });

    test("a timeout is a result", async (t) => {
      const { texts } = await play(open(t), ["shell", { command: "echo begun; sleep 600", timeoutSeconds: 0.5 }]);
      assert.deepEqual(JSON.parse(texts[0]), { output: "begun\n", exitCode: 124, timedOut: true });
    });

    test("a long output comes shortened, with both of its ends", async (t) => {
      const { texts } = await play(open(t), ["shell", { command: "seq 1 100000" }]);
      assert.ok(texts[0].length <= 50_000, `${texts[0].length}`);
      const { output } = JSON.parse(texts[0]);
      assert.match(output, /^1\n2\n[^]*left out[^]*\n99999\n100000\n$/);
    });

    test("several calls in one turn each get their own answer", async (t) => {
      const words = ["a", "b", "c"];
      const script = new Script([words.map((word) => ["shell", { command: `echo ${word}` }])]);
      assert.equal(await drive(open(t), script), ANSWER);
      assert.deepEqual(script.texts, words.map(echoed));
    });

    test("what a model gets slightly wrong is taken as it was meant", async (t) => {
      const { texts } = await play(
        open(t),
        ["shell", { command: "echo text", timeoutSeconds: "20" }],
        ["shell", { command: "echo long", timeoutSeconds: 100000 }],
        ["run", { code: "print('null')", language: null, timeoutSeconds: null }],
        ["shell", { command: "echo extra", reason: "to see" }],
        ["shell", { command: "```sh\necho fence\n```" }],
      );
      assert.deepEqual(texts, ["text", "long", "null", "extra", "fence"].map(echoed));
    });

    test("what a model gets wrong comes back in words, and the run goes on", async (t) => {
      const { texts } = await play(
        open(t),
        ["shell", { cmd: "ls" }],
        ["shell", { command: "ls", timeoutSeconds: -1 }],
        ["run", { code: "1", language: "ruby" }],
        ["write_file", {}],
        ["read_file", { path: "../outside" }],
        ["shell", { command: "echo better" }],
      );
      const words = [
        "`command` is missing (string)",
        "`timeoutSeconds` must be at least 0.001 and at most 3600; got -1",
        '`language` must be one of "python", "node", "shell"',
        "`contents` is missing (string)",
        "Nothing was read; repeating the same call will not help.",
      ];
      assert.equal(texts.pop(), echoed("better"));
      // Some frameworks put the words into JSON.
      for (const [index, text] of texts.entries()) assert.ok(text.replaceAll('\\"', '"').includes(words[index]), text);
    });

    test("what a tool throws comes back in words, and the run goes on", async (t) => {
      const toolkit = open(t);
      await toolkit.close();
      const { results } = await play(toolkit, ["shell", { command: "ls" }], ["read_file", { path: "f" }]);
      for (const { text, failed } of results) {
        if (marks) assert.equal(failed, true);
        assert.match(text, /sandbox_local_\w+ failed: .*closed.* Nothing was (run|read); repeating the same call will not help\./);
      }
    });

    test("aborting the run ends the command, and the model is not asked again", async (t) => {
      const { env, started, gone } = mark();
      const script = new Script([[["shell", { command: "sleep 600 & sleep 600", timeoutSeconds: 900 }]]]);
      const controller = new AbortController();
      const run = Promise.allSettled([drive(open(t, { env }), script, controller.signal)]);
      await started(2);
      controller.abort();
      await gone();
      await run;
      assert.equal(script.asked, 1);
    });
  });
}
