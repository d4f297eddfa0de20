// "cloudsandbox/ai-sdk": tools of the Vercel AI SDK that show their output while they run. Without that the toolkit's
// own record does: collectToolkitTools([toolkit]).
import { checkTools } from "./shared.js";

export { aiSdkSandbox } from "./ai-sdk-sandbox.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { AiSdkTool } from "../../types/adapters/ai-sdk.js" */

/** Between two preliminary results. */
const PAUSE_MS = 100;
/** Of a preliminary result: the newest. */
const MAX_SHOWN = 10_000;

/**
 * @param {readonly AdaptableTool[]} tools
 * @returns {Record<string, AiSdkTool>}
 */
export function aiSdkTools(tools) {
  const checked = checkTools(tools, "aiSdkTools", { approvals: true });
  return Object.fromEntries(checked.map((tool) => {
    const { name, description, inputSchema, needsApproval } = tool;
    const execute = tool.effect === "execute" ? streaming(tool) : (/** @type {any} */ args, /** @type {any} */ options) => tool.execute(args, options);
    return [name, { description, inputSchema, ...(needsApproval !== undefined && { needsApproval }), execute }];
  }));
}

/** @param {AdaptableTool} tool @returns {AiSdkTool["execute"]} */
function streaming(tool) {
  return async function* execute(args, options) {
    const controller = new AbortController();
    const given = options?.abortSignal;
    const abortSignal = given ? AbortSignal.any([given, controller.signal]) : controller.signal;
    let output = "";
    let isCut = false;
    let isNew = false;
    let wake = () => {};
    const onOutput = (/** @type {string} */ text) => {
      isCut ||= output.length + text.length > MAX_SHOWN;
      output = (output + text).slice(-MAX_SHOWN);
      isNew = true;
      wake();
    };
    let isDone = false;
    const call = tool.execute(args, { ...options, abortSignal, onOutput }).finally(() => {
      isDone = true;
      wake();
    });
    call.catch(() => {}); // Until it is awaited below.
    try {
      while (!isDone) {
        if (!isNew) await new Promise((resolve) => (wake = () => resolve(undefined)));
        if (isDone) break;
        isNew = false;
        yield JSON.stringify({ output, outputTruncated: isCut || undefined, running: true });
        await Promise.race([call.catch(() => {}), new Promise((resolve) => setTimeout(resolve, PAUSE_MS))]);
      }
      yield await call;
    } finally {
      // Who has stopped listening does not want it to go on.
      if (!isDone) controller.abort();
    }
  };
}
