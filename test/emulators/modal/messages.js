// The messages of both services, as far as clients use them.
// @ts-check
/** @typedef {import("./proto.js").Table} Table */

/** @param {Table} table */
const message = (table) => table;

const Empty = message({});
const StringMap = message({ 1: ["contents", "map"] });
const SecretSource = message({ 1: ["secretId", "s"], 2: ["env", "m", StringMap] });
const Tag = message({ 1: ["name", "s"], 2: ["value", "s"] });
const Result = message({ 1: ["status", "u"], 2: ["exception", "s"], 3: ["exitcode", "i"], 4: ["traceback", "s"] });
const Access = message({ 1: ["jwt", "s"], 2: ["url", "s"], 3: ["workerIp", "s"] });
const Image = message({
  5: ["baseImages", "rm", message({ 1: ["imageId", "s"], 2: ["dockerTag", "s"] })],
  6: ["dockerfileCommands", "rs"],
});
const Resources = message({
  2: ["memoryMb", "u"], 3: ["milliCpu", "u"], 4: ["gpu", "m", message({ 1: ["type", "u"], 2: ["count", "u"], 4: ["gpuType", "s"] })],
  5: ["memoryMbMax", "u"], 6: ["diskMb", "u"], 7: ["milliCpuMax", "u"],
});
const Network = message({ 1: ["type", "u"], 2: ["cidrs", "rs"], 3: ["domains", "rs"] });
const Sandbox = message({
  1: ["args", "rs"], 3: ["imageId", "s"], 4: ["secretIds", "rs"], 5: ["resources", "m", Resources], 7: ["timeoutSecs", "u"],
  8: ["workdir", "s"], 11: ["blockNetwork", "o"], 20: ["openPorts", "m", Empty], 22: ["network", "m", Network],
  30: ["name", "s"], 33: ["idleTimeoutSecs", "u"],
});
const SandboxInfo = message({ 1: ["id", "s"], 3: ["createdAt", "d"], 5: ["appId", "s"], 6: ["tags", "rm", Tag], 7: ["name", "s"] });

const TaskId = message({ 1: ["taskId", "s"] });
const SandboxId = message({ 1: ["sandboxId", "s"] });
const GetTaskId = /** @type {const} */ ([
  message({ 1: ["sandboxId", "s"], 2: ["timeout", "f"], 3: ["waitUntilReady", "o"] }),
  message({ 1: ["taskId", "s"], 2: ["taskResult", "m", Result] }),
]);
const Wait = /** @type {const} */ ([message({ 1: ["sandboxId", "s"], 2: ["timeout", "f"] }), message({ 1: ["result", "m", Result] })]);
const Terminate = /** @type {const} */ ([SandboxId, message({ 1: ["existingResult", "m", Result] })]);
const FromName = /** @type {const} */ ([
  message({ 1: ["sandboxName", "s"], 2: ["environmentName", "s"], 3: ["appName", "s"], 4: ["includeTerminated", "o"] }),
  SandboxId,
]);
const List = /** @type {const} */ ([
  message({ 1: ["appId", "s"], 2: ["before", "d"], 3: ["environmentName", "s"], 4: ["includeFinished", "o"], 5: ["tags", "rm", Tag] }),
  message({ 1: ["sandboxes", "rm", SandboxInfo] }),
]);

