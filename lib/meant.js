// What was meant: the one place that knows what others call things, that is other words, other systems, and the SDKs
// of E2B and Daytona. The tables are functions, so that only a mistake pays for them.

/**
 * Options: other names, without capitals, "_" and "-"; then those here of which the allowed ones are
 * meant; then an option by which the only class is known that the row is for.
 *
 * @returns {[others: string, meant: string, only?: string][]}
 */
function otherNames() {
  return [
    ["timeout timeoutseconds timeoutms timeoutsec timeoutsecs timelimit limit maxtime deadline defaulttimeout defaulttimeoutms defaulttimeoutseconds exectimeout", "timeoutSeconds defaultTimeoutSeconds"],
    ["timeout timeoutms lifetime lifetimems ttl endat", "lifetimeSeconds"],
    ["starttimeout createtimeout requesttimeout requesttimeoutms", "startTimeoutSeconds"],
    ["killtimeout graceperiod", "killGraceSeconds"],
    ["lang interpreter runtime kernel", "language"],
    ["dir directory folder path root cwd workdir workingdir workingdirectory", "cwd path"],
    ["dir directory folder path root cwd workdir workingdir workingdirectory", "workspace", "tempDir"],
    ["tmp tmpdir temp", "tempDir"],
    ["envs environment variables vars envvars environmentvariables", "env"],
    ["abortsignal abort cancel", "signal"],
    ["maxbuffer maxoutput outputlimit maxbytes", "maxOutputBytes maxBytes"],
    ["input", "stdin"],
    ["cmd shell script", "command code"],
    ["args arguments", "argv"],
    ["content data text body", "contents"],
    ["filename file filepath", "path files"],
    ["url git", "repo baseURL"],
    ["branch tag commit", "ref"],
    ["clones repos repositories", "gitClones"],
    ["key token apitoken accesstoken", "apiKey"],
    ["endpoint apiurl serverurl host", "baseURL"],
    ["sandbox", "remote"],
    ["id", "sandboxId"],
    ["image templateid alias", "template"],
    ["lifecycle ontimeout", "autoPause autoResume"],
    ["internet internetaccess", "allowInternetAccess"],
    ["template dockerfile snapshotid", "snapshot image"],
    ["name sandboxname", "workspace", "autoStopMinutes"],
    ["autostop autostopinterval", "autoStopMinutes"],
    ["autoarchive autoarchiveinterval", "autoArchiveMinutes"],
    ["autodelete autodeleteinterval", "autoDeleteMinutes"],
    ["resources", "cpu memory disk"],
    ["cpus cores", "cpu"],
    ["ram", "memory"],
    ["osuser username", "user"],
    ["jwt", "jwtToken"],
    ["region", "target"],
    ["key apikey apitoken accesstoken bearertoken authtoken", "token", "projectId"],
    ["key apikey apitoken accesstoken bearertoken authtoken bearer", "token", "allowedHosts"],
    ["dir directory folder root cwd workdir workingdirectory workspace", "workingDir", "allowedHosts"],
    ["verifytls verify tls insecure rejectunauthorized", "ca", "allowedHosts"],
    ["allowhosts allowlist allowout hosts domains networkallowlist", "allowedHosts"],
    ["denyhosts denylist denyout blockedhosts", "deniedHosts"],
    ["sessionid session", "sandboxId", "allowedHosts"],
    ["team orgid organizationid teamslug", "teamId"],
    ["project", "projectId"],
    ["oidc jwt", "oidcToken"],
    ["workspace sandboxname", "name", "projectId"],
    ["template snapshot", "image", "projectId"],
    ["cpu cpus cores", "vcpus"],
    ["labels metadata", "tags"],
    ["network firewall egress internet networkblockall allowinternetaccess", "networkPolicy"],
    ["metadata", "labels"],
    ["labels", "metadata"],
    ["memory ram mem memorylimit", "memoryMb"],
    ["cpu cores nanocpus cpulimit", "cpus"],
    ["pidslimit pidlimit processes", "pids"],
    ["disk workdirsize size", "diskMb"],
    ["volumes volume binds bind mount", "mounts"],
    ["networkmode net", "network", "containerId"],
    ["dir directory folder path root cwd workdir", "workingDir"],
    ["sandboxid id container", "containerId"],
    ["readonly readonlyrootfs", "readOnlyRoot"],
    ["capadd caps cap", "capabilities"],
    ["username uid osuser", "user", "containerId"],
    ["dockerhost socket socketpath endpoint baseurl url apiurl", "host"],
    ["tls certs certdir", "certPath"],
    ["src hostpath from", "source"],
    ["dst dest destination containerpath mountpath to", "target"],
  ];
}

/**
 * Words: other spellings, without capitals, "_" and "-"; then the word here, where
 * that is allowed; and what has to be known besides.
 *
 * @returns {[others: string, meant: string, more?: string][]}
 */
