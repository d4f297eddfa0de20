/* ustar.h - writes tar archives: ustar, with a PAX header where ustar has no room. Sans-I/O. */
#ifndef SBX_USTAR_H
#define SBX_USTAR_H

#include "core/buf.h"

/* Appends a regular file. `name` is relative, and has no NUL; 8 GiB is the most that a file may
 * have: SBX_ETOOBIG. The owner is root by number, without a name, and the date is 1970. */
int sbx_ustar_file(sbx_buf *out, sbx_slice name, unsigned mode, sbx_slice bytes);
/* Ends the archive. */
int sbx_ustar_end(sbx_buf *out);

#endif
