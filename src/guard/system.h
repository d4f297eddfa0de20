/* system.h - small things of the helper program: time, waiting, descriptors, frames. */
#ifndef SBX_GUARD_SYSTEM_H
#define SBX_GUARD_SYSTEM_H

#include "guard/protocol.h"

#include <signal.h>
#include <stdbool.h>

/* Sent to a guard by the first process of an isolated sandbox: its command has too much memory. */
#define SBX__NO_MEMORY SIGUSR1

int64_t sbx__guard_now_ms(void);

/* Blocks what is waited for below: the end of a child, and word of too much memory. */
void sbx__guard_catch(void);
/* Whether that word has come. */
bool sbx__guard_is_out_of_memory(void);

/* Waits until one of `fds` (-1: none) is readable, a child ends, or `timeout_ms` (-1: none) has
 * passed. SIGCHLD is blocked everywhere else, so an end is never missed. Bit i of the answer:
 * fds[i] is readable. */
unsigned sbx__guard_wait(const int *fds, int count, int timeout_ms);

/* Writes to a file of /proc that is there. Errno value or 0. */
int sbx__guard_write_file(const char *path, const char *text);

void sbx__guard_send(int fd, sbx_guard_kind kind, int value, int detail, bool left);
void sbx__guard_send_frame(int fd, const sbx_guard_frame *frame);

/* From here on orphans among our descendants become our children. */
void sbx__guard_become_subreaper(void);

/* Closes it, if it is open, and makes it -1. */
void sbx__guard_close(int *fd);
void sbx__guard_close_from(int first);

#endif
