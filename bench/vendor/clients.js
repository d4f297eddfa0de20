// The same few calls by either client. Each is imported only by the process that measures it; ours may be
// another checkout's, in the folder that CLOUDSANDBOX_CHECKOUT names.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { CLOUDSANDBOX_CHECKOUT: checkout } = process.env;
/** Whether its commands may name their shell. */
const CHOOSES_SHELL = !process.env.CLOUDSANDBOX_ONE_SHELL;
const library = checkout ? `${pathToFileURL(checkout).href}/lib/index.js` : "../../lib/index.js";

/**
 * @typedef {object} Client
 * @property {() => Promise<unknown>} [program]
 * @property {() => Promise<{ exitCode?: number }>} shell runs "true"
 * @property {() => Promise<Uint8Array | null>} [read]
 * @property {(bytes: Uint8Array) => Promise<unknown>} [write]
 * @property {() => Promise<unknown>} close
 */

/** @type {Record<string, (url: string) => Promise<() => Promise<Client>>>} */
export const clients = {
  async "local/ours"() {
    const { LocalSandbox } = await import(library);
    return async () => {
      const sandbox = new LocalSandbox({ isolation: "none" });
      await sandbox.start();
      return {
        program: () => sandbox.exec({ argv: ["/bin/true"] }),
        // The same shell in every version: one that knows no choice takes this one.
        shell: () => sandbox.exec(CHOOSES_SHELL ? { command: "true", shell: "sh" } : { command: "true" }),
        close: () => sandbox.close(),
      };
    };
  },
  async "e2b/ours"(url) {
    const { E2BSandbox } = await import(library);
    return async () => {
      const sandbox = new E2BSandbox({ apiKey: "e2b_bench", baseURL: url, sandboxUrl: url });
      await sandbox.start();
      return {
        shell: () => sandbox.shell("true"),
        read: () => sandbox.readBytes("big"),
        write: (bytes) => sandbox.writeFile("big", bytes),
        close: () => sandbox.close(),
      };
    };
  },
  async "e2b/sdk"(url) {
    const { Sandbox } = await import("e2b");
    return async () => {
      const sandbox = await Sandbox.create("base", { apiKey: "e2b_bench", apiUrl: url, sandboxUrl: url });
      return {
        shell: () => sandbox.commands.run("true"),
        read: () => sandbox.files.read("big", { format: "bytes" }),
        write: (bytes) => sandbox.files.write("big", /** @type {ArrayBuffer} */ (bytes.buffer)),
        close: () => sandbox.kill(),
      };
    };
  },
  async "daytona/ours"(url) {
    const { DaytonaSandbox } = await import(library);
    return async () => {
      const sandbox = new DaytonaSandbox({ apiKey: "dtn_bench", baseURL: `${url}/api` });
      await sandbox.start();
      return { shell: () => sandbox.shell("true"), close: () => sandbox.close() };
    };
  },
  async "vercel/ours"(url) {
    const { VercelSandbox } = await import(library);
    return async () => {
      const sandbox = new VercelSandbox({ token: "bench", teamId: "team", projectId: "prj", name: "bench", baseURL: `${url}/api` });
      await sandbox.start();
      return { shell: () => sandbox.shell("true"), close: () => sandbox.close() };
    };
  },
  async "vercel/sdk"(url) {
    process.env.VERCEL_TELEMETRY_DISABLED = "1";
    const { Sandbox } = await import("@vercel/sandbox");
    return async () => {
      const sandbox = await Sandbox.create({
        token: "bench", teamId: "team", projectId: "prj", name: "bench",
        // It has no option for the address.
        fetch: (address, options) => fetch(String(address).replace("https://vercel.com", url), options),
      });
      return { shell: () => sandbox.runCommand("sh", ["-c", "true"]), close: () => sandbox.stop() };
    };
  },
  async "agentcore/ours"(url) {
    const { AgentCoreSandbox } = await import(library);
    return async () => {
      const sandbox = new AgentCoreSandbox({ accessKeyId: "bench", secretAccessKey: "bench-secret", region: "us-west-2", baseURL: url });
      await sandbox.start();
      return { shell: () => sandbox.shell("true"), close: () => sandbox.close() };
    };
  },
  async "agentcore/sdk"(url) {
    const { BedrockAgentCoreClient, InvokeCodeInterpreterCommand, StartCodeInterpreterSessionCommand, StopCodeInterpreterSessionCommand } =
      await import("@aws-sdk/client-bedrock-agentcore");
    const codeInterpreterIdentifier = "aws.codeinterpreter.v1";
    const credentials = { accessKeyId: "bench", secretAccessKey: "bench-secret" };
    return async () => {
      const client = new BedrockAgentCoreClient({ endpoint: url, region: "us-west-2", credentials });
      const { sessionId } = await client.send(new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier }));
      return {
        async shell() {
          const { stream } = await client.send(
            new InvokeCodeInterpreterCommand({ codeInterpreterIdentifier, sessionId, name: "executeCommand", arguments: { command: "true" } }),
          );
          let exitCode;
          for await (const { result } of stream ?? []) exitCode = result?.structuredContent?.exitCode;
          return { exitCode };
        },
        async close() {
          await client.send(new StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId }));
          client.destroy();
        },
      };
    };
  },
  async "modal/ours"(url) {
    const { ModalSandbox } = await import(library);
    return async () => {
      const sandbox = new ModalSandbox({ tokenId: "ak-bench", tokenSecret: "as-bench", baseURL: url, ca: readFileSync(String(process.env.BENCH_CA)) });
      await sandbox.start();
      return { shell: () => sandbox.shell("true"), close: () => sandbox.close() };
    };
  },
  async "modal/sdk"(url) {
    Object.assign(process.env, { MODAL_SERVER_URL: url, MODAL_CONFIG_PATH: "/nonexistent", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: process.env.BENCH_CA });
    const { ModalClient } = await import("modal");
    return async () => {
      const client = new ModalClient({ tokenId: "ak-bench", tokenSecret: "as-bench" });
      const app = await client.apps.fromName("bench", { createIfMissing: true });
      const sandbox = await client.sandboxes.create(app, client.images.fromRegistry("python:3.12-slim"));
      return {
        async shell() {
          const child = await sandbox.exec(["sh", "-c", "true"]);
          const [exitCode] = await Promise.all([child.wait(), child.stdout.readText(), child.stderr.readText()]);
          return { exitCode };
        },
        async close() {
          await sandbox.terminate();
          client.close();
        },
      };
    };
  },
  async "http/ours"(url) {
    const { HttpSandbox } = await import(library);
    return async () => {
      const sandbox = new HttpSandbox({ token: "bench-token", baseURL: url });
      await sandbox.start();
      return { shell: () => sandbox.shell("true"), close: () => sandbox.close() };
    };
  },
  async "daytona/sdk"(url) {
    const { Daytona } = await import("@daytonaio/sdk");
    const daytona = new Daytona({ apiKey: "dtn_bench", apiUrl: `${url}/api`, target: "us", useDeprecatedPolling: true });
    return async () => {
      const sandbox = await daytona.create();
      return { shell: () => sandbox.process.executeCommand("true"), close: () => sandbox.delete() };
    };
  },
  async "docker/ours"(url) {
    const { DockerSandbox } = await import(library);
    return async () => {
      const sandbox = new DockerSandbox({ host: url, image: "cloudsandbox/busybox", pull: "never" });
      await sandbox.start();
      return { shell: () => sandbox.exec({ command: "true" }), close: () => sandbox.close() };
    };
  },
  async "docker/sdk"(url) {
    const { default: Dockerode } = await import("dockerode");
    const engine = new Dockerode({ socketPath: url.replace("unix://", "") });
    return async () => {
      const container = await engine.createContainer({
        Image: "cloudsandbox/busybox", Entrypoint: ["/bin/sh"], Cmd: ["-c", "while :; do sleep 1000; done"], User: "65534:65534",
        WorkingDir: "/tmp", HostConfig: { NetworkMode: "none", PidsLimit: 256, ReadonlyRootfs: true, CapDrop: ["ALL"], Tmpfs: { "/tmp": "rw,exec" } },
      });
      await container.start();
      return {
        // As its documentation does it: the streams taken apart and kept, then the exit code.
        async shell() {
          const exec = await container.exec({ Cmd: ["sh", "-c", "true"], AttachStdout: true, AttachStderr: true });
          const stream = await exec.start({ hijack: true, stdin: false });
          const { PassThrough } = await import("node:stream");
          /** @type {Buffer[]} */
          const parts = [];
          const [out, err] = [new PassThrough(), new PassThrough()];
          for (const side of [out, err]) side.on("data", (part) => parts.push(part));
          engine.modem.demuxStream(stream, out, err);
          await new Promise((resolve, reject) => stream.once("end", resolve).once("error", reject));
          const { ExitCode } = await exec.inspect();
          return { exitCode: ExitCode ?? undefined, output: Buffer.concat(parts).toString() };
        },
        close: () => container.remove({ force: true, v: true }),
      };
    };
  },
};
