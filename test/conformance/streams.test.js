// Files in parts, as web streams: readStream and writeStream.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { providers } from "./providers.js";

/** Bytes of the first parts; later ones have up to four times as many. */
const PART = 1024 * 1024;
const codeOf = async (promise) => (await rejection(promise)).code;
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Bytes that repeat nowhere at a distance of parts. */
function bytesOf(length) {
  const bytes = new Uint8Array(length);
  for (let i = 0, x = 1; i < length; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    bytes[i] = x >>> 24;
  }
  return bytes;
}

async function collect(stream) {
  const hash = createHash("sha256");
  let length = 0;
  for await (const chunk of stream) {
    assert.ok(chunk.constructor === Uint8Array && chunk.length > 0 && chunk.length <= 4 * PART);
    length += chunk.length;
    hash.update(chunk);
  }
  return { length, digest: hash.digest("hex") };
}

async function put(sandbox, path, chunks, options) {
  const writer = (await sandbox.writeStream(path, options)).getWriter();
  for (const chunk of chunks) await writer.write(chunk);
  await writer.close();
}

const namesIn = async (sandbox, dir) => (await sandbox.shell(`ls -A ${dir}`)).output.split("\n").filter(Boolean);

for (const provider of providers) {
  describe(`streams, ${provider.name}`, { concurrency: 4 }, () => {
    test("a file of several parts is written and read, byte for byte", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal(sandbox.capabilities.streams, true);
      const bytes = bytesOf(2 * PART + 12345);
      const chunks = [0, 5, 70_000, PART, PART + 1].map((at, i, all) => bytes.subarray(at, all[i + 1]));
      await put(sandbox, "new dir/- big", chunks);
      const sum = (await sandbox.shell("sha256sum < 'new dir/- big'")).output.slice(0, 64);
      assert.equal(sum, digest(bytes));
      assert.deepEqual(await collect(await sandbox.readStream("new dir/- big")), { length: bytes.length, digest: digest(bytes) });
      assert.deepEqual(await namesIn(sandbox, "'new dir'"), ["- big"]);
    });

    test("small files, whole parts, empty ones, text, and what is not there", async (t) => {
      const sandbox = provider.world(t).make();
      await put(sandbox, "t", ["h", "ä", new Uint8Array([10])]);
      assert.equal(await sandbox.readFile("t"), "hä\n");
      await put(sandbox, "empty", []);
      assert.equal(await sandbox.readFile("empty"), "");
      assert.deepEqual(await collect(await sandbox.readStream("empty")), { length: 0, digest: digest("") });
      const exact = bytesOf(PART);
      await put(sandbox, "exact", [exact]);
      assert.deepEqual(await collect(await sandbox.readStream("exact")), { length: PART, digest: digest(exact) });
      assert.equal(await sandbox.readStream("no/such/file"), null);
      assert.equal(await codeOf(sandbox.readStream("t/below")), "ERR_SANDBOX_INVALID_ARG");
      await sandbox.shell("mkdir d");
      assert.equal(await codeOf(sandbox.readStream("d")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(put(sandbox, "d", [bytesOf(10)])), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(put(sandbox, "d", [exact, "more"])), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(put(sandbox, "d/.", [exact, "more"])), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(put(sandbox, "t", [42])), "ERR_SANDBOX_INVALID_ARG");
      assert.deepEqual([await namesIn(sandbox, "d"), await sandbox.readFile("t")], [[], "hä\n"]);
    });

    test("a file that is replaced keeps its mode and the link to it, and is the old one until the end", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir d; printf old > d/f; chmod 750 d/f; ln -s d/f link");
      const writer = (await sandbox.writeStream("link")).getWriter();
      await writer.write(new Uint8Array(PART + 1));
      assert.equal(await sandbox.readFile("d/f"), "old");
      const listed = [...(await sandbox.listDirectory()), ...(await sandbox.listDirectory("d"))].map(({ name }) => name);
      if (sandbox.capabilities.list) listed.push(...(await sandbox.listFiles()).map(({ path }) => path));
      assert.deepEqual(listed.filter((name) => name.includes(".cloudsandbox-") && /part|piece/.test(name)), []);
      await writer.close();
      const { type, size, mode } = await sandbox.stat("d/f");
      assert.deepEqual([type, size, mode], ["file", PART + 1, 0o750]);
      assert.equal((await sandbox.shell("readlink link")).output.trim(), "d/f");
    });

    test("what is aborted, by the stream or by a signal, leaves the file as it was and nothing beside it", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("d/f", "old");
      const reason = new Error("enough");
      const writer = (await sandbox.writeStream("d/f")).getWriter();
      await writer.write(new Uint8Array(PART + 1));
      await writer.abort(reason);
      const controller = new AbortController();
      const other = (await sandbox.writeStream("d/f", { signal: controller.signal })).getWriter();
      other.closed.catch(() => {});
      await other.write(new Uint8Array(PART + 1));
      const late = other.write(new Uint8Array(PART));
      controller.abort(reason);
      assert.equal(await rejection(late), reason);
      assert.deepEqual([await namesIn(sandbox, "d"), await sandbox.readFile("d/f")], [["f"], "old"]);
      assert.equal(await rejection(sandbox.writeStream("d/f", { signal: controller.signal })), reason);
      assert.equal(await rejection(sandbox.readStream("d/f", { signal: controller.signal })), reason);
    });

    test("a reader that stops ends the reading; a part is read when there is room for it", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell(`head -c ${5 * PART} /dev/zero > f`);
      let parts = 0;
      const onFile = ({ operation, providerId, sandboxId }) => {
        if (operation === "readPart" && providerId === sandbox.providerId && sandboxId === sandbox.sandboxId) parts++;
      };
      subscribe("cloudsandbox:file", onFile);
      t.after(() => unsubscribe("cloudsandbox:file", onFile));
      const reader = (await sandbox.readStream("f")).getReader();
      assert.equal((await reader.read()).value.length, PART);
      await sandbox.shell(":");
      await reader.cancel();
      assert.deepEqual(await reader.read(), { value: undefined, done: true });
      await sandbox.shell(":");
      assert.ok(parts <= 2, `${parts} parts`);
      const controller = new AbortController();
      const stream = await sandbox.readStream("f", { signal: controller.signal });
      const reason = new Error("enough");
      controller.abort(reason);
      assert.equal(await rejection(collect(stream)), reason);
    });

    test("a file that changes while it is read is no mixture; what was written and goes away is said", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell(`head -c ${3 * PART} /dev/zero > f`);
      const reader = (await sandbox.readStream("f")).getReader();
      await reader.read();
      await reader.read();
      await sandbox.shell(`head -c ${3 * PART} /dev/zero > other; printf x >> other; mv other f`);
      // The third part may have been read ahead, before the change.
      const error = await reader.read().then(() => undefined, (reason) => reason);
      if (error) assert.equal(error.code, "ERR_SANDBOX_CONFLICT");
      const second = (await sandbox.readStream("f")).getReader();
      await sandbox.shell("printf y >> f");
      const third = await rejection((async () => { while (!(await second.read()).done); })());
      assert.equal(third.code, "ERR_SANDBOX_CONFLICT");
      assert.match(third.message, /copy it first/);
      const writer = (await sandbox.writeStream("d/g")).getWriter();
      writer.closed.catch(() => {});
      await writer.write(new Uint8Array(PART + 1));
      await sandbox.shell("rm -f d/.cloudsandbox-*.part");
      const lost = await rejection(writer.close());
      assert.equal(lost.code, "ERR_SANDBOX_CONFLICT");
      assert.deepEqual(await namesIn(sandbox, "d"), []);
    });

    test("files of the kernel's, whose size is a fiction, are read to their end", async (t) => {
      const sandbox = provider.world(t).make();
      if (sandbox.capabilities.local) return; // it reads the workspace only
      for (const path of ["/sys/devices/system/cpu/possible", "/proc/self/limits"]) {
        const { output, exitCode } = await sandbox.shell(`cat ${path}`);
        if (exitCode === 0) assert.deepEqual(await collect(await sandbox.readStream(path)), { length: output.length, digest: digest(output) });
      }
    });

    test("limits", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("f", "12345");
      assert.deepEqual((await collect(await sandbox.readStream("f", { maxBytes: 5 }))).length, 5);
      assert.equal(await codeOf(sandbox.readStream("f", { maxBytes: 4 })), "ERR_SANDBOX_TOO_LARGE");
      assert.equal(await codeOf(put(sandbox, "f", ["123", "456"], { maxBytes: 5 })), "ERR_SANDBOX_TOO_LARGE");
      assert.equal(await sandbox.readFile("f"), "12345");
      for (const maxBytes of [0, 1.5, "9"]) assert.equal(await codeOf(sandbox.readStream("f", { maxBytes })), "ERR_SANDBOX_INVALID_ARG");
      await sandbox.close();
      assert.equal(await codeOf(sandbox.readStream("f")), "ERR_SANDBOX_CLOSED");
      assert.equal(await codeOf(sandbox.writeStream("f")), "ERR_SANDBOX_CLOSED");
    });
  });
}
