// A script's calls in the terms of the AI SDK's model interface, the same in its versions 2 and 3.

/** A tool's result as the model reads it. */
function resultOf({ toolCallId: id, output: { type, value } }) {
  const text = type === "text" || type === "error-text" ? value : JSON.stringify(value);
  return { id, text, failed: type.startsWith("error-") };
}

/** What a scripted model asks for, of the options of doGenerate() or doStream(). */
export function nextCalls(script, { tools = [], prompt }) {
  const offered = tools.map(({ name, description, inputSchema }) => ({ name, description, schema: inputSchema }));
  const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content.map(resultOf));
  return script.next(offered, results).map(({ id, name, args }) => {
    return { type: "tool-call", toolCallId: id, toolName: name, input: JSON.stringify(args) };
  });
}
