// Agentium: its executor's rules, as its tools meet them. The executor itself is not published on its own.
import { ANSWER, suite } from "../../support/agent-suite.js";

/** What Agentium strips from a schema, at every level, before a model sees it. */
const STRIPPED = ["$schema", "$id", "$comment", "title", "default", "examples"];

function forModel(schema) {
  if (Array.isArray(schema)) return schema.map(forModel);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => !STRIPPED.includes(key) && !(key === "additionalProperties" && value === false))
      .map(([key, value]) => [key, forModel(value)]),
  );
}

async function execute(tools, { name, args }, context) {
  const tool = tools.find((it) => it.name === name);
  if ("_zod" in tool.parameters) throw new Error("taken for Zod 4");
  const parsed = tool.parameters.safeParse(args);
  if (!parsed.success) return `Invalid arguments: ${parsed.error.message}`;
  if (tool.sandbox !== false) throw new Error("would be run from its source text");
  try {
    const result = await tool.execute(parsed.data, context);
    return typeof result === "string" ? result : result.content;
  } catch (error) {
    return `Error: ${error.message}`;
  }
}

async function drive(toolkit, script, signal) {
  const tools = toolkit.getTools();
  const offered = tools.map(({ name, description, rawJsonSchema }) => {
    // The one member of our schemas that Agentium strips, put back: the suite compares whole schemas.
    return { name, description, schema: { ...forModel(rawJsonSchema), additionalProperties: false } };
  });
  const results = [];
  for (;;) {
    signal?.throwIfAborted();
    const calls = script.next(offered, results);
    if (calls.length === 0) return ANSWER;
    results.push(
      ...(await Promise.all(
        calls.map(async (call) => ({ id: call.id, text: await execute(tools, call, { runId: "run", signal }) })),
      )),
    );
  }
}

suite("Agentium's executor", drive, { marks: false });
