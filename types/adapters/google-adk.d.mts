// For import; require() gets the same declarations as a CommonJS module.
export * from "./google-adk.js";
