/* command.h - starting one command. */
#ifndef SBX_GUARD_COMMAND_H
#define SBX_GUARD_COMMAND_H

#include "guard/protocol.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct sbx__guard_command {
  char **argv;
  char **env;
  const char *file;         /* in the working directory, removed after the command; or NULL */
  const char *cwd;          /* its path, where it does not come as a descriptor; or NULL */
  int fd[SBX_GUARD_FD_MAX]; /* -1 where there is none */
  const struct sbx__confine *confine; /* the walls of an isolated sandbox; or NULL */
} sbx__guard_command;

/* Why a command could not be started. */
typedef struct sbx__start_error {
  int step;
  int error;
} sbx__start_error;

/* Fills argv and env with pointers into the mapped spec file. False when it makes no sense. */
bool sbx__guard_load_spec(sbx__guard_command *cmd);
/* Removes the file that goes with the command. */
void sbx__guard_remove_file(sbx__guard_command *cmd);
/* Starts it in a session of its own. -1 with `failure` filled. */
pid_t sbx__guard_start(const sbx__guard_command *cmd, sbx__start_error *failure);
/* Says on the command's stderr what a shell would say. False when no shell would go on with it. */
bool sbx__guard_report_as_shell(const sbx__guard_command *cmd, const sbx__start_error *failure,
                                int *code);

#endif