/** Request and reply of each call. @type {Record<string, readonly [Table, Table]>} */
export const control = {
  ClientHello: [Empty, Empty],
  AuthTokenGet: [Empty, message({ 1: ["token", "s"] })],
  AppGetOrCreate: [message({ 1: ["appName", "s"], 2: ["environmentName", "s"], 3: ["creation", "u"] }), message({ 1: ["appId", "s"] })],
  EnvironmentGetOrCreate: [
    message({ 1: ["deploymentName", "s"], 2: ["creation", "u"] }),
    message({
      1: ["environmentId", "s"],
      2: ["metadata", "m", message({ 1: ["name", "s"], 2: ["settings", "m", message({ 1: ["imageBuilderVersion", "s"], 2: ["webhookSuffix", "s"] })] })],
    }),
  ],
  ImageGetOrCreate: [
    message({ 2: ["image", "m", Image], 4: ["appId", "s"], 7: ["forceBuild", "o"], 9: ["builderVersion", "s"] }),
    message({ 1: ["imageId", "s"], 2: ["result", "m", Result] }),
  ],
  ImageFromId: [message({ 1: ["imageId", "s"] }), message({ 1: ["imageId", "s"] })],
  ImageJoinStreaming: [
    message({ 1: ["imageId", "s"], 2: ["timeout", "f"], 3: ["lastEntryId", "s"], 4: ["includeLogs", "o"] }),
    message({ 1: ["result", "m", Result], 2: ["logs", "rm", message({ 1: ["data", "s"] })], 3: ["entryId", "s"], 4: ["eof", "o"] }),
  ],
  SecretGetOrCreate: [message({ 3: ["environmentName", "s"], 4: ["creation", "u"], 5: ["env", "map"] }), message({ 1: ["secretId", "s"] })],
  SandboxCreate: [message({ 1: ["appId", "s"], 2: ["definition", "m", Sandbox], 4: ["tags", "rm", Tag] }), SandboxId],
  SandboxCreateV2: [
    message({
      1: ["appId", "s"], 2: ["definition", "m", Sandbox], 3: ["ephemeralSecrets", "m", StringMap], 4: ["tags", "rm", Tag],
      6: ["secretSources", "rm", SecretSource],
    }),
    message({ 1: ["sandboxId", "s"], 3: ["taskId", "s"], 5: ["access", "m", Access], 6: ["sandboxToken", "s"] }),
  ],
  SandboxGetTaskId: GetTaskId,
  SandboxGetTaskIdV2: GetTaskId,
  SandboxWait: Wait,
  SandboxWaitV2: Wait,
  SandboxTerminate: Terminate,
  SandboxTerminateV2: Terminate,
  SandboxGetFromName: FromName,
  SandboxGetFromNameV2: FromName,
  SandboxList: List,
  SandboxListV2: List,
  TaskGetCommandRouterAccess: [TaskId, Access],
  SandboxGetCommandRouterAccess: [message({ 1: ["sandboxId", "s"], 2: ["taskId", "s"] }), Access],
};

const exec = /** @type {Table} */ ({ 1: ["taskId", "s"], 2: ["execId", "s"] });
const End = message({ 1: ["code", "ix"], 2: ["signal", "ix"] });

/** @type {Record<string, readonly [Table, Table]>} */
export const router = {
  TaskExecStart: [
    message({
      ...exec, 3: ["args", "rs"], 4: ["stdout", "u"], 5: ["stderr", "u"], 6: ["timeoutSecs", "u"], 7: ["workdir", "s"],
      8: ["secretIds", "rs"], 12: ["env", "map"], 13: ["secretSources", "rm", SecretSource],
    }),
    Empty,
  ],
  TaskExecStdioRead: [message({ ...exec, 3: ["offset", "u"], 4: ["fd", "u"] }), message({ 1: ["data", "b"] })],
  TaskExecWait: [message(exec), End],
  TaskExecPoll: [message(exec), End],
  TaskExecStdinWrite: [message({ ...exec, 3: ["offset", "u"], 4: ["data", "b"], 5: ["eof", "o"] }), Empty],
  TaskExecStdinStatus: [message(exec), message({ 1: ["written", "u"], 2: ["closed", "o"] })],
  TaskExecStdinWriteStream: [
    message({ 1: ["start", "m", message({ ...exec, 3: ["offset", "u"] })], 2: ["data", "b"], 3: ["end", "m", Empty] }),
    Empty,
  ],
};

export const retryPolicy = message({ 1: ["retryAfterSecs", "f"] });
export const status = message({ 1: ["code", "u"], 2: ["message", "s"], 3: ["details", "rm", message({ 1: ["typeUrl", "s"], 2: ["value", "b"] })] });
