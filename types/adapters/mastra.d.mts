// For import; require() gets the same declarations as a CommonJS module.
export * from "./mastra.js";
