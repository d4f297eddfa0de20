/* command.h - the request that starts a command. */
#ifndef SBX_E2B_COMMAND_H
#define SBX_E2B_COMMAND_H

#include "providers/e2b/process.h"
#include "providers/remote/runner/args.h"

/* A command as it goes over the wire: files to upload first, then the start request. The slices are
 * borrowed from the spec. */
typedef struct sbx__e2b_command {
  sbx_buf request;
  sbx__e2b_upload uploads[2]; /* stdin, and text that is too long for an argument */
} sbx__e2b_command;

/* `token` marks the command's processes. SBX_EINVAL, SBX_ETOOBIG, SBX_ENOMEM. */
int sbx__e2b_command_make(sbx__e2b_command *command, const sbx_exec_spec *spec,
                          const sbx_config *config, const char *token, sbx_err *err);
void sbx__e2b_command_free(sbx__e2b_command *command);

#endif
