// How Docker 20.10 and Podman 4.3 refuse: statuses and texts as they were measured on both.
// @ts-check

/** @typedef {"docker" | "podman"} Kind */

/** A refusal. */
export class Refusal extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The body of a refusal. @param {Kind} kind @param {number} status @param {string} message */
export function errorBody(kind, status, message) {
  return kind === "docker" ? { message } : { cause: message.split(": ").at(-1), message, response: status };
}

/** @type {Record<string, Record<Kind, (what: string) => [number, string]>>} */
const TABLE = {
  noContainer: {
    docker: (id) => [404, `No such container: ${id}`],
    podman: (id) => [404, `no container with name or ID ${JSON.stringify(id)} found: no such container`],
  },
  noImage: {
    docker: (name) => [404, `No such image: ${name}`],
    podman: (name) => [404, `no such image: docker.io/library/${name}: image not known`],
  },
  noExec: {
    docker: (id) => [404, `No such exec instance: ${id}`],
    podman: (id) => [404, `no exec session with ID ${id} found: no such exec session`],
  },
  notRunning: {
    docker: (id) => [409, `Container ${id} is not running`],
    podman: () => [500, "can only create exec sessions on running containers: container state improper"],
  },
  paused: {
    docker: (name) => [409, `Container ${name} is paused, unpause the container before exec`],
    podman: (id) => [409, `cannot create exec session as container ${id} is paused`],
  },
  killStopped: {
    docker: (id) => [409, `Cannot kill container: ${id}: Container ${id} is not running`],
    podman: (id) => [500, `can only kill running containers. ${id} is in state exited: container state improper`],
  },
  noCommand: {
    docker: () => [400, "No exec command specified"],
    podman: () => [500, "must provide a non-empty command to start an exec session: invalid argument"],
  },
  nameTaken: {
    docker: (name) => [409, `Conflict. The container name "/${name}" is already in use by container "x". You have to remove (or rename) that container to be able to reuse that name.`],
    podman: (name) => [500, `creating container storage: the container name ${JSON.stringify(name)} is already in use by x. You have to remove that container to be able to reuse that name: that name is already in use`],
  },
  noNetwork: {
    docker: (name) => [404, `network ${name} not found`],
    podman: (name) => [500, `container create: unable to find network with name or ID ${name}: network not found`],
  },
  noRuntime: {
    docker: (name) => [400, `Unknown runtime specified ${name}`],
    podman: (name) => [500, `container create: preparing container x for attach: runtime ${name} is not found`],
  },
  noPlatform: {
    docker: (what) => [404, `image with reference ${what}, actual: linux/amd64`],
    podman: (what) => [500, `container create: ${what}: image not known`],
  },
  noFile: {
    docker: (what) => [404, `Could not find the file ${what}`],
    podman: () => [404, "no such file or directory"],
  },
  noFolder: {
    docker: () => [500, "extraction point is not a directory"],
    podman: (what) => [500, `copier: put: ${what} (${what}): exists but is not a directory`],
  },
};

/** @param {Kind} kind @param {keyof typeof TABLE} why @param {string} [what] */
export function refusal(kind, why, what = "") {
  const [status, message] = TABLE[why][kind](what);
  return new Refusal(status, message);
}
