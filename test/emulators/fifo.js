// Real pipes for child processes. Node connects its children by socket pairs, on which a command cannot
// open /dev/stderr again; a sandbox's commands write to pipes, so the emulator makes them: FIFOs, opened
// at both ends and unlinked before anybody sees them.
// @ts-check
import { execFile } from "node:child_process";
import { constants, close, open, rename, unlink } from "node:fs";
import net from "node:net";
import path from "node:path";
import { promisify } from "node:util";

const openFile = promisify(open);
const closeFile = promisify(close);
const unlinkFile = promisify(unlink);
const renameFile = promisify(rename);
const run = promisify(execFile);
const BATCH = 24;
const READ_END = constants.O_RDONLY | constants.O_NONBLOCK;

export class PipeMaker {
  #directory;
  #serial = 0;
  /** @type {string[]} */
  #ready = [];
  /** @type {Promise<void> | undefined} */
  #filling;

  /** @param {string} directory must exist */
  constructor(directory) {
    this.#directory = directory;
  }

  /**
   * A pipe that a child writes into.
   * @returns {Promise<{ childFd: number, readable: net.Socket }>}
   */
  async output() {
    const name = await this.#take();
    const [readFd, childFd] = await this.#open(name, READ_END, constants.O_WRONLY);
    await unlinkFile(name);
    return { childFd, readable: new net.Socket({ fd: readFd, readable: true, writable: false }) };
  }

  /**
   * A pipe that a child reads from.
   * @returns {Promise<{ childFd: number, writable: net.Socket }>}
   */
  async input() {
    const name = await this.#take();
    // The reading end must block, as a child expects of its standard input; opened for both, it
    // needs no writer yet. It is then opened again read-only, so that the child holds no writing end.
    const writeEnd = constants.O_WRONLY | constants.O_NONBLOCK;
    const [both, childFd, writeFd] = await this.#open(name, constants.O_RDWR, constants.O_RDONLY, writeEnd);
    await closeFile(both);
    await unlinkFile(name);
    return { childFd, writable: new net.Socket({ fd: writeFd, readable: false, writable: true }) };
  }

  /**
   * A pipe with a name, which somebody opens to write into it. It does not end before `holdFd` is closed.
   * @param {string} name on the same file system as the directory
   * @returns {Promise<{ holdFd: number, readable: net.Socket }>}
   */
  async outputAt(name) {
    await renameFile(await this.#take(), name);
    const [readFd, holdFd] = await this.#open(name, READ_END, constants.O_WRONLY);
    return { holdFd, readable: new net.Socket({ fd: readFd, readable: true, writable: false }) };
  }

  /**
   * A pipe with a name, which somebody opens to read from it. It does not end while `writable` is open.
   * @param {string} name on the same file system as the directory
   */
  async inputAt(name) {
    await renameFile(await this.#take(), name);
    const [fd] = await this.#open(name, constants.O_RDWR | constants.O_NONBLOCK);
    return new net.Socket({ fd, readable: false, writable: true });
  }

  /** @param {number[]} fds */
  static async close(fds) {
    await Promise.all(fds.map((fd) => closeFile(fd)));
  }

  /**
   * Opens a pipe once for each of `ways`, in their order; all or none.
   * @param {string} name
   * @param {...number} ways
   */
  async #open(name, ...ways) {
    const fds = [];
    try {
      for (const way of ways) fds.push(await openFile(name, way));
      return fds;
    } catch (error) {
      await PipeMaker.close(fds);
      await unlinkFile(name);
      throw error;
    }
  }

  async #take() {
    for (;;) {
      const name = this.#ready.pop();
      if (name) return name;
      this.#filling ??= this.#fill().finally(() => (this.#filling = undefined));
      await this.#filling;
    }
  }

  async #fill() {
    const names = Array.from({ length: BATCH }, () => path.join(this.#directory, `pipe${(this.#serial += 1)}`));
    await run("mkfifo", ["-m", "600", ...names]);
    this.#ready.push(...names);
  }
}
