// Types of "cloudsandbox/mastra".
import type { LocalSandbox } from "../index.js";
import type { FullSandbox } from "./shared.js";

type Class = abstract new (...args: any[]) => any;

/** "@mastra/core/workspace", as far as mastraSandbox() uses it. */
export interface MastraProcesses {
  MastraSandbox: Class;
  SandboxProcessManager: Class;
  ProcessHandle: Class;
}

/** "@mastra/core/workspace", as far as mastraFilesystem() uses it. */
export interface MastraFiles {
  MastraFilesystem: Class;
  FilesystemError: new (message: string, code: string, path: string) => Error;
  FileNotFoundError: new (path: string) => Error;
  DirectoryNotFoundError: new (path: string) => Error;
  FileExistsError: new (path: string) => Error;
  IsDirectoryError: new (path: string) => Error;
  NotDirectoryError: new (path: string) => Error;
  DirectoryNotEmptyError: new (path: string) => Error;
  StaleFileError: new (path: string, expected: Date, actual: Date) => Error;
}

/**
 * `new Workspace({ sandbox: mastraSandbox(sandbox, workspace) })`, with `import * as workspace from "@mastra/core/workspace"`. Commands,
 * and processes that go on: all but their standard input, which is at its end. Its stop() ends the processes and keeps the
 * sandbox; its destroy() deletes it, if Mastra has started it: else close it yourself.
 */
export function mastraSandbox<Module extends MastraProcesses>(
  sandbox: FullSandbox,
  workspace: Module,
  options?: {
    id?: string | undefined;
    env?: Record<string, string | undefined> | undefined;
    /** For the agent's instructions. */
    instructions?: string | undefined;
  },
): InstanceType<Module["MastraSandbox"]>;

/**
 * `new Workspace({ filesystem: mastraFilesystem(sandbox, workspace) })`: `/` is the working directory of the sandbox. `readOnly` is that of a
 * workspace's guest when left out. The sandbox is not closed by it.
 */
export function mastraFilesystem<Module extends MastraFiles>(
  sandbox: FullSandbox & Pick<LocalSandbox, "moveFile" | "mkdir">,
  workspace: Module,
  options?: { id?: string | undefined; readOnly?: boolean | undefined },
): InstanceType<Module["MastraFilesystem"]>;
