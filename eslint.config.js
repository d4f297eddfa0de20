import js from "@eslint/js";

const nodeGlobals = Object.fromEntries(
  [
    "AbortController AbortSignal Blob Buffer DOMException Event EventTarget FormData Headers",
    "MessageChannel ReadableStream Request Response SharedArrayBuffer TextDecoder TextEncoder TransformStream URL WritableStream",
    "URLSearchParams Worker atob btoa clearImmediate clearInterval clearTimeout console fetch gc",
    "performance process queueMicrotask setImmediate setInterval setTimeout structuredClone",
  ]
    .join(" ")
    .split(" ")
    .map((name) => [name, "readonly"]),
);

export default [
  { ignores: ["build/", "node_modules/", "**/node_modules/", "coverage/"] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: nodeGlobals },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      curly: ["error", "multi-line"],
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-constant-binary-expression": "error",
      "no-implicit-coercion": "error",
      "no-self-compare": "error",
      "no-throw-literal": "off",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_", caughtErrors: "none" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["**/*.cjs"],
    languageOptions: { sourceType: "commonjs", globals: { require: "readonly" } },
  },
  { files: ["lib/**", "scripts/**"], rules: { "no-shadow": "error" } },
];
