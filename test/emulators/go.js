// How Go words the failure of a system call: both daemons are written in it, and its words reach their clients.
// @ts-check

const REASONS = /** @type {Record<string, string>} */ ({
  ENOENT: "no such file or directory",
  ENOTDIR: "not a directory",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EISDIR: "is a directory",
  EEXIST: "file exists",
  ENOTEMPTY: "directory not empty",
  ELOOP: "too many levels of symbolic links",
  ENAMETOOLONG: "file name too long",
  E2BIG: "argument list too long",
  ENOSPC: "no space left on device",
});

/** @param {unknown} error */
export function goReason(error) {
  const { code = "", message } = /** @type {NodeJS.ErrnoException} */ (error);
  return REASONS[code] ?? message;
}
