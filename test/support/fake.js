// A CloudSandbox in memory that records its calls, for what sits above the port.

/**
 * `answers` may hold, by method, a value to resolve with, an Error to reject with, or a function that
 * is called with the arguments. `calls` is the list of [method, ...arguments].
 */
export function fakeSandbox(answers = {}, providerId = "fake") {
  const defaults = { run: { output: "ran", exitCode: 0 }, shell: { output: "shelled", exitCode: 0 }, readFile: null };
  const all = { ...defaults, ...answers };
  const calls = [];
  const sandbox = { providerId };
  for (const method of ["start", "run", "shell", "writeFile", "readFile", "close"]) {
    sandbox[method] = async (...args) => {
      calls.push([method, ...args]);
      const answer = all[method];
      if (typeof answer === "function") return answer(...args);
      if (answer instanceof Error) throw answer;
      return answer;
    };
  }
  return { sandbox, calls, named: (method) => calls.filter(([name]) => name === method) };
}
