// What the constructor takes, from options and from the environment, and where it goes on the wire.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { E2BSandbox, E2BSandboxToolkit, SandboxError } from "cloudsandbox";

import { proxyReplies } from "../emulators/e2b/index.js";
import { replies } from "../emulators/engine.js";
import { makeCertificate } from "../emulators/certificate.js";
import { rejection } from "../support/wait.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

/** Runs `body` with variables set. */
async function withVariables(variables, body) {
  Object.assign(process.env, variables);
  try {
    return await body();
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
}

function thrown(body) {
  try {
    body();
  } catch (error) {
    return error;
  }
  assert.fail("should have thrown");
}

const CREATE = "POST /v2/sandboxes";

describe("the key", () => {
  test("C075 none: the constructor throws, and says where keys are made", () => {
    for (const options of [undefined, {}, { apiKey: "" }, { apiKey: "\n" }]) {
      for (const Class of [E2BSandbox, E2BSandboxToolkit]) {
        const error = thrown(() => new Class(options));
        assert.ok(error instanceof SandboxError);
        assert.equal(error.code, "ERR_SANDBOX_MISSING_KEY");
        assert.match(error.message, /missing API key.*E2B_API_KEY.*https:\/\/e2b\.dev/);
      }
    }
  });

  test("C075 from the environment, with the line end that a file leaves behind it", async (t) => {
    const { engine, emulator, options } = await open(t);
    await withVariables({ E2B_API_KEY: `${emulator.apiKey}\n` }, async () => {
      const sandbox = new E2BSandbox({ ...options, apiKey: undefined });
      await sandbox.start();
      await sandbox.close();
    });
    assert.equal(engine.requests(CREATE)[0].headers["x-api-key"], emulator.apiKey);
  });

  test("C075 the option wins over the environment", async (t) => {
    const { emulator, make } = await open(t);
    await withVariables({ E2B_API_KEY: "e2b_other" }, () => make({ apiKey: emulator.apiKey }).start());
  });

  test("C075 what cannot be a key is refused without being shown", () => {
    for (const apiKey of ["sk canary", "sk-canary\n7", "sk-canary\u00e9", "sk-\u0000canary"]) {
      const error = thrown(() => new E2BSandbox({ apiKey }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.ok(!error.message.includes("canary"), error.message);
    }
    assert.equal(thrown(() => new E2BSandbox({ apiKey: 7 })).code, "ERR_SANDBOX_INVALID_ARG");
  });

  test("an unusual key is not judged here", async (t) => {
    const { emulator, make } = await open(t);
    emulator.settings.apiKeys.push("e2b_Some.Other-Form_42");
    await make({ apiKey: "e2b_Some.Other-Form_42" }).start();
  });

  test("lateAuth: the first use rejects instead", async () => {
    const sandbox = new E2BSandbox({ lateAuth: true });
    const error = await rejection(sandbox.shell("true"));
    assert.equal(error.code, "ERR_SANDBOX_MISSING_KEY");
    assert.match(error.message, /missing API key/);
    await sandbox.close();
  });
});

describe("options", () => {
  test("sdk and client are refused in words", () => {
    for (const name of ["sdk", "client"]) {
      const error = thrown(() => new E2BSandbox({ apiKey: "k", [name]: {} }));
      assert.match(error.message, new RegExp(`${name}.*protocol itself.*baseURL`, "s"));
    }
  });

  test("wrong ones throw, and name what is meant", () => {
    const wrong = [
      [{ tempalte: "x" }, /tempalte.*template/],
      [{ template: 7 }, /template/],
      [{ lifetimeSeconds: 0 }, /lifetimeSeconds.*86400/],
      [{ lifetimeSeconds: 1.5 }, /lifetimeSeconds.*86400/],
      [{ lifetimeSeconds: 86401 }, /lifetimeSeconds.*86400/],
      [{ defaultTimeoutSeconds: 3601 }, /defaultTimeoutSeconds.*3600/],
      [{ baseURL: "ftp://x" }, /baseURL/],
      [{ baseURL: "https://user:sk-canary@x" }, /baseURL/],
      [{ baseURL: "https://x/?a=b" }, /baseURL/],
      [{ sandboxUrl: "nonsense" }, /sandboxUrl/],
      [{ sandboxUrl: "http://x" }, /sandboxUrl.*in the clear/],
      [{ domain: "a/b" }, /domain/],
      [{ domain: "a@b" }, /domain/],
      [{ sandboxId: "../x" }, /sandboxId/],
      [{ env: { "A B": "x" } }, /env/],
      [{ env: { A: 7 } }, /env\.A/],
      [{ metadata: { a: 7 } }, /metadata\.a/],
      [{ metadata: { "cloudsandbox-tag": "x" } }, /cloudsandbox-tag/],
      [{ headers: { "X-API-Key": "x" } }, /X-API-Key.*sets it itself/],
      [{ headers: { "a b": "x" } }, /headers/],
      [{ headers: { a: "x\r\ny: z" } }, /headers/],
      [{ network: { a: 1.5 } }, /network/],
      [{ network: { denyout: ["0.0.0.0/0"] } }, /denyout.*denyOut/],
      [{ network: { denyOut: "0.0.0.0/0" } }, /network\.denyOut.*array/],
      [{ network: { allowOut: ["a", 7] } }, /network\.allowOut\[1\]/],
      [{ network: { allowPublicTraffic: "no" } }, /network\.allowPublicTraffic/],
      [{ network: { maskRequestHost: 7 } }, /network\.maskRequestHost/],
      [{ network: { httpsPorts: [443, 70000] } }, /network\.httpsPorts\[1\].*65535/],
      [{ network: { egressProxy: "sk-canary:1080" } }, /network\.egressProxy/],
      [{ network: { egressProxy: { password: "sk-canary" } } }, /network\.egressProxy\.address/],
      [{ network: { egressProxy: { address: "a:1", pasword: "sk-canary" } } }, /pasword.*password/],
      [{ network: { rules: [] } }, /network\.rules.*object/],
      [{ network: { rules: { "a.b": {} } } }, /network\.rules\.a\.b.*array/],
      [{ network: { rules: { "a.b": [{ transfrom: {} }] } } }, /transfrom.*transform/],
      [{ network: { rules: { "a.b": [{ transform: { header: {} } }] } } }, /header.*headers/],
      [{ network: { rules: { "a.b": [{ transform: { headers: { a: 7 } } }] } } }, /headers/],
      [{ network: "none" }, /network/],
      [{ secure: "yes" }, /secure/],
      [{ ca: "/etc/ca.pem" }, /ca.*PEM/],
      [{ proxy: 7 }, /proxy/],
      [{ interpreter: 1 }, /interpreter/],
      [{ owned: true }, /`owned` goes with `sandboxId`.*leave `owned` out/],
      [{ owned: false }, /`owned` goes with `sandboxId`/],
      [{ timeoutMs: 1 }, /`defaultTimeoutSeconds` or `lifetimeSeconds`\? It counts seconds/],
      [{ requestTimeoutMs: 1 }, /`startTimeoutSeconds`\?/],
      [{ envs: {} }, /`env`\?/],
      [{ envVars: {} }, /`env`\?/],
      [{ accessToken: "sk-canary" }, /`apiKey`\?/],
      [{ key: "sk-canary" }, /`apiKey`\?/],
      [{ apikey: "sk-canary" }, /`apiKey`\?/],
      [{ apiUrl: "sk-canary" }, /`baseURL`\?/],
      [{ image: "x" }, /`template`\?/],
      [{ lifecycle: {} }, /`autoPause` or `autoResume`\?/],
      [{ cwd: "x" }, /`cwd`; it is given with each call: exec\(\) takes it/],
      [{ language: "js" }, /`language`; it is given with each call/],
    ];
    for (const [options, words] of wrong) {
      const error = thrown(() => new E2BSandbox({ apiKey: "k", ...options }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", inspect(options));
      assert.match(error.message, words);
      assert.ok(!error.message.includes("canary"), error.message);
    }
  });

  test("everything that a create can be told is in its body", async (t) => {
    const { engine, make } = await open(t);
    const network = {
      denyOut: ["0.0.0.0/0"],
      allowOut: ["example.com"],
      allowPublicTraffic: true,
      maskRequestHost: "localhost:${PORT}",
      httpsPorts: [8443],
      egressProxy: { address: "proxy.test:1080", username: "u", password: "p" },
      rules: { "example.com": [{ transform: { headers: { "x-a": "b" } } }] },
    };
    await make({
      template: "code-interpreter-v1",
      lifetimeSeconds: 77,
      metadata: { job: "42", ["sp ace"]: "\u00e9" },
      env: { LANG: "C.UTF-8" },
      allowInternetAccess: false,
      network,
      autoPause: true,
      autoResume: false,
    }).start();
    const { "cloudsandbox-tag": tag, ...metadata } = JSON.parse(engine.requests(CREATE)[0].body).metadata;
    assert.match(tag, /^[0-9a-f]{32}$/);
    assert.deepEqual(metadata, { job: "42", "sp ace": "\u00e9" });
    const { metadata: _, ...body } = JSON.parse(engine.requests(CREATE)[0].body);
    assert.deepEqual(body, {
      templateID: "code-interpreter-v1",
      timeout: 77,
      envVars: { LANG: "C.UTF-8" },
      network,
      allow_internet_access: false,
      autoPause: true,
      autoResume: { enabled: false },
    });
  });

  test("a manifest: its template, variables and network are what is asked for", async (t) => {
    const { engine, make } = await open(t);
    const sent = async (manifest) => {
      await make({ manifest, verifyNetwork: manifest.network?.default === "allow" ? undefined : false }).start();
      const { metadata: _, timeout: __, ...body } = JSON.parse(engine.requests(CREATE).at(-1).body);
      return body;
    };
    assert.deepEqual(await sent({ image: "code-interpreter-v1", env: { A: "1" }, network: {} }), {
      templateID: "code-interpreter-v1", envVars: { A: "1" }, allow_internet_access: false,
    });
    assert.deepEqual(await sent({ network: { allowedHosts: ["*.example.com", "192.0.2.0/24"] } }), {
      templateID: "base", network: { allowOut: ["*.example.com", "192.0.2.0/24"], denyOut: ["0.0.0.0/0"] },
    });
    assert.deepEqual(await sent({ network: { default: "allow", deniedHosts: ["192.0.2.7"] } }), {
      templateID: "base", network: { denyOut: ["192.0.2.7"] },
    });
    assert.deepEqual(await sent({ network: { default: "allow" } }), { templateID: "base", allow_internet_access: true });
  });

  test("nothing is in its body that was not asked for", async (t) => {
    const { engine, make } = await open(t);
    await make().start();
    const { metadata, ...body } = JSON.parse(engine.requests(CREATE)[0].body);
    assert.deepEqual(body, { templateID: "base", timeout: 300 });
    assert.deepEqual(Object.keys(metadata), ["cloudsandbox-tag"]);
  });

  test("variables of the sandbox reach its commands, and a call's own win", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ env: { A: "sandbox", B: "sandbox" } });
    assert.equal((await sandbox.shell("echo $A $B", { env: { B: "call" } })).output, "sandbox call\n");
  });

  test("secure: false asks the first generation, and there is no token", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ secure: false });
    assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
    assert.equal(engine.count(CREATE), 0);
    assert.equal(JSON.parse(engine.requests("POST /sandboxes")[0].body).secure, undefined);
    assert.equal(engine.requests("process.Process/Start")[0].headers["x-access-token"], undefined);
  });

  test("addresses from the environment", async (t) => {
    const { emulator } = await open(t);
    await withVariables({ E2B_API_URL: emulator.apiUrl, E2B_SANDBOX_URL: emulator.sandboxUrl }, async () => {
      const sandbox = new E2BSandbox({ apiKey: emulator.apiKey });
      assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
      await sandbox.close();
    });
  });

  test("a base URL may have a path and a '/' at its end", async (t) => {
    const { emulator, engine, make } = await open(t);
    engine.fault("POST /behind/v2/sandboxes", { instead: replies.json(401, { message: "reached" }) });
    assert.match((await rejection(make({ baseURL: `${emulator.apiUrl}/behind/` }).start())).message, /reached/);
  });

  test("debug: fixed addresses on this machine, no key, nothing created", async () => {
    for (const variables of [{}, { E2B_DEBUG: "True" }]) {
      await withVariables(variables, async () => {
        const sandbox = new E2BSandbox({ debug: variables.E2B_DEBUG ? undefined : true });
        await sandbox.start();
        assert.equal(sandbox.sandboxId, "debug_sandbox_id");
        const error = await rejection(sandbox.readFile("f"));
        assert.match(error.message, /localhost:49983/);
        await sandbox.close();
      });
    }
  });

  test("headers of the user go to both hosts", async (t) => {
    const { engine, make } = await open(t);
    await make({ headers: { "x-team": "blue" } }).shell("true");
    assert.deepEqual(engine.log.map((entry) => entry.headers["x-team"]), ["blue", "blue"]);
  });

  test("`ca` may be bytes", async (t) => {
    const tls = makeCertificate(["127.0.0.1"]);
    const { make } = await open(t, { tls });
    await make({ ca: Buffer.from(tls.cert) }).start();
  });
});

