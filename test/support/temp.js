// Temporary directories that belong to one test, so that what a sandbox leaves there can be
// counted.
import { chmodSync, lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/**
 * Makes a directory of its own, removed (with whatever modes its contents have) when the test ends.
 */
export function tempDir(t) {
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), "sbx-test-")));
  t.after(() => removeTree(dir));
  return dir;
}

/** Removes a tree whose directories may be unreadable. */
export function removeTree(dir) {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch {
    openUp(dir);
    rmSync(dir, { recursive: true, force: true });
  }
}

function openUp(dir) {
  chmodSync(dir, 0o700);
  for (const name of readdirSync(dir)) {
    const child = path.join(dir, name);
    if (lstatSync(child).isDirectory()) openUp(child);
  }
}

/** All paths below `dir`, sorted, relative, links not followed. */
export function tree(dir) {
  return readdirSync(dir, { recursive: true }).sort();
}
