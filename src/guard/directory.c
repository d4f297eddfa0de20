/* directory.c - removing the sandbox's own directory when the host cannot do that any more. */
#include "guard/directory.h"

#include "guard/open.h"
#include "guard/system.h"

#include <unistd.h>

enum {
  HOST_BUDGET_MS = 2000, /* for a host to end after its sockets have */
  POLL_MS = 10
};

/* The sockets of a process end a little before it has another parent take its children. */
void sbx__guard_remove_directory(const char *name, pid_t host) {
  sbx_local_root root;
  sbx__remover remover;
  if (name == NULL)
    return;
  for (int64_t limit = sbx__guard_now_ms() + HOST_BUDGET_MS;
       getppid() == host && sbx__guard_now_ms() < limit;)
    sbx__guard_wait(NULL, 0, POLL_MS);
  if (getppid() == host)
    return;
  sbx_local_root_init(&root, SBX_GUARD_ROOT_FD, NULL);
  sbx__remover_init(&remover, &root, SBX_GUARD_PARENT_FD, name);
  sbx__local_remove(&remover);
}
