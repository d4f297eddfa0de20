/* directory.h - removing the sandbox's own directory when the host cannot do that any more. */
#ifndef SBX_GUARD_DIRECTORY_H
#define SBX_GUARD_DIRECTORY_H

#include <sys/types.h>

/* Waits a little for the end of the process that started us; removes the directory (NULL: there is
 * none), whose descriptors are at the numbers of protocol.h, only if that process is no more. */
void sbx__guard_remove_directory(const char *name, pid_t host);

#endif
