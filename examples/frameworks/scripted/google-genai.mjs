// Answers of Google's API, from a server on this machine: that client takes no fetch of one's own.
import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";

import { CALL, answerTo } from "./script.mjs";

const server = createServer(async (request, response) => {
  const { contents } = await json(request);
  const result = contents.flatMap(({ parts }) => parts).find((part) => part.functionResponse)?.functionResponse.response;
  const part = result ? { text: answerTo(result.output) } : { functionCall: CALL };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ candidates: [{ index: 0, finishReason: "STOP", content: { role: "model", parts: [part] } }] }));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
server.unref();

export const options = { apiKey: "none", httpOptions: { baseUrl: `http://127.0.0.1:${server.address().port}` } };
