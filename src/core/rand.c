/* rand.c - random numbers from the operating system.
 *
 * Invariant: a name made of them cannot be guessed; without them there is an error and no name. */
#include "core/rand.h"

#include "core/err.h"
#include "core/os.h"

#include <errno.h>
#include <string.h>

int sbx_random_hex(char *out, size_t digits, sbx_err *err) {
  static const char hex[] = "0123456789abcdef";
  unsigned char bytes[64];
  out[0] = '\0';
  for (size_t at = 0; at < digits; at++) {
    size_t i = at % (2 * sizeof bytes); /* two digits of each byte */
    if (i == 0) {
      if (getentropy(bytes, sizeof bytes) != 0)
        return sbx_err_set(err, SBX_EPROVIDER, "the system gives no random bytes: %s",
                           strerror(errno));
    }
    out[at] = hex[bytes[i / 2] >> (i % 2 * 4) & 15];
    out[at + 1] = '\0';
  }
  return SBX_OK;
}

uint64_t sbx_random_upto(uint64_t most) {
  uint64_t value = 0;
  if (getentropy(&value, sizeof value) != 0)
    value = sbx_os_now_ns();
  return most < UINT64_MAX ? value % (most + 1) : value;
}
