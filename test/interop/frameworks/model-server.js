// A model's HTTP API on this machine.
import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";

/** Runs `use` with the address of a server that answers each POST with what `answer` makes of its JSON. */
export async function withModel(answer, use) {
  const server = createServer(async (request, response) => {
    const made = answer(await json(request), request);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(made));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
