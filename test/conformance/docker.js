// The rows of containers: on the emulator, and on the real engines where `scripts/engines` has started some.
import path from "node:path";
import { after } from "node:test";

import { DockerSandbox, SandboxAgent } from "cloudsandbox";

import { startDocker } from "../emulators/docker/index.js";
import { ask, containers, engines, removeContainer } from "../support/engines.js";

const FACTS = {
  languages: ["python", "node", "shell"],
  keepsStreamOrder: true,
  separatesStreams: true,
  listsFiles: true,
  onThisMachine: false,
  refusesControlCharacters: false,
  replacesFilesAtOnce: false,
  knowsHome: true,
  background: true,
  choosesShell: true,
  mainFile: true,
  manifest: {
    keeps: ["image", "workingDir", 'network.default: "deny"', "resources.cpus", "resources.memoryMb", "resources.diskMb", "mounts"],
    instead: { image: undefined, workingDir: undefined },
  },
};

/** A row over one emulator; each world has a label of its own. */
function emulatorRow(name, emulator, closer) {
  let worlds = 0;
  return {
    name,
    providerId: "docker",
    facts: FACTS,
    world(t) {
      const track = closer(t);
      const world = `${(worlds += 1)}`;
      let sandboxes = 0;
      const image = `world:${world}`;
      const { images } = emulator.settings;
      const own = () => [...emulator.containers.values()].filter(({ spec }) => spec.Labels.world === world);
      images.add(image);
      // A container's working directory is this machine's: no two have the same.
      const options = () => ({
        host: emulator.host, image, pull: "never", labels: { world }, workingDir: path.join(emulator.base, `${world}-${(sandboxes += 1)}`),
      });
      return {
        options,
        make: (more) => track(new DockerSandbox({ ...options(), ...more })),
        existing: () => own().map(({ id }) => id),
        breakCreation() {
          images.delete(image);
          return () => images.add(image);
        },
        lose: (sandbox) => emulator.lose(sandbox.sandboxId),
      };
    },
  };
}

/** @param {(t: any) => (item: any) => any} closer closes what a test has made */
export async function dockerRows(closer) {
  const rows = [];
  for (const kind of /** @type {const} */ (["docker", "podman"])) {
    const emulator = await startDocker({ kind });
    after(() => emulator.close());
    rows.push(emulatorRow(kind, emulator, closer));
  }
  return rows;
}

/** A row over a real engine; each world has a label and a name of the image of its own. */
function engineRow(engine, closer) {
  let worlds = 0;
  return {
    name: engine.name,
    providerId: "docker",
    facts: { ...FACTS, ownLoopback: true },
    world(t) {
      const world = `${process.pid}-${(worlds += 1)}`;
      const image = `cloudsandbox/world-${world}`;
      const name = () => ask(engine, "POST", `/images/cloudsandbox/python:latest/tag?repo=${image}&tag=latest`);
      const forget = () => ask(engine, "DELETE", `/images/${image}:latest`);
      name();
      const track = closer(t, () => {
        forget();
        for (const { Id } of containers(engine, `world=${world}`)) removeContainer(engine, Id);
      });
      const options = () => ({ host: engine.host, image, pull: "never", labels: { world } });
      return {
        options,
        make: (more) => track(new DockerSandbox({ ...options(), ...more })),
        existing: () => containers(engine, `world=${world}`).map(({ Id }) => Id),
        breakCreation() {
          forget();
          return name;
        },
        lose: (sandbox) => removeContainer(engine, sandbox.sandboxId),
      };
    },
  };
}

/** @param {(t: any) => (item: any) => any} closer */
export function engineRows(closer) {
  return engines.map((engine) => engineRow(engine, closer));
}

/** Agents with containers of their own, over these rows. @param {any[]} rows @param {(t: any) => (item: any) => any} closer */
export function dockerAgents(rows, closer) {
  return rows.map((row) => ({
    name: `docker agent over ${row.name}`,
    facts: { abort: "reason", language: "python" },
    world(t) {
      const { options } = row.world(t);
      const track = closer(t);
      return { make: (config) => track(new SandboxAgent({ backend: "docker", docker: options(), ...config })) };
    },
  }));
}
