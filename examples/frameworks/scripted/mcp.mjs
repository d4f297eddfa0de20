// A host in this process, with a client in the place of a model.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";

import { CALL, answerTo } from "./script.mjs";

const [ofClient, transport] = InMemoryTransport.createLinkedPair();
export { transport };

export async function ask() {
  const client = new Client({ name: "host", version: "1.0.0" });
  await client.connect(ofClient);
  const { content } = await client.callTool({ name: CALL.name, arguments: CALL.args });
  await client.close();
  return answerTo(content[0].text);
}
