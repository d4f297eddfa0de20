// Types of "cloudsandbox/ai-sdk".
import type { ToolSchema } from "../index.js";
import type { AdaptableTool, FullSandbox } from "./shared.js";

/** A tool of the Vercel AI SDK, 6 and 7. */
export interface AiSdkTool {
  description: string;
  inputSchema: ToolSchema;
  /** What the tool's `requiresApproval` says. */
  needsApproval?: boolean | ((args: any) => boolean);
  execute(args: any, options?: any): any;
}

/**
 * `generateText({ tools: aiSdkTools(toolkit.getTools()) })`, as `collectToolkitTools([toolkit])`; but the run and the shell
 * tool give preliminary results while they run: JSON text with `output` (the newest 10,000 characters) and `running: true`.
 */
export function aiSdkTools(tools: readonly AdaptableTool[]): Record<string, AiSdkTool>;

/** What runs in the sandbox. */
export interface AiSdkProcess {
  readonly stdout: any;
  readonly stderr: any;
  wait(): Promise<{ exitCode: number }>;
  /** Ends it and all that it started; resolves when it has ended. */
  kill(): Promise<void>;
}

interface AiSdkCommand {
  command: string;
  workingDirectory?: string | undefined;
  env?: Record<string, string> | undefined;
  abortSignal?: any;
}
interface AiSdkFile {
  path: string;
  abortSignal?: any;
}

/** The `Experimental_SandboxSession` of AI SDK 7. */
export interface AiSdkSandbox {
  readonly description: string;
  run(options: AiSdkCommand): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  /** Rejects with ERR_SANDBOX_UNSUPPORTED for `stdin: true`, before anything starts. */
  spawn(options: AiSdkCommand & { stdin?: boolean | undefined }): Promise<any>;
  readFile(options: AiSdkFile): Promise<any>;
  readBinaryFile(options: AiSdkFile): Promise<any>;
  readTextFile(
    options: AiSdkFile & { encoding?: string | undefined; startLine?: number | undefined; endLine?: number | undefined },
  ): Promise<string | null>;
  writeFile(options: AiSdkFile & { content: any }): Promise<void>;
  writeBinaryFile(options: AiSdkFile & { content: Uint8Array }): Promise<void>;
  writeTextFile(options: AiSdkFile & { content: string; encoding?: string | undefined }): Promise<void>;
  stat(options: AiSdkFile): Promise<{ type: "file" | "directory" | "other"; size: number } | null>;
  listDirectory(
    options: AiSdkFile,
  ): Promise<{ name: string; type: "file" | "directory" | "symlink" | "other" }[] | null>;
  deleteFile(options: AiSdkFile): Promise<boolean>;
}

/**
 * `generateText({ experimental_sandbox: aiSdkSandbox(sandbox) })` of AI SDK 7, for tools that ask for a sandbox session. A command
 * has no limit but the signal. The sandbox is neither started nor closed by the framework: close it yourself.
 */
export function aiSdkSandbox(sandbox: FullSandbox, options?: { description?: string | undefined }): AiSdkSandbox;
