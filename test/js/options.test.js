// The checks of options: what passes, what is refused, and that the refusal says what to write.
import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";

import { DaytonaSandbox, E2BSandbox, E2BSandboxToolkit, HttpSandbox } from "cloudsandbox";

import { SandboxError } from "../../lib/errors.js";
import { meantName } from "../../lib/meant.js";
import * as options from "../../lib/options.js";

/** Asserts that `check` throws an INVALID_ARG error whose message has all `parts`, and returns it. */
function refused(check, ...parts) {
  let error;
  try {
    check();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error instanceof SandboxError, `should have been refused, but gave ${error}`);
  assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
  for (const part of parts) {
    assert.ok(error.message.includes(part), `${JSON.stringify(part)} in: ${error.message}`);
  }
  return error.message;
}

describe("options", () => {
  test("names: a misspelt one is refused and its neighbour named", () => {
    options.checkNames({ timeoutSeconds: 1 }, ["timeoutSeconds", "env"], "run");
    options.checkNames(undefined, [], "run");
    refused(
      () => options.checkNames({ timeoutSecond: 1 }, ["timeoutSeconds", "env"], "run"),
      "run",
      "`timeoutSecond`",
      "did you mean `timeoutSeconds`",
    );
    refused(
      () => options.checkNames({ TimeoutSeconds: 1 }, ["timeoutSeconds"], "run"),
      "did you mean `timeoutSeconds`",
    );
    refused(
      () => options.checkNames({ zzz: 1 }, ["timeoutSeconds", "env"], "run"),
      "the options are timeoutSeconds, env",
    );
    refused(() => options.checkNames({ ["x".repeat(1e6)]: 1 }, ["env"], "run"));
    for (const value of [null, 1, "text", [], () => {}]) {
      refused(() => options.checkNames(value, [], "run"), "must be an object");
    }
  });

  test("a budget says how much of what", () => {
    assert.deepEqual(options.checkBudget({ commands: 0, sandboxSeconds: 0.5 }), { commands: 0, sandboxSeconds: 0.5 });
    refused(() => options.checkBudget({}), "`budget`", "{ commands }", "{ sandboxSeconds }");
    refused(() => options.checkBudget(5), "budget");
    refused(() => options.checkBudget({ commands: 1.5 }), "`budget.commands`");
    refused(() => options.checkBudget({ commands: -1 }), "`budget.commands`");
    refused(() => options.checkBudget({ sandboxSeconds: Infinity }), "`budget.sandboxSeconds`");
    refused(() => options.checkBudget({ seconds: 1 }), "`seconds`", "sandboxSeconds");
  });

  test("what has its contents elsewhere than in properties is refused, not ignored", () => {
    const pairs = [["A", "1"]];
    for (const value of [new Map(pairs), new URLSearchParams(pairs), new Set(pairs), new Headers(pairs)]) {
      refused(() => options.checkEnv(value), "`env`", "Object.fromEntries()");
      refused(() => options.checkNames(value, ["env"], "run"), "run:", "Object.fromEntries()");
    }
    refused(() => options.checkEnv(Promise.resolve({})), "`env`", "await it first");
    refused(() => options.checkNames(Promise.resolve({}), [], "run"), "run:", "await it first");
    assert.deepEqual(options.checkEnv({ then: "1", size: "2" }), ["then", "1", "size", "2"]);
    assert.ok(options.checkEnv(process.env).length > 0);
  });

  test("names: other words and other spellings of an option lead to it", () => {
    const run = ["language", "timeoutSeconds", "env", "signal"];
    const sandbox = ["defaultTimeoutSeconds", "startTimeoutSeconds", "maxOutputBytes", "workspace", "tempDir", "env"];
    const meant = [
      ["timeout", run, "timeoutSeconds"],
      ["timeoutMs", run, "timeoutSeconds"],
      ["timeout_seconds", run, "timeoutSeconds"],
      ["timeout", sandbox, "defaultTimeoutSeconds"],
      ["timeoutSeconds", sandbox, "defaultTimeoutSeconds"],
      ["defaultTimeout", sandbox, "defaultTimeoutSeconds"],
      ["startTimeout", sandbox, "startTimeoutSeconds"],
      ["lang", run, "language"],
      ["environment", run, "env"],
      ["abortSignal", run, "signal"],
      ["dir", sandbox, "workspace"],
      ["path", sandbox, "workspace"],
      ["cwd", sandbox, "workspace"],
      ["work", sandbox, "workspace"],
      ["tmpdir", sandbox, "tempDir"],
      ["maxBuffer", sandbox, "maxOutputBytes"],
      ["dir", ["cwd", "env"], "cwd"],
      ["content", ["path", "contents", "encoding"], "contents"],
      ["branch", ["repo", "path", "ref"], "ref"],
    ];
    for (const [name, allowed, right] of meant) {
      refused(() => options.checkNames({ [name]: 1 }, allowed, "here"), `\`${name}\``, `did you mean \`${right}\`?`);
    }
    for (const name of ["te", "x", "__proto__x", "constructor"]) {
      refused(() => options.checkNames({ [name]: 1 }, run, "run"), "the options are language");
    }
  });

  test("names: an option of another method is shown the way there", () => {
    const elsewhere = { names: ["cwd", "stdin"], words: "exec() takes it" };
    refused(() => options.checkNames({ cwd: "/" }, ["env"], "shell", elsewhere), "`cwd`; exec() takes it");
    refused(() => options.checkNames({ envs: {} }, ["env"], "shell", elsewhere), "did you mean `env`");
  });

  test("names: milliseconds are told to be seconds", () => {
    for (const name of ["timeoutMs", "timeout_ms", "requestTimeoutMs"]) {
      refused(() => options.checkNames({ [name]: 1 }, ["timeoutSeconds", "startTimeoutSeconds"], "run"), "It counts seconds, not milliseconds.");
    }
  });

  test("words: what others call a language or an encoding", () => {
    const languages = ["python", "node", "shell"];
    for (const [word, meant] of [
      ["javascript", "node"], ["js", "node"], ["JavaScript", "node"], ["nodejs", "node"], ["py", "python"], ["Python3", "python"],
      ["bash", "shell"], ["sh", "shell"], ["NODE", "node"],
    ]) {
      refused(() => options.checkWord(word, languages, "language"), `; did you mean "${meant}"?`);
    }
    refused(() => options.checkWord("ts", languages, "language"), 'did you mean "node"? (it runs JavaScript, so take the types away first)');
    assert.doesNotMatch(refused(() => options.checkWord("bash", ["python", "node"], "language")), /did you mean/);
    assert.match(refused(() => options.checkWord("binary", ["utf8", "buffer"], "encoding")), /did you mean "buffer"/);
    for (const word of ["utf-8", "UTF8", "utf_8", "text"]) refused(() => options.checkEncoding(word), 'did you mean "utf8"?');
    for (const word of ["binary", "buffer", "latin1", "bytes"]) refused(() => options.checkEncoding(word), "call readBytes(), or writeFile() with a Uint8Array");
  });

  test("seconds become whole milliseconds", () => {
    const { checkTimeoutSeconds } = options;
    assert.equal(checkTimeoutSeconds(30, "t"), 30000);
    assert.equal(checkTimeoutSeconds(0.0001, "t"), 1);
    assert.equal(checkTimeoutSeconds(0.5, "t"), 500);
    assert.equal(checkTimeoutSeconds(3600, "t"), 3600000);
    assert.equal(checkTimeoutSeconds(86400, "t", { max: 86400, endless: true }), 86400000);
    assert.equal(checkTimeoutSeconds(Infinity, "t", { max: 86400, endless: true }), Infinity);
    for (const value of [
      0,
      -1,
      NaN,
      Infinity,
      -Infinity,
      3600.001,
      1e12,
      "5",
      null,
      undefined,
      {},
      5n,
      Symbol("s"),
    ]) {
      refused(() => checkTimeoutSeconds(value, "timeoutSeconds"), "`timeoutSeconds`", "3600");
    }
    refused(
      () => checkTimeoutSeconds(-Infinity, "timeoutSeconds", { max: 86400, endless: true }),
      "86400",
      "Infinity",
    );
  });

  test("whole numbers in a range", () => {
    assert.equal(options.checkMaxOutputBytes(1), 1);
    assert.equal(options.checkMaxOutputBytes(16777216), 16777216);
    for (const value of [0, 1.5, -1, NaN, Infinity, 16777217, 2 ** 53, "1", null, {}, 1n]) {
      refused(() => options.checkMaxOutputBytes(value), "`maxOutputBytes`", "16777216");
    }
    assert.equal(options.checkNumber(0.5, "killGraceSeconds", 0, 3), 0.5);
    for (const value of [-0.1, 3.1, NaN, "1"]) {
      refused(() => options.checkNumber(value, "killGraceSeconds", 0, 3), "from 0 to 3");
    }
  });

  test("words from a list", () => {
    assert.equal(options.checkWord("node", ["python", "node"], "language"), "node");
    for (const value of ["Python", "js", "ruby", "", null, undefined, 1, ["node"]]) {
      refused(
        () => options.checkWord(value, ["python", "node"], "language"),
        "Unsupported",
        "`language`",
        '"python", "node"',
      );
    }
  });

  test("a word that was given is shown, and nothing that may be a secret", () => {
    refused(() => options.checkWord("nodejs", ["python", "node"], "language"), 'not "nodejs"', 'did you mean "node"');
    for (const value of ["dtn_0123456789abcdef0123", "two words", "a\nb", { a: 1 }]) {
      assert.throws(() => options.checkWord(value, ["python"], "language"), /not (a string|an object)$/);
    }
  });

  test("a name that is nearly another word for an option", () => {
    const allowed = ["defaultTimeoutSeconds", "startTimeoutSeconds"];
    assert.equal(meantName("timeoutSecond", allowed), "`defaultTimeoutSeconds`?");
    assert.equal(meantName("enviroment", ["env", "argv"]), "`env`?");
    assert.equal(meantName("nothing", allowed), undefined);
  });

  test("environment variables", () => {
    assert.deepEqual(options.checkEnv({ A: "1", _b2: "x y", C: "" }), ["A", "1", "_b2", "x y", "C", ""]);
    assert.deepEqual(options.checkEnv({}), []);
    const own = JSON.parse('{"__proto__":"x"}');
    assert.deepEqual(options.checkEnv(own), ["__proto__", "x"]);
    for (const name of ["A;touch pwned;B", "A=B", "", "1A", "$(id)", "A\n", "A\0", "É"]) {
      refused(() => options.checkEnv({ [name]: "x" }), "`env`", "variable name");
    }
    for (const value of [1, null, undefined, {}, ["x"]]) {
      refused(() => options.checkEnv({ NAME: value }), "`env.NAME`", "string");
    }
    refused(() => options.checkEnv({ NAME: "a\0b" }), "`env.NAME`", "U+0000");
    for (const value of [null, 1, "A=1", ["A=1"], undefined]) {
      refused(() => options.checkEnv(value), "`env`", "object");
    }
    assert.deepEqual(options.checkEnvNames(["HOME", "A1"], "inheritEnv"), ["HOME", "A1"]);
    for (const value of ["HOME", null, {}, [1], ["A=B"], [""], [null]]) {
      refused(() => options.checkEnvNames(value, "inheritEnv"), "`inheritEnv`");
    }
  });

  test("C182 names that a shell cannot hold: refused by name in `env`, left out of `inheritEnv`", () => {
    const given = { OK: "1", "BASH_FUNC_x%%": "() { :; }", "my.var": "2" };
    refused(() => options.checkEnv(given), '"BASH_FUNC_x%%" and "my.var" do not', "Leave them out");
    refused(() => options.checkEnv({ "my.var": "2" }), '"my.var" does not', "Leave it out");
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`v.${index}`, "sk-canary"]));
    const message = refused(() => options.checkEnv(many), '"v.4" and 4 others do not');
    assert.ok(!message.includes("canary"));
    assert.deepEqual(options.checkEnvNames(Object.keys(given), "inheritEnv"), ["OK"]);
    assert.deepEqual(options.checkEnvNames(["1A", "É", "a b", "x\n"], "inheritEnv"), []);
    refused(() => options.checkEnvNames(["OK", "A=B"], "inheritEnv"), '"A=B" does not');
  });

  test("a message never shows a value that may be a secret", () => {
    const secret = "sk-canary-1234";
    const messages = [
      refused(() => options.checkEnv({ NAME: [secret] })),
      refused(() => options.checkEnv({ NAME: `${secret}\0` })),
      refused(() => options.checkWord(secret, ["a"], "x")),
      refused(() => options.checkTimeoutSeconds(secret, "x")),
      refused(() => options.checkInteger({ secret }, "x", 1, 2)),
      refused(() => options.checkBase64(`${secret}!`, "contents")),
      refused(() => options.checkObject(secret, "x")),
      refused(() => options.checkSignal(secret)),
      refused(() => options.checkEncoding(secret)),
    ];
    for (const message of messages) assert.ok(!message.includes(secret), message);
  });

  test("encodings: what was meant instead", () => {
    assert.match(refused(() => options.checkEncoding("buffer")), /call readBytes\(\)/);
    assert.match(refused(() => options.checkEncoding({ maxBytes: 5 })), /readFile\(path, "utf8", \{ maxBytes \}\)/);
  });

  test("signals: an AbortSignal of any realm, or none", () => {
    const { signal } = new AbortController();
    assert.equal(options.checkSignal(signal), signal);
    assert.equal(options.checkSignal(undefined), undefined);
    for (const value of [null, {}, { aborted: true }, new AbortController(), 1]) {
      refused(() => options.checkSignal(value), "`signal`", "AbortSignal");
    }
    refused(() => options.checkSignal(new AbortController()), "pass controller.signal");
  });

  test("strict base64", () => {
    const decode = (text) => Buffer.from(options.checkBase64(text, "contents")).toString("latin1");
    assert.equal(decode(""), "");
    assert.equal(decode("YQ=="), "a");
    assert.equal(decode("YQ"), "a");
    assert.equal(decode("YWI="), "ab");
    assert.equal(decode("YWJj"), "abc");
    assert.equal(decode("YW\r\nJj\n"), "abc");
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    assert.deepEqual(new Uint8Array(options.checkBase64(Buffer.from(bytes).toString("base64"), "c")), bytes);
    for (const text of [
      "Y",
      "YQ=",
      "YQ===",
      "=",
      "====",
      "YW=Jj",
      "YQ==YQ==",
      "Y Q==",
      "YR==",
      "YWJ",
      "_-8=",
      "YQ==\0",
      "é",
      "YWJj!",
    ]) {
      refused(() => options.checkBase64(text, "contents"), "`contents`", "base64", "nothing was written");
    }
    refused(() => options.checkBase64(new Uint8Array(1), "contents"), "string");
  });

  test("contents: text as UTF-8, or any view of bytes", () => {
    const hex = (value) => Buffer.from(options.checkContents(value, "contents")).toString("hex");
    assert.equal(hex("a\u0000\ud83d\ude00"), "6100f09f9880");
    assert.equal(hex("\ud800x"), "efbfbd78", "a lone surrogate, as TextEncoder writes it");
    assert.equal(hex(new Uint8Array([1, 2, 3]).subarray(1)), "0203");
    assert.equal(hex(new Uint16Array([0x0201])), "0102");
    assert.equal(hex(new DataView(new ArrayBuffer(4), 1, 2)), "0000");
    assert.equal(hex(new Uint8Array([7]).buffer), "07");
    for (const value of [null, undefined, 1, {}, [1, 2], new Blob([])]) {
      refused(() => options.checkContents(value, "contents"), "`contents`", "Uint8Array");
    }
  });
});

