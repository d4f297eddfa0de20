/* trust.c - gathers the trusted certificates and hands them to libcurl.
 *
 * libcurl shares connections, and keeps parsed certificates, between requests that name the same
 * bytes or the same file. So a file's name must mean the same certificates for as long as a
 * library may remember it: files that a user names are read here, and what goes by a name is a
 * memory file of the loop's, made once for its bytes and kept as long as the loop, whose transfers
 * are all that share anything.
 *
 * A few certificates go as bytes where the library can take them so. Where it cannot (GnuTLS before
 * curl 8), and where they are many, since it copies them for each request, they go by such a file.
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
/* Files of a loop that only save copies; each holds a descriptor. */
#define SAVING_FILES_MAX 64

/* For a library that does not tell where its default is. */
static const char *const usual_bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

int sbx_trust_init(sbx_trust *trust, sbx_slice ca_pem, const char *cert_file,
                   const char *extra_certs, sbx_err *err) {
  static const char marker[] = "-----BEGIN ";
  *trust = (sbx_trust){.cert_file = cert_file, .extra_certs = extra_certs};
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
  *trust = (sbx_trust){0};
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

/* Everything that is trusted besides the file `extra`. SBX_EINVAL: not to be found. */
static int append_base(sbx_buf *all, const char *base, const sbx_curl *curl, CURL *easy,
                       sbx_err *err) {
  int code = base != NULL ? append_file(all, base) : append_default(all, curl, easy);
  if (code == SBX_EINVAL && base != NULL)
    return sbx_err_set(err, SBX_ETLS, "SSL_CERT_FILE names a file that cannot be read");
  return code == SBX_EINVAL ? SBX_OK : code;
}

static int gather(sbx_trust *trust, const char *base, const char *extra, const sbx_curl *curl,
                  CURL *easy, sbx_err *err) {
  sbx_buf *all = &trust->pem;
  int code = extra != NULL ? append_file(all, extra) : SBX_OK;
  /* As with Node, a file that is not there does not stop anything by itself. */
  trust->extra_unreadable = code == SBX_EINVAL;
  if (code == SBX_EINVAL)
    code = SBX_OK;
  if (code == SBX_OK && (base != NULL || all->len > 0))
    code = append_base(all, base, curl, easy, err);
  if (code == SBX_ENET)
    return sbx_err_set(err, SBX_ENET, "cannot read the CA certificates: %s",
                       sbx_err_system(EMFILE));
  if (all->error != SBX_OK)
    return sbx_err_set(err, all->error,
                       all->error == SBX_ENOMEM ? NULL : "the CA certificates are too large");
  return code;
}

static int read_files(sbx_trust *trust, const sbx_curl *curl, CURL *easy, sbx_err *err) {
  const char *base = trust->cert_file;
  int code = gather(trust, base, trust->extra_certs, curl, easy, err);
  if (code != SBX_OK) {
    sbx_buf_deinit(&trust->pem);
    sbx_buf_init(&trust->pem, PEM_MAX);
    return code;
  }
  trust->exclusive = base != NULL;
  trust->ready = true;
  return SBX_OK;
}

/* ---- the loop's memory files ---- */

typedef struct ca_file {
  struct ca_file *next;
  int fd;
  size_t len;
  char path[32];
} ca_file;

typedef struct ca_files {
  sbx_loop_state state; /* first */
  ca_file *first;
  size_t count;
} ca_files;

static const char files_key;

/* Comes after the end of the transfers. */
static void free_files(sbx_loop_state *state) {
  ca_files *files = (ca_files *)(void *)state;
  while (files->first != NULL) {
    ca_file *file = files->first;
    files->first = file->next;
    close(file->fd);
    sbx_free(file);
  }
  sbx_free(files);
}

static ca_files *files_of(sbx_loop *loop) {
  ca_files *files = (ca_files *)(void *)sbx_loop_find_state(loop, &files_key);
  if (files != NULL)
    return files;
  files = sbx_calloc(1, sizeof *files);
  if (files == NULL)
    return NULL;
  files->state.key = &files_key;
  files->state.end = free_files;
  sbx_loop_add_state(loop, &files->state);
  return files;
}

static bool has_bytes(const ca_file *file, sbx_slice bytes) {
  char chunk[16384];
  off_t at = 0;
  if (file->len != bytes.len)
    return false;
  while (bytes.len > 0) {
    ssize_t got = pread(file->fd, chunk, bytes.len < sizeof chunk ? bytes.len : sizeof chunk, at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0 || memcmp(chunk, bytes.ptr, (size_t)got) != 0)
      return false;
    at += got;
    bytes = sbx_slice_skip(bytes, (size_t)got);
  }
  return true;
}

/* A descriptor of a memory file with these bytes, or -1 and errno. */
static int make_memory_file(sbx_slice bytes) {
#ifdef __linux__
  int fd = memfd_create("cloudsandbox-ca", MFD_CLOEXEC);
  while (fd >= 0 && bytes.len > 0) {
    ssize_t put = write(fd, bytes.ptr, bytes.len);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0) {
      close(fd);
      return -1;
    }
    bytes = sbx_slice_skip(bytes, (size_t)put);
  }
  return fd;
#else
  (void)bytes;
  errno = ENOSYS;
  return -1;
#endif
}