describe("secrets", () => {
  test("the key goes to the control plane only, the token to the sandbox only", async (t) => {
    const { engine, emulator, make } = await open(t);
    const sandbox = make({ template: "code-interpreter-v1" });
    await sandbox.run("1");
    await sandbox.writeFile("f", "x");
    const abort = new AbortController();
    await sandbox.exec({ command: "echo; sleep 300", signal: abort.signal, onStdout: () => abort.abort() });
    await sandbox.setLifetime(100);
    const token = emulator.sandbox(sandbox.sandboxId).envdAccessToken;
    await sandbox.close();
    for (const { listener, route, headers, path, body } of engine.log) {
      const control = listener === "api";
      assert.equal(headers["x-api-key"], control ? emulator.apiKey : undefined, route);
      assert.equal(headers["x-access-token"], control ? undefined : token, route);
      assert.ok(!path.includes(token) && !path.includes(emulator.apiKey));
      assert.ok(!body.includes(token) && !body.includes(emulator.apiKey));
    }
    assert.equal(engine.log.length, 7);
  });

  test("C083 no error and no object shows the key, the token or a variable", async (t) => {
    const secrets = ["e2b_skcanary7f3a", "sk-env-canary", "sk-header-canary", "sk-call-canary"];
    const { engine, emulator, make } = await open(t, { apiKeys: [secrets[0]] });
    const options = { env: { SECRET: secrets[1] }, headers: { "x-secret": secrets[2] } };
    const env = { TOKEN: secrets[3] };
    const seen = [];
    const look = (error) => {
      seen.push(error.message, error.stack, String(error.cause), JSON.stringify(error), inspect(error, { depth: 9, showHidden: true }));
    };
    // The services repeat the header fields that they were sent.
    let told = [secrets[0], secrets[2]];
    const echo = (status, text) => replies.json(status, { code: status, message: `${text} ${told.join(" ")}` });
    const START = "process.Process/Start";
    for (const instead of [echo(401, "bad"), echo(403, "no"), echo(404, "template 'x' not found"), echo(500, "no"), "reset"]) {
      const sandbox = make(options);
      engine.fault(CREATE, { instead });
      look(await rejection(sandbox.start()));
      seen.push(inspect(sandbox, { depth: 9, showHidden: true, getters: true }), JSON.stringify(sandbox));
    }
    look(await rejection(make({ ...options, baseURL: "http://127.0.0.1:1" }).start()));
    const sandbox = make(options);
    await sandbox.start();
    secrets.push(emulator.sandbox(sandbox.sandboxId).envdAccessToken);
    told = [secrets[2], secrets[4]];
    for (const instead of [echo(401, "bad"), replies.html(502), proxyReplies.tooManyConnections("i"), "reset"]) {
      engine.fault(START, { instead });
      look(await rejection(sandbox.shell("true", { env })));
    }
    look(await rejection(sandbox.shell("true", { env, timeoutSeconds: -1 })));
    look(await rejection(sandbox.exec({ command: "true", env, cwd: "no such folder" })));
    look(await rejection(sandbox.readFile(".")));
    emulator.lose(sandbox.sandboxId);
    look(await rejection(sandbox.shell("true", { env })));
    for (const text of seen) for (const secret of secrets) assert.ok(!text?.includes(secret), text);
  });
});

describe("the toolkit", () => {
  test("C046 C074 names, order, and no request before the first call", async (t) => {
    const { engine, options } = await open(t);
    const toolkit = new E2BSandboxToolkit(options);
    assert.equal(toolkit.name, "sandbox-e2b");
    const names = toolkit.getTools().map((tool) => tool.name);
    assert.deepEqual(names, ["sandbox_e2b_run", "sandbox_e2b_shell", "sandbox_e2b_write_file", "sandbox_e2b_read_file"]);
    assert.ok(toolkit.getSandbox() instanceof E2BSandbox);
    assert.equal(engine.log.length, 0);
    const [run] = toolkit.getTools();
    assert.equal(await run.execute({ code: "print(6*7)" }), '{"output":"42\\n","exitCode":0}');
    await toolkit.close();
    assert.equal(engine.count("DELETE /sandboxes/{id}"), 1);
  });
});
