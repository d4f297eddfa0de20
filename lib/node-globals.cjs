"use strict";
// Loaded before JavaScript code that a local sandbox runs. Such code comes on standard input, where
// Node does not define what it defines for `node -e`: each built-in module as a variable, loaded at
// its first use. Assigning to one replaces it.
const { builtinModules } = require("node:module");

for (const name of builtinModules) {
  // `crypto` is a global of its own; the module has all that the global has.
  if (name.startsWith("_") || name.includes("/") || (name in globalThis && name !== "crypto")) continue;
  /** @param {unknown} value */
  const set = (value) => {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
  };
  const get = () => {
    const value = require(name);
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    return value;
  };
  Object.defineProperty(globalThis, name, { get, set, configurable: true });
}
