// The real engines of containers that `scripts/engines` has started: where they are, and questions to them in the
// midst of a test, by a client that is not ours.
import { spawnSync } from "node:child_process";

/** The engines by name; those that are there. */
export const engines = ["docker", "podman", "rootless"].flatMap((name) => {
  const host = process.env[`CLOUDSANDBOX_TEST_ENGINE_${name.toUpperCase()}`];
  return host ? [{ name, host, socket: host.slice("unix://".length) }] : [];
});

/** Why a kernel allows none of this kind; undefined when it does, or when there are no engines at all. */
export const missing = (name) => process.env[`CLOUDSANDBOX_TEST_ENGINE_${name.toUpperCase()}_MISSING`];

/**
 * One request, waited for.
 *
 * @param {{ socket: string }} engine
 * @param {string} method
 * @param {string} path behind the version
 * @param {unknown} [body]
 * @returns {{ status: number, body: any }} of JSON its value
 */
export function ask({ socket }, method, path, body) {
  const args = ["-s", "--max-time", "60", "--unix-socket", socket, "-X", method, "-w", "\n%{http_code}", `http://engine/v1.41${path}`];
  if (body !== undefined) args.push("-H", "Content-Type: application/json", "--data-binary", "@-");
  const { stdout, status, error } = spawnSync("curl", args, { input: body === undefined ? "" : JSON.stringify(body), encoding: "utf8", maxBuffer: 1 << 26 });
  if (error || status !== 0) throw new Error(`no answer to ${method} ${path}: ${error ?? `curl ended with ${status}`}`);
  const end = stdout.lastIndexOf("\n");
  const text = stdout.slice(0, end);
  let value = text;
  try {
    value = JSON.parse(text);
  } catch {
    // Not every answer is JSON.
  }
  return { status: Number(stdout.slice(end + 1)), body: value };
}

/** Containers with such a label, also those that do not run. @param {{ socket: string }} engine @param {string} label */
export function containers(engine, label) {
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
  return ask(engine, "GET", `/containers/json?all=1&filters=${filters}`).body;
}

/** The container and all in it, gone. @param {{ socket: string }} engine @param {string} id */
export function removeContainer(engine, id) {
  return ask(engine, "DELETE", `/containers/${id}?force=1&v=1`);
}
