// A wait ends, one way or the other.
import assert from "node:assert/strict";
import { test } from "node:test";
import { watch } from "./watch.js";

test("resolves when somebody has seen it, and is given up in words", async () => {
  const watchers = new Set();
  const seen = [];
  const found = watch(watchers, () => seen[0], () => "such thing");
  seen.push("it");
  for (const look of watchers) look();
  assert.equal(await found, "it");
  const alive = setTimeout(() => {}, 10_000);
  await assert.rejects(watch(watchers, () => false, () => "such thing, but another", 10), {
    message: "emulator: in 0.01 s there was no such thing, but another",
  });
  clearTimeout(alive);
  assert.equal(watchers.size, 0);
});
