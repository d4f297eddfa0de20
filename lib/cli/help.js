// What there is, and how it is said.

/**
 * @typedef {{ type: "string" | "boolean", short?: string, multiple?: boolean, value?: string, text: string }} Option
 * @typedef {object} Command
 * @property {string} usage
 * @property {string} summary
 * @property {string} [text]
 * @property {string[]} examples
 * @property {Record<string, Option>} options
 * @property {[number, number]} takes how many arguments
 * @property {string} [tooMany] what to do instead of giving more
 * @property {boolean} [rest] what follows the first argument is not ours
 * @property {() => Promise<(values: Record<string, any>, positionals: string[]) => Promise<number>>} load
 */

/** @type {Record<string, Option>} */
const PLACE = {
  provider: { type: "string", short: "p", value: "NAME", text: "where it runs: local, docker, e2b, ... ($CLOUDSANDBOX_PROVIDER, else local)" },
  option: { type: "string", short: "o", multiple: true, value: "NAME=VALUE", text: "an option of that provider, such as image=python:3.12; JSON or text" },
  sandbox: { type: "string", short: "s", value: "ID", text: "go on in a sandbox that --keep left" },
  keep: { type: "boolean", short: "k", text: "do not delete it at the end; its id goes to standard error" },
};
/** @type {Option} */
const JSON_OPTION = { type: "boolean", text: "one JSON object on standard output" };
/** @type {Record<string, Option>} */
const RUNNING = {
  ...PLACE,
  timeout: { type: "string", short: "t", value: "SECONDS", text: "end it after this time, with exit code 124; else no limit" },
  env: { type: "string", short: "e", multiple: true, value: "NAME=VALUE", text: "a variable of the command" },
  cwd: { type: "string", value: "DIR", text: "its working directory" },
  stdin: { type: "boolean", short: "i", text: "give it what is on standard input" },
  json: { ...JSON_OPTION, text: "no live output; one JSON object at the end" },
};

