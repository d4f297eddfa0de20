/* memory.c - files without a name. */
#include "providers/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_WRITE = 64 * 1024 * 1024 };

static int make_file(const sbx_config *config) {
#ifdef MFD_CLOEXEC
#ifdef MFD_NOEXEC_SEAL
  int sealed = memfd_create("sbx", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (sealed >= 0)
    return sealed;
#endif
  int memory = memfd_create("sbx", MFD_CLOEXEC);
  if (memory >= 0 || (errno != ENOSYS && errno != EPERM && errno != EACCES))
    return memory;
#endif
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/cloudsandbox-XXXXXX", config->temp_dir);
  if (n < 0 || (size_t)n >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int fd = mkstemp(path);
  if (fd >= 0) {
    unlink(path);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return fd;
}

int sbx__local_write_all(int fd, sbx_slice bytes) {
  while (bytes.len > 0) {
    ssize_t n = write(fd, bytes.ptr, bytes.len < MAX_WRITE ? bytes.len : MAX_WRITE);
    if (n < 0 && errno != EINTR)
      return errno;
    bytes = sbx_slice_skip(bytes, n > 0 ? (size_t)n : 0);
  }
  return 0;
}

int sbx__local_memory_file(int *out, const sbx_config *config, sbx_slice first, sbx_slice second,
                           sbx_err *err) {
  *out = make_file(config);
  int error = *out >= 0 ? sbx__local_write_all(*out, first) : errno;
  if (error == 0)
    error = sbx__local_write_all(*out, second);
  if (error == 0 && lseek(*out, 0, SEEK_SET) != 0)
    error = errno;
  return error == 0 ? SBX_OK : sbx__local_sys_fail(err, "store the command", error);
}
