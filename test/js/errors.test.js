// The error classes, and what becomes of the addon's plain error objects.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import {
  PathSecurityError,
  SANDBOX_ERROR_CODES,
  SandboxError,
  captureSite,
  errorFromNative,
  isNativeError,
} from "../../lib/errors.js";

const plain = (members = {}) => ({
  name: "ENET",
  code: "ERR_SANDBOX_NETWORK",
  message: "refused",
  status: 0,
  provider: "local",
  retryable: true,
  mayHaveRun: false,
  ...members,
});

describe("errors", () => {
  test("SandboxError has its members, and absent ones are absent", () => {
    const cause = new Error("why");
    const error = new SandboxError("text", { code: "ERR_SANDBOX_AUTH", provider: "e2b", status: 401, cause });
    assert.ok(error instanceof Error);
    assert.equal(error.name, "SandboxError");
    assert.equal(String(error), "SandboxError: text");
    assert.equal(error.cause, cause);
    assert.deepEqual(
      { ...error },
      { code: "ERR_SANDBOX_AUTH", provider: "e2b", status: 401, retryable: false, mayHaveRun: false },
    );
    const bare = new SandboxError("text", {
      code: "ERR_SANDBOX_CLOSED",
      provider: undefined,
      status: undefined,
    });
    assert.deepEqual({ ...bare }, { code: "ERR_SANDBOX_CLOSED", retryable: false, mayHaveRun: false });
    assert.ok(!("cause" in bare));
  });

  test("an error without a known code is refused in words", () => {
    for (const details of [undefined, null, {}, "ERR_SANDBOX_AUTH", { code: "EAUTH" }, { code: 7 }]) {
      assert.throws(() => new SandboxError("text", details), {
        name: "SandboxError",
        code: "ERR_SANDBOX_INVALID_ARG",
        message: /second argument.*`code`/,
      });
    }
  });

  test("PathSecurityError is a SandboxError with its own name", () => {
    const error = new PathSecurityError("outside", { code: "ERR_SANDBOX_INVALID_ARG" });
    assert.ok(error instanceof SandboxError);
    assert.equal(error.name, "PathSecurityError");
    assert.ok(!Object.keys(error).includes("name"));
  });

  test("the list of codes is frozen, unique and prefixed", () => {
    assert.ok(Object.isFrozen(SANDBOX_ERROR_CODES));
    assert.equal(new Set(SANDBOX_ERROR_CODES).size, SANDBOX_ERROR_CODES.length);
    assert.ok(SANDBOX_ERROR_CODES.every((code) => /^ERR_SANDBOX_[A-Z_]+$/.test(code)));
  });

  test("errorFromNative takes the class, the members and the caller's stack", () => {
    function callerOfTheMethod() {
      return theMethod();
    }
    function theMethod() {
      return captureSite(theMethod);
    }
    const site = callerOfTheMethod();
    const error = errorFromNative(plain(), site);
    assert.deepEqual(
      { ...error },
      { code: "ERR_SANDBOX_NETWORK", provider: "local", retryable: true, mayHaveRun: false },
    );
    const [first, second] = error.stack.split("\n");
    assert.equal(first, "SandboxError: refused");
    assert.match(second, /at callerOfTheMethod .*errors\.test\.js/);
    assert.doesNotMatch(error.stack, /at theMethod/);
    const path = errorFromNative(
      plain({ name: "EPATH", code: "ERR_SANDBOX_INVALID_ARG", status: 404, provider: null }),
      site,
    );
    assert.ok(path instanceof PathSecurityError);
    assert.equal(path.status, 404);
    assert.ok(!("provider" in path));
    assert.match(path.stack, /^PathSecurityError: refused\n {4}at callerOfTheMethod/);
  });

  test("a message of several lines, and no frames at all", () => {
    const message = "first\n    at second";
    assert.equal(errorFromNative(plain({ message }), { stack: "Error" }).stack, `SandboxError: ${message}`);
    assert.ok(errorFromNative(plain({ message })).stack.startsWith("SandboxError: first"));
  });

  test("isNativeError tells the addon's objects from everything else", () => {
    assert.ok(isNativeError(plain()));
    for (const value of [
      null,
      undefined,
      1,
      "x",
      {},
      new Error("x"),
      new SandboxError("x", { code: "ERR_SANDBOX_TLS" }),
    ]) {
      assert.ok(!isNativeError(value), inspect(value));
    }
  });
});
