// The emulated sandboxes have this machine's /tmp, where the program that runs a command has its folder. A
// real one takes it along when it goes.
import { existsSync, rmSync } from "node:fs";

/** @typedef {{ log: { body: string }[] }} Log of an emulator's engine */

/** Folders of the commands that were sent, and that are still there. @param {Log} engine */
export function commandFolders(engine) {
  const tags = engine.log.flatMap(({ body }) => body.match(/(?<=' sh )[0-9a-f]{32}/) ?? []);
  const names = ["", ".stop", ".text", ".input", ".env"];
  return [...new Set(tags)].flatMap((tag) => names.map((name) => `/tmp/.cloudsandbox-${tag}${name}`)).filter(existsSync);
}

/** For sandboxes that have gone while a command ran. @param {Log} engine */
export function removeCommandFolders(engine) {
  for (const folder of commandFolders(engine)) rmSync(folder, { recursive: true, force: true });
}
