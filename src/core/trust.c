/* trust.c - gathers the trusted certificates and hands them to libcurl.
 *
 * A few go from memory where the library can take them so. Where it cannot (GnuTLS before curl 8),
 * and where they are many, since it copies them for each request, they go through a memory file,
 * which has a stable path under /proc as long as its descriptor is open: connections are shared
 * only between requests that name the same path, and nothing is left on disk.
 *
 * Invariant: `pem` does not change once `ready` is set; libcurl borrows it. */
#include "core/trust.h"

#include "core/alloc.h"
#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX ((size_t)16 << 20)
#define BLOB_MAX ((size_t)16 << 10)

/* For a library that does not tell where its default is. */
static const char *const usual_bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

static const char *env(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

int sbx_trust_init(sbx_trust *trust, sbx_slice ca_pem, sbx_err *err) {
  static const char marker[] = "-----BEGIN ";
  *trust = (sbx_trust){.fd = -1};
  sbx_buf_init(&trust->pem, PEM_MAX);
  if (ca_pem.len == 0)
    return SBX_OK;
  if (memmem(ca_pem.ptr, ca_pem.len, marker, sizeof marker - 1) == NULL)
    return sbx_err_set(err, SBX_EINVAL, "the CA option holds no certificate in PEM form");
  int code = sbx_buf_append_slice(&trust->pem, ca_pem);
  if (code != SBX_OK)
    return sbx_err_set(err, code, NULL);
  trust->exclusive = true;
  trust->ready = true;
  return SBX_OK;
}

void sbx_trust_deinit(sbx_trust *trust) {
  sbx_buf_deinit(&trust->pem);
  sbx_free(trust->path);
  if (trust->fd >= 0)
    close(trust->fd);
  *trust = (sbx_trust){.fd = -1};
}

/* Appends a regular file. SBX_EINVAL when it cannot be read; SBX_ENET when that is for the lack of
 * a descriptor, which passes. */
static int append_file(sbx_buf *out, const char *path) {
  int code = SBX_EINVAL;
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return sbx_err_is_fd_limit(errno) ? SBX_ENET : SBX_EINVAL;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    goto done;
  char chunk[16384];
  ssize_t got;
  while ((got = read(fd, chunk, sizeof chunk)) != 0) {
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      goto done;
    code = sbx_buf_append(out, chunk, (size_t)got);
    if (code != SBX_OK)
      goto done;
  }
  /* The next file's first line must not be joined to this one's last. */
  code = sbx_buf_append_char(out, '\n');
done:
  close(fd);
  return code;
}

/* The default bundle's certificates, as far as there is one to be found. */
static int append_default(sbx_buf *out, const sbx_curl *curl, CURL *easy) {
  const char *path = NULL;
#if LIBCURL_VERSION_NUM >= 0x075400
  char *known = NULL;
  if (curl->easy_getinfo(easy, CURLINFO_CAINFO, &known) == CURLE_OK)
    path = known;
#else
  (void)easy;
#endif
  if (path == NULL && curl->info->age >= CURLVERSION_SEVENTH)
    path = curl->info->cainfo;
  int code = path != NULL ? append_file(out, path) : SBX_EINVAL;
  for (size_t i = 0; i < sizeof usual_bundles / sizeof usual_bundles[0]; i++) {
    if (code != SBX_EINVAL)
      break;
    code = append_file(out, usual_bundles[i]);
  }
  return code;
}

/* Everything that is trusted besides the file `extra`, in one buffer with it. */
static int gather(sbx_buf *all, const char *base, const char *extra, const sbx_curl *curl,
                  CURL *easy, sbx_err *err) {
  int code = append_file(all, extra);
  if (code == SBX_OK) {
    code = base == NULL ? append_default(all, curl, easy) : append_file(all, base);
    if (code == SBX_EINVAL && base != NULL)
      return sbx_err_set(err, SBX_ETLS, "SSL_CERT_FILE names a file that cannot be read");
  }
  if (code == SBX_ENET)
    return sbx_err_set(err, SBX_ENET, "cannot read the CA certificates: %s",
                       sbx_err_system(EMFILE));
  return all->error == SBX_OK
             ? SBX_OK
             : sbx_err_set(err, all->error,
                           all->error == SBX_ENOMEM ? NULL : "the CA certificates are too large");
}

static int read_environment(sbx_trust *trust, const sbx_curl *curl, CURL *easy, sbx_err *err) {
  const char *base = env("SSL_CERT_FILE");
  const char *extra = env("NODE_EXTRA_CA_CERTS");
  if (extra != NULL) {
    int code = gather(&trust->pem, base, extra, curl, easy, err);
    if (code != SBX_OK) {
      sbx_buf_deinit(&trust->pem);
      return code;
    }
    /* As with Node, a file that is not there does not stop anything by itself. */
    trust->extra_unreadable = trust->pem.len == 0;
  }
  if (base != NULL && trust->pem.len == 0) {
    trust->path = sbx_strndup(base, strlen(base));
    if (trust->path == NULL)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  trust->exclusive = base != NULL;
  trust->ready = true;
  return SBX_OK;
}

static int make_memory_file(sbx_trust *trust, sbx_err *err) {
#ifdef __linux__
  char path[64];
  int fd = memfd_create("cloudsandbox-ca", MFD_CLOEXEC);
  if (fd < 0 && sbx_err_is_fd_limit(errno))
    return sbx_err_set(err, SBX_ENET, "cannot hand the CA certificates to libcurl: %s",
                       sbx_err_system(errno));
  size_t done = 0;
  while (fd >= 0 && done < trust->pem.len) {
    ssize_t put = write(fd, trust->pem.ptr + done, trust->pem.len - done);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0) {
      close(fd);
      fd = -1;
      break;
    }
    done += (size_t)put;
  }
  if (fd >= 0) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    trust->path = sbx_strndup(path, strlen(path));
    if (trust->path == NULL) {
      close(fd);
      return sbx_err_set(err, SBX_ENOMEM, NULL);
    }
    trust->fd = fd;
    return SBX_OK;
  }
#else
  (void)trust;
#endif
  return sbx_err_set(err, SBX_ETLS,
                     "this libcurl cannot take CA certificates from memory; name a file with "
                     "SSL_CERT_FILE, or install a newer libcurl");
}

static bool set_blob(const sbx_trust *trust, const sbx_curl *curl, CURL *easy) {
  struct curl_blob blob = {trust->pem.ptr, trust->pem.len, CURL_BLOB_NOCOPY};
  if (curl->easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob) != CURLE_OK)
    return false;
  curl->easy_setopt(easy, CURLOPT_PROXY_CAINFO_BLOB, &blob);
  return true;
}

int sbx_trust_apply(sbx_trust *trust, const sbx_curl *curl, CURL *easy, sbx_err *err) {
  int code = SBX_OK;
  if (!trust->ready)
    code = read_environment(trust, curl, easy, err);
  if (code != SBX_OK)
    return code;
  if (trust->exclusive) {
    curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl->easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
  }
  if (trust->path == NULL) {
    bool many = trust->pem.len > BLOB_MAX;
    if (trust->pem.len == 0 || (!many && set_blob(trust, curl, easy)))
      return SBX_OK;
    code = make_memory_file(trust, err);
    if (code != SBX_OK)
      return many && set_blob(trust, curl, easy) ? SBX_OK : code;
  }
  if (curl->easy_setopt(easy, CURLOPT_CAINFO, trust->path) != CURLE_OK)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  /* Refused by a library that cannot speak TLS to a proxy. */
  curl->easy_setopt(easy, CURLOPT_PROXY_CAINFO, trust->path);
  return SBX_OK;
}
