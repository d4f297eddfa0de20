/* command.h - the request that starts a command. */
#ifndef SBX_E2B_COMMAND_H
#define SBX_E2B_COMMAND_H

#include "providers/e2b/process.h"

/* The variable in the environment of all processes of a command. */
#define SBX__E2B_MARK "CLOUDSANDBOX_CALL"

/* What the trailer tells when the command was not started: there is no such shell. */
enum { SBX__E2B_NO_SHELL = 999 };

/* Finds, at any split, the line by which our wrapper says that the command has ended, and takes it
 * out of the stream: RS, the token, a blank, the exit code, LF. */
typedef struct sbx__e2b_trailer {
  const char *token;
  char held[SBX__E2B_TOKEN_LEN + 8]; /* what may be the beginning of the line */
  size_t held_len;
  bool found;
  int exit_code;
  void (*fn)(void *arg, sbx_slice bytes); /* gets all that is not the line */
  void *arg;
} sbx__e2b_trailer;

void sbx__e2b_trailer_feed(sbx__e2b_trailer *trailer, sbx_slice bytes);
/* The stream has ended: what was held is no line. */
void sbx__e2b_trailer_end(sbx__e2b_trailer *trailer);

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
/* Appends the path of the file that the command's code stands in, if it is code. */
int sbx__e2b_command_main(sbx_buf *path, const sbx_exec_spec *spec, const char *token);
#endif
