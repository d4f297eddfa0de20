// Types of "cloudsandbox/openai-agents".
import type { LocalSandbox } from "../index.js";
import type { AdaptableTool, FullSandbox, ToolCallContext } from "./shared.js";

/** A function tool of the OpenAI Agents SDK. */
export interface OpenAIAgentsTool {
  type: "function";
  name: string;
  description: string;
  parameters: any;
  strict: false;
  isEnabled(...args: any[]): Promise<boolean>;
  /** What the tool's `requiresApproval` says. */
  needsApproval(context: any, args: any, callId?: string): Promise<boolean>;
  /** Resolves with the tool's text, or with "Error: " and its error's message. */
  invoke(context: any, input: string, details?: ToolCallContext): Promise<string>;
}

/** `new Agent({ tools: openAIAgentsTools(toolkit.getTools()) })` */
export function openAIAgentsTools(tools: readonly AdaptableTool[]): OpenAIAgentsTool[];

/** `Manifest` of "@openai/agents/sandbox", and `applyDiff` of "@openai/agents". */
export interface OpenAIAgentsModules {
  Manifest: new (init?: any) => any;
  applyDiff: (input: string, diff: string, mode?: "default" | "create") => string;
}

/** A command as a model of that SDK asks for it. */
export interface OpenAIAgentsCommand {
  cmd: string;
  /** Relative to where commands begin, or absolute. */
  workdir?: string;
  /** A shell of the sandbox; left out: bash, where there is one, else sh. */
  shell?: string;
  /** Without effect: a command has the sandbox's own variables. */
  login?: boolean;
  /** A terminal of 120 by 40 characters where `capabilities.tty` is true; else it is refused. */
  tty?: boolean;
  /** ms after which the answer comes, whether the command has ended or not. */
  yieldTimeMs?: number;
  /** Of the answer, at 4 characters each; head and tail are kept. */
  maxOutputTokens?: number;
  /** Refused: a sandbox has one user. */
  runAs?: string;
}

/** The session of a sandbox agent. What it has no room for is an answer in words for the model, and an error for a program. */
export interface OpenAIAgentsSandboxSession {
  /** `manifest.root` is where the sandbox's commands begin. */
  state: { manifest: any; environment: Record<string, string>; workspaceReady: boolean };
  running(): Promise<boolean>;
  start(): Promise<void>;
  /** True, so that a model can look at a command again, whatever `capabilities.tty` says. */
  supportsPty(): boolean;
  /** What the command has printed, and how it ended or its number; also when it could not be run. */
  execCommand(args: OpenAIAgentsCommand): Promise<string>;
  /**
   * Writes to a command that runs, or with no `chars` looks at it again. "\u0003" interrupts it. Where `capabilities.spawn` is false
   * the text is an error, and "\u0003" ends the command.
   */
  writeStdin(args: { sessionId: number; chars?: string; yieldTimeMs?: number; maxOutputTokens?: number }): Promise<string>;
  createEditor(runAs?: string): {
    createFile(operation: { path: string; diff: string }): Promise<OpenAIAgentsEdit>;
    updateFile(operation: { path: string; diff: string; moveTo?: string }): Promise<OpenAIAgentsEdit>;
    deleteFile(operation: { path: string }): Promise<OpenAIAgentsEdit>;
  };
  /** PNG, JPEG, GIF or WebP of at most 10 MB; its data as base64. */
  viewImage(args: { path: string; runAs?: string }): Promise<{ type: "image"; image: { data: string; mediaType: string } }>;
  readFile(args: { path: string; runAs?: string; maxBytes?: number }): Promise<Uint8Array>;
  listDir(args: { path: string; runAs?: string }): Promise<{ name: string; path: string; type: "file" | "dir" | "other" }[]>;
  pathExists(path: string, runAs?: string): Promise<boolean>;
  directoryExists(path: string, runAs?: string): Promise<boolean>;
  materializeEntry(args: { path: string; entry: any; runAs?: string }): Promise<void>;
  applyManifest(manifest: any, runAs?: string): Promise<void>;
  /** Ends the commands that still run. */
  stop(): Promise<void>;
  /** Ends the commands, and closes the sandbox. */
  delete(): Promise<void>;
  close(): Promise<void>;
}

export interface OpenAIAgentsEdit {
  status: "completed" | "failed";
  output: string;
}

export interface OpenAIAgentsSandboxClient {
  backendId: string;
  serializedSessionStateRequiresFreshCreation: true;
  serializeSessionState(state: any): Promise<Record<string, unknown>>;
  resolveTrustedManifestForResume(manifest: any, options?: any): any;
  /** Starts a sandbox, and writes the manifest's files into it. */
  create(args?: any, options?: any): Promise<OpenAIAgentsSandboxSession>;
}

/** A sandbox of one of the classes of this package. */
export type OpenAIAgentsSandbox = FullSandbox & Pick<LocalSandbox, "mkdir" | "moveFile">;

/**
 * `run(new SandboxAgent({ name }), input, { sandbox: { client: openAIAgentsSandboxClient({ Manifest, applyDiff }, () => new DockerSandbox()) } })`.
 * `make` is called for each sandbox, with the run's `sandbox.options`. A sandbox that a run has made is closed at its end; one of
 * `client.create()`, given as `sandbox.session`, is yours to close.
 *
 * A run that waits for an approval keeps its sandbox, and goes on in it in the same process; in another one it begins in a new
 * sandbox. Local trusted sandboxes each have a directory of their own: of several, the newest is the one that a run goes on in, the
 * others begin anew.
 *
 * A manifest's files, folders, `local_file`s and variables are kept. Other entries, users, groups, path grants and another root are
 * refused with ERR_SANDBOX_UNSUPPORTED. `maxOutputTokens` of one answer: 12,500, unless the model asks for another number.
 */
export function openAIAgentsSandboxClient(
  modules: OpenAIAgentsModules,
  make: (options: any) => OpenAIAgentsSandbox | Promise<OpenAIAgentsSandbox>,
  options?: { maxOutputTokens?: number | undefined },
): OpenAIAgentsSandboxClient;
