// Sandboxes on the real engines, and what is left of them.
import assert from "node:assert/strict";

import { DockerSandbox } from "cloudsandbox";

import { ask, containers, engines, missing, removeContainer } from "../support/engines.js";

export { ask, containers, engines, missing, removeContainer };

/** What a rootless engine on an old kernel cannot keep; it says so when it is asked for. */
export const keepsLimits = ({ name }) => name !== "rootless";

let worlds = 0;

/**
 * A label of this test's own, and sandboxes that bear it. When the test has ended there must be none.
 *
 * @param {any} t
 * @param {{ host: string, socket: string, name: string }} engine
 */
export function open(t, engine) {
  const world = `${process.pid}-${(worlds += 1)}`;
  const made = [];
  const left = () => containers(engine, `test=${world}`);
  t.after(async () => {
    await Promise.all(made.map((sandbox) => sandbox.close().catch(() => {})));
    const ids = left().map(({ Id }) => Id);
    for (const id of ids) removeContainer(engine, id);
    assert.deepEqual(ids, [], "containers that no close() has removed");
  });
  const options = { host: engine.host, image: "cloudsandbox/python", pull: "never", labels: { test: world } };
  return {
    options,
    left,
    make(more) {
      const sandbox = new DockerSandbox({ ...options, ...more });
      made.push(sandbox);
      return sandbox;
    },
  };
}
