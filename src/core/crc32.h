/* crc32.h - the checksum of gzip, zlib and AWS's event streams. */
#ifndef SBX_CRC32_H
#define SBX_CRC32_H

#include "core/buf.h"

/* `crc` is what came out for the bytes before these, or 0. */
uint32_t sbx_crc32(uint32_t crc, sbx_slice bytes);

#endif
