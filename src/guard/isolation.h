/* isolation.h - what the local provider and an isolated sandbox's processes say to each other.
 *
 * The helper program with the argument SBX_GUARD_ISOLATED is the *monitor*. It makes the namespaces
 * and their first process, which builds the view, puts up the walls, says on the helper's socket
 * what came of that, and then serves requests as a helper does. What the sandbox shall be stands in
 * a file in memory, never in an argument: the arguments of the first process can be read inside. */
#ifndef SBX_GUARD_ISOLATION_H
#define SBX_GUARD_ISOLATION_H

#include "guard/protocol.h"

#define SBX_GUARD_ISOLATED "--isolated"

enum { SBX_GUARD_SETUP_FD = 6, SBX_GUARD_MOUNTS_MAX = 32 };

/* Paths inside. */
#define SBX_GUARD_WORKSPACE "/workspace"
#define SBX_GUARD_HOME "/home/sandbox"

/* X(name, text) */
#define SBX_LAYER_MAP(X)                                                                           \
  X(USERNS, "userns")                                                                              \
  X(MOUNTS, "mounts")                                                                              \
  X(PIDNS, "pidns")                                                                                \
  X(PROCFS, "procfs")                                                                              \
  X(NETNS, "netns")                                                                                \
  X(IPCNS, "ipcns")                                                                                \
  X(UTSNS, "utsns")                                                                                \
  X(CGROUPNS, "cgroupns")                                                                          \
  X(NO_NEW_PRIVS, "no_new_privs")                                                                  \
  X(CAPABILITIES, "capabilities")                                                                  \
  X(SECCOMP, "seccomp")                                                                            \
  X(LANDLOCK, "landlock")                                                                          \
  X(SESSION, "session")                                                                            \
  X(KEYRING, "keyring")                                                                            \
  X(RLIMITS, "rlimits")                                                                            \
  X(CGROUP_MEMORY, "cgroup_memory")                                                                \
  X(CGROUP_PIDS, "cgroup_pids")                                                                    \
  X(CGROUP_CPU, "cgroup_cpu")                                                                      \
  X(CGROUP_KILL, "cgroup_kill")                                                                    \
  X(DISK_QUOTA, "disk_quota")

typedef enum sbx_layer_id {
#define X(name, text) SBX_LAYER_##name,
  SBX_LAYER_MAP(X)
#undef X
      SBX_LAYER_COUNT
} sbx_layer_id;

/* Zero is what nobody has tried. */
typedef enum sbx_layer_state {
  SBX_LAYER_UNAVAILABLE,
  SBX_LAYER_ENFORCED,
  SBX_LAYER_PARTIAL,
  SBX_LAYER_OFF
} sbx_layer_state;

/* At what a layer has failed; with the errno value it says why. */
typedef enum sbx_layer_step {
  SBX_STEP_UNTRIED,
  SBX_STEP_SYSTEM,      /* it is not Linux */
  SBX_STEP_DROP,        /* root becomes somebody else */
  SBX_STEP_MAPPED_ROOT, /* root that cannot, and is the machine's root */
  SBX_STEP_CLONE,       /* the namespaces */
  SBX_STEP_LIMIT,       /* the same; detail is the layer whose limit is 0 or used up */
  SBX_STEP_MAP,         /* the ids of the user namespace */
  SBX_STEP_WORKSPACE,   /* the workspace cannot be entered by who runs the commands */
  SBX_STEP_MOUNT,
  SBX_STEP_PROC,
  SBX_STEP_LOOPBACK,
  SBX_STEP_SET,     /* whatever sets it */
  SBX_STEP_WINDOW,  /* pidns: guards have no numbers of their own, see window.h */
  SBX_STEP_WATCHED, /* cgroup_memory: there is none, and we look ourselves */
  SBX_STEP_OLD,     /* landlock: detail is the ABI, which knows less than is wanted */
  SBX_STEP_VERIFIED /* it was set, and looking at it from inside shows something else */
} sbx_layer_step;

typedef struct sbx_guard_layer {
  uint32_t state;
  uint32_t step;
  int32_t error;
  int32_t detail;
} sbx_guard_layer;

/* The first words on the helper's socket. `frame` is HELLO, or FAILED: then nothing is served, and
 * value is the layer that is required and missing. With a HELLO comes a descriptor of the first
 * process, and with an allowlist the listening socket. */
typedef struct sbx_guard_hello {
  sbx_guard_frame frame;
  sbx_guard_layer layers[SBX_LAYER_COUNT];
} sbx_guard_hello;

typedef enum sbx_guard_network {
  SBX_GUARD_NET_OFF,
  SBX_GUARD_NET_ON,
  SBX_GUARD_NET_LISTEN /* off, but for a listener on the loopback that is handed out */
} sbx_guard_network;

/* Start of the setup file; the name of the directory to remove (it may be empty) follows, then
 * pairs of paths, each where it is now and where it shall be. All end with a NUL. */
typedef struct sbx_guard_setup {
  uint32_t magic;
  uint32_t uid; /* what root becomes */
  uint32_t gid;
  uint32_t network;
  uint32_t required; /* bit 1 << layer */
  uint32_t verify;   /* 1: look at the walls from inside before the first command */
  uint32_t mounts;   /* pairs */
  uint32_t port;     /* of the listener; 0: any */
  /* 0: no limit */
  uint64_t processes;
  uint64_t open_files;
  uint64_t file_bytes;
  uint64_t cpu_seconds;
  uint64_t memory_bytes;
  uint64_t temp_bytes;
} sbx_guard_setup;

#endif
