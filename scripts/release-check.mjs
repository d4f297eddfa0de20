// npm run release:check: all that is looked at before the package is published, the cheap first. It ends at the first step that
// fails. It publishes nothing; the last line says what would be.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");

/** What stands at the top of the package, and nothing else. */
const TOP = [
  "CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "THIRD_PARTY.md", "docs", "lib", "package.json", "prebuilds", "scripts", "source.tar.br", "third_party", "types",
];
/** What npm runs at an installation. */
const HOOKS = ["preinstall", "install", "postinstall", "prepare"];

/**
 * Where the version stands, and whether all say the same.
 *
 * @param {{ manifest: any, lock: any, changelog: string }} texts
 * @returns {string[]} what is wrong
 */
export function versionFaults({ manifest, lock, changelog }) {
  const { version } = manifest;
  const sections = [...changelog.matchAll(/^## (.*)$/gm)].map(([, title]) => String(title).trim());
  const section = new RegExp(`^\\[?v?${version.replaceAll(".", "\\.")}\\]?(?![\\w.-])`);
  const faults = [
    !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version) && `package.json: ${version} is no version`,
    [lock.version, lock.packages?.[""]?.version].some((locked) => locked !== version) && `package-lock.json is of ${lock.version}, package.json of ${version}; run: npm install --package-lock-only`,
    !section.test(sections[0] ?? "") && `CHANGELOG.md: its first section is "${sections[0]}"; what ${version} changes belongs there, under "## ${version}"`,
    /Nothing has been published yet/.test(changelog) && "CHANGELOG.md says that nothing has been published yet",
  ];
  return faults.filter((fault) => typeof fault === "string");
}

/**
 * What a package has inside, by the names of its files.
 *
 * @param {string[]} files
 * @param {any} manifest the one in the package
 * @returns {string[]} what is wrong
 */
export function contentFaults(files, manifest) {
  /** @param {any} entry @returns {string[]} */
  const filesOf = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry).flatMap(filesOf));
  const named = [...filesOf(manifest.exports), ...filesOf(manifest.bin), ...filesOf(manifest.typesVersions ?? {})];
  const wanted = [...new Set(named.map((name) => path.posix.normalize(name)))];
  const present = new Set(files);
  const scripts = Object.keys(manifest.scripts ?? {});
  return [
    ...TOP.filter((name) => !files.some((file) => file.split("/")[0] === name)).map((name) => `${name} is missing`),
    ...[...new Set(files.map((file) => String(file.split("/")[0])))].filter((name) => !TOP.includes(name)).map((name) => `${name} does not belong into the package`),
    ...wanted.filter((name) => !present.has(name)).map((name) => `package.json names ${name}, which is missing`),
    ...files.filter((name) => name.endsWith(".js") && name.startsWith("lib/") && !present.has(`${name}.map`)).map((name) => `${name} has no map`),
    ...scripts.filter((name) => HOOKS.includes(name)).map((name) => `package.json runs something at "${name}"`),
    ...["dependencies", "devDependencies"].filter((name) => name in manifest).map((name) => `package.json has ${name}`),
    ...(manifest.private ? ["package.json is private"] : []),
  ];
}

/** @param {string[]} faults */
function stopAt(faults) {
  if (faults.length === 0) return;
  console.error(faults.map((fault) => `release: ${fault}`).join("\n"));
  process.exit(1);
}

/** @param {string} program @param {string[]} args */
function step(program, ...args) {
  console.log(`== ${program} ${args.join(" ")}`);
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) stopAt([`${program} ${args.join(" ")}: ${error?.message ?? `ended with ${status}`}`]);
}

/** @param {string} program @param {string[]} args */
function read(program, ...args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) stopAt([`${program}: ${error?.message ?? stderr}`]);
  return stdout;
}

if (process.argv[1] === import.meta.filename) {
  const text = (/** @type {string} */ name) => readFileSync(path.join(root, name), "utf8");
  const manifest = JSON.parse(text("package.json"));
  const changed = read("git", "status", "--porcelain").trim();
  stopAt([
    ...versionFaults({ manifest, lock: JSON.parse(text("package-lock.json")), changelog: text("CHANGELOG.md") }),
    ...(changed ? [`not everything is committed:\n${changed}`] : []),
  ]);
  // The binaries, built twice: the same bytes. Then the package with them: its size, libraries and symbols are checked as it is made.
  step("npm", "run", "--silent", "prebuilds", "--", "--check");
  step("npm", "run", "--silent", "pack");
  const tarball = `build/cloudsandbox-${manifest.version}.tgz`;
  const files = read("tar", "-tzf", tarball).split("\n").filter((name) => name && !name.endsWith("/")).map((name) => name.replace(/^package\//, ""));
  stopAt(contentFaults(files, JSON.parse(read("tar", "-xzOf", tarball, "package/package.json"))));
  step("bash", "test/interop/deploy/run");
  step("bash", "scripts/test-pack");
  console.log(`${tarball} can be published: npm publish ${tarball}`);
}
