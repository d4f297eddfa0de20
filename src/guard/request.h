/* request.h - one message on the helper's socket. */
#ifndef SBX_GUARD_REQUEST_H
#define SBX_GUARD_REQUEST_H

#include "guard/command.h"

typedef enum sbx__request_kind {
  SBX__REQUEST_COMMAND,
  SBX__REQUEST_CLOSE,  /* the order to end */
  SBX__REQUEST_END,    /* the host does not speak our language */
  SBX__REQUEST_HUNG_UP /* without a word */
} sbx__request_kind;

/* Reads one, which is there. Of a command all descriptors are closed on exec. */
sbx__request_kind sbx__request_receive(sbx__guard_command *cmd);
void sbx__request_close(sbx__guard_command *cmd);

#endif
