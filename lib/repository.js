// The address of a git repository in messages: host and path only, and nothing of what may be a secret.
//
// Invariant: what an address holds before its last "@", and after "?" or "#", is shown in no spelling.

/** Shorter pieces of a secret are hidden only as part of a longer one: they occur in any text. */
const LEAST = 3;
/** A user's name that is no secret but a word of every message. */
const PUBLIC = "git";

/**
 * @param {string} repo an URL, "user@host:path" or a path
 * @returns {{ shown: string, hide: (text: string) => string }} shown: "" when it cannot be told apart
 *   from a secret; hide: what git said, without the secrets
 */
export function repositoryWords(repo) {
  const { before, rest, shown } = parts(repo);
  const [, ...extras] = rest.split(/[?#]/);
  const secrets = [repo, before, ...withPieces(before), ...extras, ...extras.flatMap(withPieces)];
  // A path alone is no secret.
  if (shown === repo) return { shown: printable(shown), hide: (text) => text };
  const spellings = [...new Set(secrets.flatMap(spellingsOf))].filter((it) => it.length >= LEAST && it !== PUBLIC);
  // The longest first: what it holds must not be left in pieces.
  spellings.sort((a, b) => b.length - a.length);
  const pattern = new RegExp(spellings.map((it) => it.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|") || "(?!)", "gi");
  return { shown: printable(shown), hide: (text) => text.replace(pattern, "***") };
}

/**
 * What stands before the last "@", what after it, and what may be shown.
 *
 * @param {string} repo
 */
function parts(repo) {
  const isPath = /^(\.{0,2}\/(?!\/)|[^:@?#]*$)/.test(repo) && !/[?#]/.test(repo);
  if (isPath) return { before: "", rest: "", shown: repo };
  const start = /^(.*?:)?\/\//s.exec(repo)?.[0].length ?? 0;
  const address = repo.slice(start);
  const at = address.lastIndexOf("@");
  const before = address.slice(0, Math.max(at, 0));
  const rest = address.slice(at + 1);
  // With a "/", "?" or "#" before the last "@", nobody can say where the password ends.
  if (/[/?#]/.test(before)) return { before, rest, shown: "" };
  if (rest.startsWith("/")) return { before, rest, shown: rest.split(/[?#]/)[0] };
  const plain = start > 0 ? rest : rest.replace(":", "/");
  try {
    const { host, pathname } = new URL(`http://${plain}`);
    return { before, rest, shown: host + pathname };
  } catch {
    return { before, rest, shown: "" };
  }
}

/** Control characters escaped. @param {string} text */
function printable(text) {
  return JSON.stringify(text).slice(1, -1);
}

/** A text and what its separators divide it into. @param {string} text */
function withPieces(text) {
  const colon = text.indexOf(":");
  return [text.slice(colon + 1), ...text.split(/[:/?#@&=]/), ...text.split("&").map((pair) => pair.slice(pair.indexOf("=") + 1))];
}

/** As given, decoded, encoded, and as a shell or C writes it in quotes. @param {string} text */
function spellingsOf(text) {
  const plain = decoded(text);
  return [text, plain].flatMap((it) => [
    it,
    // Through a Buffer, for these throw on half a character.
    encodeURI(Buffer.from(it).toString()),
    encodeURIComponent(Buffer.from(it).toString()),
    it.replaceAll("'", "'\\''"),
    it.replace(/["\\]/g, "\\$&"),
    it.replace(/[\0-\x1f\x7f]/g, "?"), // eslint-disable-line no-control-regex
  ]);
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  }
}
