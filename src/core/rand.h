/* rand.h - random numbers from the operating system. */
#ifndef SBX_RAND_H
#define SBX_RAND_H

#include "core/buf.h"

/* Fills `out` with `digits` lower-case hexadecimal digits and a NUL. SBX_EPROVIDER when the system
 * gives no random bytes. */
int sbx_random_hex(char *out, size_t digits, sbx_err *err);
/* A number from 0 to `most`; only for spreading things in time. */
uint64_t sbx_random_upto(uint64_t most);

#endif
