/* confine.h - the walls around one command of an isolated sandbox. */
#ifndef SBX_GUARD_CONFINE_H
#define SBX_GUARD_CONFINE_H

#include "guard/isolation.h"

#include <stdbool.h>

typedef struct sbx__confine {
  int landlock; /* its rules; -1: there is none */
  bool filter;  /* the command's filter was built */
  const sbx_guard_setup *limits;
} sbx__confine;

/* In the child, before its exec, and on memory that it may share with its parent: sets limits,
 * gives up all capabilities, and puts up the walls. 0 or an errno value; then nothing may be run.
 */
int sbx__confine_enter(const sbx__confine *confine);

#endif
