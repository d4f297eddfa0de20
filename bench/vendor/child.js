// One client in a process of its own: does one measurement. argv: the client's name, the server's URL.
import { clients } from "./clients.js";
import { measures } from "./measures.js";

const [name, url] = process.argv.slice(2);

process.on("message", async (/** @type {{ measure: string, count: number }} */ { measure, count }) => {
  const open = await clients[name](url);
  process.send?.({ result: await measures[measure](open, count) });
});
process.on("disconnect", () => process.exit());