/** @type {Record<string, Command>} */
export const COMMANDS = {
  run: {
    usage: "run [options] [FILE | -]",
    summary: "run a file of code, or what is on standard input",
    text: "The language is told by the file's name (.py, .js, .mjs, .cjs, .sh), or by --language.",
    examples: ["cloudsandbox run --provider docker analyse.py", "echo 'print(6 * 7)' | cloudsandbox run -"],
    options: { language: { type: "string", short: "l", value: "NAME", text: "python, node or shell" }, ...RUNNING },
    takes: [0, 1],
    tooMany: "a program that takes arguments is put into a sandbox (put --keep), and run there with shell",
    load: async () => (await import("./execute.js")).run,
  },
  shell: {
    usage: "shell [options] COMMAND...",
    summary: "run a command line",
    text: "All that follows the options is the command line. Its exit code is that of this program.",
    examples: ["cloudsandbox shell -p e2b 'npm test 2>&1 | tail'", "cloudsandbox shell --keep git clone https://example.com/repo.git"],
    options: RUNNING,
    takes: [1, Infinity],
    rest: true,
    load: async () => (await import("./execute.js")).shell,
  },
  put: {
    usage: "put [options] FILE... DEST",
    summary: "copy files and folders into a sandbox",
    examples: ["cloudsandbox put --keep src data/in.csv .", "cloudsandbox put --sandbox ID notes.txt work/"],
    options: { ...PLACE, json: JSON_OPTION },
    takes: [2, Infinity],
    load: async () => (await import("./files.js")).put,
  },
  get: {
    usage: "get [options] FILE [DEST]",
    summary: "copy a file out of a sandbox",
    text: "DEST is - for standard output.",
    examples: ["cloudsandbox get --sandbox ID result.csv", "cloudsandbox get --sandbox ID log.txt - | tail"],
    options: { ...PLACE, json: JSON_OPTION },
    takes: [1, 2],
    load: async () => (await import("./files.js")).get,
  },
  ls: {
    usage: "ls [options] [DIR]",
    summary: "list the files of a sandbox",
    examples: ["cloudsandbox ls --sandbox ID src"],
    options: { ...PLACE, json: JSON_OPTION },
    takes: [0, 1],
    load: async () => (await import("./files.js")).ls,
  },
  mcp: {
    usage: "mcp [options]",
    summary: "be an MCP server on standard input and output",
    text: "Needs the package @modelcontextprotocol/sdk. The sandbox is deleted when the client hangs up.",
    examples: ["cloudsandbox mcp --provider docker -o image=python:3.12", "cloudsandbox mcp --provider local --workspace . --read-only"],
    options: {
      provider: PLACE.provider,
      option: PLACE.option,
      workspace: { type: "string", short: "w", value: "DIR", text: "work in this folder (local only); it is kept" },
      "read-only": { type: "boolean", text: "only tools that change nothing" },
      "max-chars": { type: "string", value: "N", text: "most characters of a result (50000)" },
    },
    takes: [0, 0],
    load: async () => (await import("./mcp.js")).mcp,
  },
  providers: {
    usage: "providers [options]",
    summary: "list the providers, and what each needs",
    examples: ["cloudsandbox providers"],
    options: { json: JSON_OPTION },
    takes: [0, 0],
    load: async () => (await import("./doctor.js")).providers,
  },
  doctor: {
    usage: "doctor [options]",
    summary: "look at what works on this machine, and what does not",
    text: "Keys are looked for and never shown. The exit code is 1 when something is wrong.",
    examples: ["cloudsandbox doctor"],
    options: { json: JSON_OPTION, offline: { type: "boolean", text: "ask no service whether it answers" } },
    takes: [0, 0],
    load: async () => (await import("./doctor.js")).doctor,
  },
  build: {
    usage: "build",
    summary: "build the native part here, where the package has none that fits",
    text: "It says first what it lacks of compiler, headers and libraries. The exit code is 1 when it cannot build.",
    examples: ["cloudsandbox build"],
    options: {},
    takes: [0, 0],
    load: async () => (await import("./build.js")).build,
  },
  report: {
    usage: "report [options] RECORDS PAGE",
    summary: "make a page of what recordTo() has written",
    examples: ["cloudsandbox report session.ndjson session.html"],
    options: { title: { type: "string", value: "TEXT", text: "heading of the page" }, json: JSON_OPTION },
    takes: [2, 2],
    load: async () => (await import("./files.js")).report,
  },
};

/** Whether a stream shows colours. @param {NodeJS.WriteStream} stream */
export function colourful(stream) {
  return stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
}

/** @param {string} text */
function bold(text) {
  return colourful(process.stdout) ? `\x1b[1m${text}\x1b[22m` : text;
}

/** Rows of two columns. @param {[string, string][]} rows */
export function columns(rows) {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${left.padEnd(width)}${right}\n`).join("");
}

export function helpForAll() {
  const list = columns(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]));
  const examples = ["cloudsandbox shell 'python3 --version'", "cloudsandbox run --provider docker analyse.py", "cloudsandbox mcp --provider docker"];
  return (
    `${bold("cloudsandbox")} runs code somewhere safe: in a container, at a service, or in a folder of this machine.\n\n` +
    `${bold("Usage")}\n  cloudsandbox COMMAND [options]\n\n${bold("Commands")}\n${list}\n` +
    `${bold("Examples")}\n${examples.map((line) => `  ${line}\n`).join("")}\n` +
    `${bold("More")}\n  cloudsandbox COMMAND --help   its options\n  cloudsandbox doctor           what works on this machine\n`
  );
}

/** @param {string} name */
export function helpFor(name) {
  const { usage, summary, text, examples, options } = COMMANDS[name];
  const rows = Object.entries(options).map(([option, { short, value, text: words }]) => {
    return /** @type {[string, string]} */ ([`${short ? `-${short}, ` : "    "}--${option}${value ? ` ${value}` : ""}`, words]);
  });
  return (
    `${bold(`cloudsandbox ${name}`)}: ${summary}\n\n${bold("Usage")}\n  cloudsandbox ${usage}\n\n` +
    `${text ? `${text}\n\n` : ""}${rows.length > 0 ? `${bold("Options")}\n${columns(rows)}\n` : ""}${bold("Examples")}\n${examples.map((line) => `  ${line}\n`).join("")}`
  );
}