function otherWords() {
  return [
    ["javascript js nodejs mjs cjs", "node"],
    ["typescript ts tsx", "node", "it runs JavaScript, so take the types away first"],
    ["py python3 python2 ipython", "python"],
    ["bash sh zsh shellscript binsh", "shell"],
    ["utf8 text string ascii", "utf8"],
    ["b64", "base64"],
    ["binary bytes buffer uint8array arraybuffer latin1 raw", "buffer"],
  ];
}

/**
 * @param {string} name of an option that is not there
 * @param {readonly string[]} allowed
 * @param {{ names: readonly string[], words: string }} [elsewhere]
 */
export function optionAdvice(name, allowed, elsewhere) {
  const exact = elsewhere?.names.includes(name) && !synonyms(name, allowed).length;
  const near = exact ? undefined : meantName(name, allowed);
  if (near) return `did you mean ${near}`;
  const there = elsewhere && (exact ? name : synonyms(name, elsewhere.names)[0]);
  if (there) return there === name ? elsewhere.words : `${elsewhere.words}, as \`${there}\``;
  return `the options are ${allowed.join(", ")}`;
}

/**
 * The allowed names that a wrong one probably means, as the end of a question: other words for it, a few
 * letters different, or a part of it.
 *
 * @param {string} name
 * @param {readonly string[]} allowed
 * @returns {string | undefined}
 */
export function meantName(name, allowed) {
  const meant = [synonyms, nearest, nearestSynonyms].reduce(
    (/** @type {string[]} */ found, find) => (found.length > 0 ? found : find(name, allowed)),
    [],
  );
  if (meant.length === 0) return undefined;
  const shown = meant.map((it) => `\`${it}\``);
  const last = shown.pop();
  const units = /m(s|illis|illiseconds)$/i.test(name) && meant[0].endsWith("Seconds") ? " It counts seconds, not milliseconds." : "";
  return `${shown.length > 0 ? `${shown.join(", ")} or ` : ""}${last}?${units}`;
}

/**
 * What a wrong word probably means, as the end of a sentence. Only words of the tables are shown.
 *
 * @param {unknown} value
 * @param {readonly unknown[]} allowed
 */
export function wordAdvice(value, allowed) {
  const { word, more } = meantWord(value, allowed) ?? {};
  if (word === undefined) return "";
  return `; did you mean ${JSON.stringify(word)}?${more ? ` (${more})` : ""}`;
}

/**
 * @param {unknown} value
 * @param {readonly unknown[]} allowed
 * @returns {{ word: string, more?: string } | undefined}
 */
export function meantWord(value, allowed) {
  if (typeof value !== "string") return undefined;
  const plain = plainName(value);
  const row = otherWords().find(([others, meant]) => allowed.includes(meant) && others.split(" ").includes(plain));
  if (row) return row[2] ? { word: row[1], more: row[2] } : { word: row[1] };
  const word = allowed.find((it) => typeof it === "string" && plainName(it) === plain);
  return word === undefined ? undefined : { word: /** @type {string} */ (word) };
}

/**
 * The allowed names that the table has for another one.
 *
 * @param {string} name
 * @param {readonly string[]} allowed
 */
function synonyms(name, allowed) {
  const plain = plainName(name);
  const rows = otherNames().filter(([others, , only]) => others.split(" ").includes(plain) && (!only || allowed.includes(only)));
  const meant = rows.flatMap(([, names]) => names.split(" ")).filter((it) => allowed.includes(it));
  return [...new Set(meant)].slice(0, 3);
}

/**
 * The same for a name that differs by a letter from one that the table has.
 *
 * @param {string} name
 * @param {readonly string[]} allowed
 */
function nearestSynonyms(name, allowed) {
  const plain = plainName(name);
  const words = otherNames().flatMap(([others]) => others.split(" "));
  const near = words.filter((word) => word.length > 5 && editDistance(plain, word) === 1);
  return near.map((word) => synonyms(word, allowed)).find((names) => names.length > 0) ?? [];
}

/**
 * @param {string} name
 * @param {readonly string[]} allowed
 */
function nearest(name, allowed) {
  const plain = plainName(name);
  let best;
  let bestDistance = 4;
  for (const candidate of allowed) {
    const limit = Math.max(1, Math.floor(candidate.length / 3));
    const distance = editDistance(plain, plainName(candidate));
    if (distance <= limit && distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  best ??= allowed.find((candidate) => shareStart(plain, plainName(candidate)));
  return best === undefined ? [] : [best];
}

/** @param {string} name */
function plainName(name) {
  return name.slice(0, 60).toLowerCase().replace(/[_-]/g, "");
}

/** @param {string} a @param {string} b */
function shareStart(a, b) {
  return Math.min(a.length, b.length) >= 3 && (a.startsWith(b) || b.startsWith(a));
}

/** Letters that are wrong, missing, too many, or in the order of their neighbours. @param {string} a @param {string} b */
function editDistance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    const above = rows[i - 1];
    for (let j = 1; j <= b.length; j++) {
      const change = above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? rows[i - 2][j - 2] + 1 : Infinity;
      row.push(Math.min(change, above[j] + 1, row[j - 1] + 1, swapped));
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}
