// The shim has the types that we publish: everything it exports fits the hand-written declarations.
// Toolkit is left out: its abstract `name` has no counterpart in JavaScript.
import * as implementation from "../../lib/index.js";
import * as toolkitsImplementation from "../../lib/toolkits.js";

export const root: Omit<typeof import("cloudsandbox"), "Toolkit"> = implementation;
export const toolkits: Omit<typeof import("cloudsandbox/toolkits"), "Toolkit"> = toolkitsImplementation;

// Nothing is exported that has no declaration.
type Undeclared = Exclude<keyof typeof implementation, keyof typeof import("cloudsandbox")>;
export const undeclared: Undeclared[] = [] satisfies never[];
