/* protocol.h - what the local provider and its helper program say to each other.
 *
 * The library talks to the helper over one stream socket. For each command it sends one `request`
 * with the descriptors in SCM_RIGHTS; the helper forks a guard, which answers on the command's own
 * control socket with `frame`s and takes orders there, one byte each. The end of a socket is an
 * order too: end everything. Both sides are built together and run on one machine, so the structs
 * travel as they are.
 *
 * A helper whose sandbox has a directory of its own is given its name as an argument, the directory
 * and its parent as descriptors. It removes the directory when the host has vanished; a host that
 * goes on says so before it hangs up, and removes the directory itself.
 *
 * Of an isolated sandbox more is said: see isolation.h. */
#ifndef SBX_GUARD_H
#define SBX_GUARD_H

#include <stdint.h>

#define SBX_GUARD_MAGIC 0x53425836u /* changes with this file */

/* Where the helper finds its socket and the directory, and a command the text that was too long for
 * its arguments. */
enum {
  SBX_GUARD_SOCKET_FD = 3,
  SBX_GUARD_ROOT_FD = 4,
  SBX_GUARD_PARENT_FD = 5,
  SBX_GUARD_SCRIPT_FD = 9
};

/* Order of the descriptors in a request. The script is optional; the directory is left out where
 * `no_cwd` says so. */
enum {
  SBX_GUARD_FD_SPEC,
  SBX_GUARD_FD_CONTROL,
  SBX_GUARD_FD_STDIN,
  SBX_GUARD_FD_STDOUT,
  SBX_GUARD_FD_STDERR,
  SBX_GUARD_FD_CWD,
  SBX_GUARD_FD_SCRIPT,
  SBX_GUARD_FD_MAX
};

typedef struct sbx_guard_request {
  uint32_t magic;
  uint32_t fd_count;
  uint32_t no_cwd; /* 1: the spec has the directory's path; an isolated helper takes nothing else */
} sbx_guard_request;

/* Start of the spec file; `argc` + `envc` + `extra` + `cwd` NUL-terminated strings follow it. The
 * extra one is the name of a file in the working directory, which is removed when the command has
 * ended. */
typedef struct sbx_guard_spec {
  uint32_t magic;
  uint32_t argc;
  uint32_t envc;
  uint32_t extra; /* 0 or 1 */
  uint32_t cwd;   /* 0 or 1: the path of the working directory */
} sbx_guard_spec;

typedef enum sbx_guard_kind {
  SBX_GUARD_HELLO = 1, /* on the helper's socket: it runs */
  SBX_GUARD_STARTED,   /* from here on the command may have run */
  SBX_GUARD_FAILED,    /* it did not run: value = errno, detail = sbx_guard_step */
  SBX_GUARD_EXITED,    /* value = code or signal, detail = 1 for a signal, left = 1: see GONE */
  SBX_GUARD_GONE       /* nothing is left of the command; value = processes that were killed.
                        * On the helper's socket, after the order to end: value = 0 when nothing is
                        * left of any command, else what lives */
} sbx_guard_kind;

typedef enum sbx_guard_step {
  SBX_GUARD_STEP_REQUEST,
  SBX_GUARD_STEP_FORK,
  SBX_GUARD_STEP_CWD,
  SBX_GUARD_STEP_CONFINE, /* a wall around the command could not be put up */
  SBX_GUARD_STEP_EXEC
} sbx_guard_step;

typedef struct sbx_guard_frame {
  uint32_t kind;
  int32_t value;
  int32_t detail;
  uint16_t left;
  uint16_t oom;        /* EXITED: it was ended for want of memory */
  uint64_t cpu_us;     /* EXITED: processor time of the leader and what it has waited for */
  uint64_t peak_bytes; /* EXITED: of the largest of these, in memory */
} sbx_guard_frame;

enum {
  SBX_GUARD_ORDER_TERM = 'T',    /* ask the command's process group to end */
  SBX_GUARD_ORDER_KILL = 'K',    /* end the whole process tree */
  SBX_GUARD_ORDER_RELEASE = 'R', /* with the pipes to read: what the command, which has ended, has
                                  * left behind lives on until the helper ends */
  SBX_GUARD_ORDER_CLOSE = 'C',   /* on the helper's socket: end everything; the host lives on */
  SBX_GUARD_ORDER_SIGNAL = 0x80  /* and a signal's number: for the command's process group */
};

#endif