static const ca_file *find_file(const ca_files *files, sbx_slice bytes) {
  const ca_file *file = files->first;
  while (file != NULL && !has_bytes(file, bytes))
    file = file->next;
  return file;
}

static const ca_file *add_file(ca_files *files, sbx_slice bytes, sbx_err *err) {
  ca_file *file = sbx_calloc(1, sizeof *file);
  if (file == NULL) {
    sbx_err_set(err, SBX_ENOMEM, NULL);
    return NULL;
  }
  file->fd = make_memory_file(bytes);
  if (file->fd < 0) {
    if (sbx_err_is_fd_limit(errno))
      sbx_err_set(err, SBX_ENET, "cannot hand the CA certificates to libcurl: %s",
                  sbx_err_system(errno));
    else
      sbx_err_set(err, SBX_ETLS,
                  "this libcurl cannot take CA certificates from memory; install a newer libcurl");
    sbx_free(file);
    return NULL;
  }
  file->len = bytes.len;
  snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
  file->next = files->first;
  files->first = file;
  files->count++;
  return file;
}

/* ---- use ---- */

static bool set_blob(const sbx_trust *trust, const sbx_curl *curl, CURL *easy) {
  struct curl_blob blob = {trust->pem.ptr, trust->pem.len, CURL_BLOB_NOCOPY};
  if (curl->easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob) != CURLE_OK)
    return false;
  curl->easy_setopt(easy, CURLOPT_PROXY_CAINFO_BLOB, &blob);
  return true;
}

static int set_file(const sbx_trust *trust, const sbx_curl *curl, CURL *easy, sbx_err *err) {
  if (curl->easy_setopt(easy, CURLOPT_CAINFO, trust->path) != CURLE_OK)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  /* Refused by a library that cannot speak TLS to a proxy. */
  curl->easy_setopt(easy, CURLOPT_PROXY_CAINFO, trust->path);
  return SBX_OK;
}

static int set_certificates(sbx_trust *trust, sbx_loop *loop, const sbx_curl *curl, CURL *easy,
                            sbx_err *err) {
  sbx_slice bytes = sbx_buf_slice(&trust->pem);
  sbx_err why;
  if (trust->path != NULL && trust->loop == loop)
    return set_file(trust, curl, easy, err);
  if (bytes.len <= BLOB_MAX && set_blob(trust, curl, easy))
    return SBX_OK;
  ca_files *files = files_of(loop);
  if (files == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  const ca_file *file = find_file(files, bytes);
  if (file == NULL && files->count >= SAVING_FILES_MAX && set_blob(trust, curl, easy))
    return SBX_OK;
  if (file == NULL)
    file = add_file(files, bytes, &why);
  if (file == NULL && set_blob(trust, curl, easy))
    return SBX_OK;
  if (file == NULL) {
    sbx_err_copy(err, &why);
    return why.code;
  }
  trust->loop = loop;
  trust->path = file->path;
  return set_file(trust, curl, easy, err);
}

int sbx_trust_apply(sbx_trust *trust, sbx_loop *loop, const sbx_curl *curl, CURL *easy,
                    sbx_err *err) {
  int code = SBX_OK;
  if (!trust->ready)
    code = read_files(trust, curl, easy, err);
  if (code != SBX_OK)
    return code;
  /* A file of the default may be replaced, too. */
  curl->easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
  if (trust->exclusive) {
    curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl->easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
  }
  return trust->pem.len > 0 ? set_certificates(trust, loop, curl, easy, err) : SBX_OK;
}
