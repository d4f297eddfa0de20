"use strict";
// Loaded before JavaScript code that a local sandbox runs. Such code is a file of its own, where Node does
// not define what it defines for `node -e`: each built-in module as a variable, loaded at its first use.
// Assigning to one replaces it.
const { builtinModules } = require("node:module");

// What Node says when code that is an ES module stands beside a package.json without a type. Nobody can act
// on it: the file is ours.
const { emitWarning } = process;
/** @param {any[]} args */
process.emitWarning = (...args) => {
  const isOurs = args[1]?.code === "MODULE_TYPELESS_PACKAGE_JSON" || args[2] === "MODULE_TYPELESS_PACKAGE_JSON";
  if (!isOurs || !String(args[0]).includes("/.cloudsandbox-")) Reflect.apply(emitWarning, process, args);
};

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
