// What Modal puts into each sandbox for files: one argument in JSON, bytes on its streams, errors as JSON on stderr.
// @ts-check
import { createReadStream, createWriteStream, lstatSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";

const KINDS = /** @type {Record<string, string>} */ ({
  ENOENT: "NotFound", EISDIR: "IsDirectory", ENOTDIR: "NotDirectory", EACCES: "PermissionDenied", EEXIST: "AlreadyExists",
  ENOTEMPTY: "DirectoryNotEmpty",
});

/** @param {string} file */
function entry(file) {
  const stat = lstatSync(file);
  const type = stat.isDirectory() ? "directory" : stat.isSymbolicLink() ? "symlink" : "file";
  return {
    name: path.basename(file), path: file, type, size: stat.size, mode: stat.mode,
    permissions: (stat.mode & 0o7777).toString(8).padStart(4, "0"), owner: String(stat.uid), group: String(stat.gid),
    modified_time: stat.mtimeMs / 1000, symlink_target: type === "symlink" ? readlinkSync(file) : null,
  };
}

/** @type {Record<string, (options: any) => unknown>} */
const verbs = {
  async WriteFile({ path: file }) {
    mkdirSync(path.dirname(file), { recursive: true });
    await pipeline(process.stdin, createWriteStream(file));
  },
  async ReadFile({ path: file }) {
    if (statSync(file).isDirectory()) throw Object.assign(new Error("is a directory"), { code: "EISDIR" });
    await pipeline(createReadStream(file), process.stdout);
  },
  MakeDirectory({ path: file, parents }) {
    mkdirSync(file, { recursive: parents });
  },
  ListFiles({ path: file }) {
    process.stdout.write(JSON.stringify(readdirSync(file).map((name) => entry(path.join(file, name)))));
  },
  Stat({ path: file }) {
    process.stdout.write(JSON.stringify(entry(file)));
  },
  Remove({ path: file, recursive }) {
    if (recursive || !lstatSync(file).isDirectory()) rmSync(file, { recursive });
    else rmdirSync(file);
  },
};

try {
  const [[verb, options]] = Object.entries(JSON.parse(process.argv[2]));
  await verbs[verb](options);
} catch (error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  const kind = KINDS[code ?? ""] ?? "Io";
  const text = kind === "NotFound" ? "path does not exist" : message;
  process.stderr.write(JSON.stringify({ version: 1, error_kind: kind, message: text, detail: message }));
  process.exitCode = 1;
}
