/* memory.h - how much memory the commands of an isolated sandbox have, where no cgroup counts it.
 */
#ifndef SBX_GUARD_MEMORY_H
#define SBX_GUARD_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

enum { SBX__MEMORY_LOOK_MS = 100 };

/* For the first process, whose children are guards: looks at what its descendants have together.
 * The child whose tree has most of it when that is more than `limit`; 0: it is not, or cannot be
 * seen. */
pid_t sbx__memory_look(uint64_t limit);

#endif
