// What an organization may use. Overruns are plain bad requests, told apart by their message only.
// @ts-check
import { ApiError } from "./request.js";

/** @typedef {import("./sandbox.js").Fleet} Fleet */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("./sandbox.js").SandboxSpec} SandboxSpec */

const NAMES = /** @type {const} */ ({ cpu: "CPU", memory: "memory", disk: "disk" });
const UNITS = /** @type {const} */ ({ cpu: "", memory: "GiB", disk: "GiB" });
/** States in which a sandbox takes no CPU and no memory; an archived one takes no disk either. */
const AT_REST = new Set(["stopped", "archived", "error", "build_failed", "destroying", "destroyed"]);

export class Quota {
  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
  }

  /**
   * @param {SandboxSpec} spec of what is to be started
   * @param {Sandbox} [self] which is not counted
   */
  check(spec, self) {
    const { perSandbox, ...total } = this.fleet.settings.quota;
    for (const name of /** @type {const} */ (["cpu", "memory", "disk"])) {
      if (spec[name] > perSandbox[name]) {
        const asked = `${NAMES[name]} request ${spec[name]}${UNITS[name]}`;
        throw new ApiError(400, `${asked} exceeds maximum allowed per sandbox (${perSandbox[name]}${UNITS[name]}).`);
      }
      const others = this.fleet.all().filter((sandbox) => sandbox !== self && this.#takes(sandbox, name));
      const used = others.reduce((sum, sandbox) => sum + sandbox.spec[name], 0);
      if (used + spec[name] > total[name]) {
        throw new ApiError(
          400,
          `Total ${NAMES[name]} limit exceeded. Maximum allowed: ${total[name]}${UNITS[name]}.\n` +
            "Stop or delete sandboxes, or ask for a higher limit.",
        );
      }
    }
  }

  /** @param {Sandbox} sandbox @param {"cpu" | "memory" | "disk"} name */
  #takes({ state }, name) {
    return name === "disk" ? !["archived", "destroying", "destroyed"].includes(state) : !AT_REST.has(state);
  }
}
