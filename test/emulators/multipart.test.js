// The reader of multipart/form-data: whatever the parts hold, and wherever the body was cut on its way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MultipartError, collect, readParts } from "./multipart.js";

/** @param {Buffer} body @param {number[]} cuts */
async function* pieces(body, cuts) {
  let from = 0;
  for (const to of [...cuts, body.length]) {
    yield body.subarray(from, to);
    from = to;
  }
}

async function read(chunks, boundary = "b") {
  const found = [];
  for await (const part of readParts(chunks, boundary)) found.push([part.name, (await collect(part.data)).toString("latin1")]);
  return found;
}

test("multipart at every split, and cut off at every byte", async () => {
  const body = Buffer.from('pre\r\n--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n\r\n--b\r\nA: b\r\ncontent-disposition: form-data; name="y"\r\n\r\n\r\n--\r\n--bx\r\n\r\n--b--\r\n');
  const expected = [["x", ""], ["y", "\r\n--"]];
  for (let at = 0; at <= body.length; at += 1) {
    // "--bx" is a boundary with something wrong behind it.
    await assert.rejects(read(pieces(body, [at])), new MultipartError("expecting a new Part"));
  }
  const good = Buffer.from(body.toString().replace("\r\n--bx\r\n", ""));
  for (let at = 0; at < good.length - 2; at += 1) {
    assert.deepEqual(await read(pieces(good, [at])), expected);
    const cut = pieces(good.subarray(0, at), []);
    if (at < good.length - 4) await assert.rejects(read(cut), new MultipartError("unexpected EOF"));
  }
});

test("multipart: any parts, in any two cuts, are the parts that were written", async () => {
  let state = 7;
  const below = (bound) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % bound;
  };
  // What looks like the boundary, and is not.
  const words = ["\r\n", "\r\n-", "\r\n--", "--b", "\r\n--B", "\r", "\n", "-", "x", "\0", "\xff"];
  for (let round = 0; round < 60; round += 1) {
    const parts = Array.from({ length: below(4) }, (_, i) => [`p${i}`, Array.from({ length: below(7) }, () => words[below(words.length)]).join("")]);
    const written = parts.map(([name, data]) => `--bound\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${data}\r\n`);
    const body = Buffer.from(`${written.join("")}--bound--\r\n`, "latin1");
    for (let first = 0; first <= body.length; first += 1) {
      const second = first + below(body.length - first + 1);
      assert.deepEqual(await read(pieces(body, [first, second]), "bound"), parts);
    }
  }
});
