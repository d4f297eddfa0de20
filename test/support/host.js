// What an agent framework does with a tool, reduced to its rules: the arguments are checked against
// the tool's own schema first, then the tool runs, and whatever happens becomes one text for the
// model.

/** Calls `tool` as Agentium's executor does, and returns the text that its model would get. */
export async function callTool(tool, args, context = {}) {
  const parsed = tool.parameters.safeParse(args);
  if (!parsed.success) return `Invalid arguments: ${parsed.error.message}`;
  try {
    const result = await tool.execute(parsed.data, context);
    return typeof result === "string" ? result : result.content;
  } catch (error) {
    return `Error: ${error.message}`;
  }
}

/** The toolkit's tools by the last part of their names: run, shell, write_file, read_file. */
export function toolsByRole(toolkit) {
  const [run, shell, writeFile, readFile] = toolkit.getTools();
  return { run, shell, writeFile, readFile };
}
