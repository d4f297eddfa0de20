/* seccomp.h - which system calls an isolated sandbox may make. */
#ifndef SBX_GUARD_SECCOMP_H
#define SBX_GUARD_SECCOMP_H

#include <stdbool.h>

/* Filters of this machine's architecture; each returns 0 or an errno value, ENOSYS where there is
 * no table for it. */

/* What nothing in the sandbox may do. The first process loads it for all. */
int sbx__seccomp_load_main(void);
/* What a command may not do besides: namespaces by clone(), and signals to our processes, all of
 * them where `window` says that guards have numbers of their own. Built once, before a fork; loaded
 * in the child without touching memory. */
int sbx__seccomp_build_command(bool window);
int sbx__seccomp_load_command(void);

#endif
