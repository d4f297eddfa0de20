/* tree.h - finding and killing what descends from this process. */
#ifndef SBX_GUARD_TREE_H
#define SBX_GUARD_TREE_H

#include <stdbool.h>

/* Which descendants a pass leaves alone. */
typedef enum sbx__spared {
  SBX__SPARE_NONE,
  SBX__SPARE_SESSION /* children of ours that are in our session, and all below them */
} sbx__spared;

/* One pass: sends SIGKILL to every descendant, children of children included. The number of those
 * that still lived; -1 when the system does not tell. Collects nobody: what was killed keeps its
 * place in the table of processes until the caller collects it, so that a program which forks for
 * ever under a limit of processes gets no room for new ones. */
long sbx__tree_kill(sbx__spared spared);

/* Whether the system tells who descends from whom. */
bool sbx__tree_is_told(void);

#endif
