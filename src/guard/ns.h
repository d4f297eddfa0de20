/* ns.h - the namespaces of an isolated sandbox. */
#ifndef SBX_GUARD_NS_H
#define SBX_GUARD_NS_H

#include "guard/report.h"

#include <sys/types.h>

/* The inodes of the namespaces that a process is in, by layer: 0 where they cannot be read. */
typedef struct sbx__ns_ids {
  ino_t of[SBX_LAYER_COUNT];
} sbx__ns_ids;

void sbx__ns_look(sbx__ns_ids *ids);

/* As root: becomes the user of the setup, but for a way back that sbx__ns_return() takes. Notes
 * what fails under userns. */
bool sbx__ns_drop(const sbx_guard_setup *setup, sbx_guard_hello *hello);
/* After the last process has ended: root again, if it was. */
void sbx__ns_return(void);

/* Whose processes the sandbox's are, on the machine. */
typedef struct sbx__ns_owner {
  uid_t uid;
  gid_t gid;
} sbx__ns_owner;

/* fork() into new namespaces. -1 with the layer that is to blame noted. */
pid_t sbx__ns_fork(const sbx_guard_setup *setup, sbx_guard_hello *hello);

/* fork() of a process with this number in our own namespace; 0: any. -1 and errno. */
pid_t sbx__ns_fork_as(pid_t number);

/* In the first process. The ids: inside it is 1000, whoever it was, and there is no way back.
 * Whatever fails is noted. */
bool sbx__ns_map(const sbx__ns_owner *owner, sbx_guard_hello *hello);
/* Looks whether all that was asked for is new. */
void sbx__ns_check(const sbx_guard_setup *setup, const sbx__ns_ids *before, sbx_guard_hello *hello);
/* The loopback, the host's name, the keyring, the session. */
void sbx__ns_furnish(const sbx_guard_setup *setup, sbx_guard_hello *hello);

/* SIGKILL for everything in the namespace but its first process, which must be the caller. */
void sbx__ns_kill_all(void);

#endif