describe("C183 quotes that a file of variables has around a value", () => {
  const CREDENTIALS = [
    [E2BSandbox, "apiKey", "E2B_API_KEY", {}],
    [DaytonaSandbox, "apiKey", "DAYTONA_API_KEY", {}],
    [DaytonaSandbox, "jwtToken", "DAYTONA_JWT_TOKEN", { organizationId: "o" }],
    [DaytonaSandbox, "organizationId", "DAYTONA_ORGANIZATION_ID", { jwtToken: "j" }],
    [E2BSandbox, "baseURL", "E2B_API_URL", { apiKey: "k" }],
    [DaytonaSandbox, "baseURL", "DAYTONA_API_URL", { apiKey: "k" }],
    [E2BSandbox, "proxy", undefined, { apiKey: "k" }],
    [HttpSandbox, "baseURL", "SANDBOX_HTTP_URL", {}],
    [HttpSandbox, "token", "SANDBOX_HTTP_TOKEN", { baseURL: "http://127.0.0.1:1" }],
  ];
  const VARIABLES = CREDENTIALS.map(([, , variable]) => variable).filter(Boolean);
  const kept = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
  const clear = () => VARIABLES.forEach((name) => delete process.env[name]);
  beforeEach(clear);
  after(() => {
    clear();
    for (const [name, value] of Object.entries(kept)) if (value !== undefined) process.env[name] = value;
  });

  for (const [Class, name, variable, others] of CREDENTIALS) {
    test(`C183 ${Class.name}: ${name}${variable ? ` and ${variable}` : ""}`, () => {
      for (const text of ['"canary-1"', "'canary-1'", "`canary-1`", '"canary-1', "canary-1'", ' "canary-1"\n']) {
        const option = refused(() => new Class({ ...others, [name]: text }), `\`${name}\``, "take the quotes away");
        assert.ok(!option.includes("canary"), option);
        if (!variable) continue;
        process.env[variable] = text;
        const fromVariable = refused(() => new Class(others), variable, "take the quotes away");
        assert.ok(!fromVariable.includes("canary"), fromVariable);
        clear();
      }
    });
  }

  test("C183 a toolkit refuses them too, and a quote inside is no such thing", () => {
    refused(() => new E2BSandboxToolkit({ apiKey: '"canary-1"' }), "`apiKey`", "take the quotes away");
    new E2BSandbox({ apiKey: 'e2b_a"b' });
  });
});
