/* gzip.h - bytes as a gzip file that is not compressed. Sans-I/O.
 *
 * For services that take nothing but gzip: what is sent is mostly small, and a library that
 * compresses would be one more that has to be there. */
#ifndef SBX_GZIP_H
#define SBX_GZIP_H

#include "core/buf.h"

/* Appends `bytes` as one gzip member; the same bytes always give the same file. */
int sbx_gzip_store(sbx_buf *out, sbx_slice bytes);

#endif
