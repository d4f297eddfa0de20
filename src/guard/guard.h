/* guard.h - one command, from its start to the end of its last process. */
#ifndef SBX_GUARD_GUARD_H
#define SBX_GUARD_GUARD_H

#include "guard/command.h"

/* Runs in a process of its own, until nothing of the command is left. `lifeline` ends with the
 * helper. Returns the process's exit code. */
int sbx__guard_main(sbx__guard_command *cmd, int lifeline);

#endif
