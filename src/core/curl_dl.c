/* curl_dl.c - loads libcurl with dlopen, once per process. A failure is not kept: what was missing,
 * a descriptor or the library itself, may be there at the next call.
 *
 * RTLD_DEEPBIND makes the library prefer its own dependencies to symbols of the same name in the
 * executable: node exports OpenSSL, nghttp2, zlib and brotli of other versions. It is left out
 * where the loader has no such flag, and with SBX_NO_DEEPBIND for sanitizers, which refuse it.
 *
 * Invariant: the table is written only under the lock and before `loaded` is set; nobody reads it
 * sooner. */
#include "core/curl_dl.h"

#include "core/buf.h"
#include "core/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#if defined(RTLD_DEEPBIND) && !defined(SBX_NO_DEEPBIND)
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#else
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#endif

#define OLDEST_VERSION 0x073d00 /* 7.61.0 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool loaded;
static sbx_curl table;

static const char *const library_names[] = {
#ifdef __APPLE__
    "libcurl.4.dylib",
    "/usr/lib/libcurl.4.dylib",
#else
    "libcurl.so.4",
    "libcurl-gnutls.so.4",
#endif
};

/* What dlerror() says holds the system's words; errno is not kept by it. */
static bool lacks_descriptors(const char *why) {
  return strstr(why, strerror(EMFILE)) != NULL || strstr(why, strerror(ENFILE)) != NULL;
}

static void *open_library(const char *chosen, sbx_err *err) {
  bool is_chosen = chosen != NULL;
  size_t count = is_chosen ? 1 : sizeof library_names / sizeof library_names[0];
  const char *why = "";
  for (size_t i = 0; i < count; i++) {
    void *library = dlopen(is_chosen ? chosen : library_names[i], LOAD_FLAGS);
    if (library != NULL)
      return library;
    why = dlerror();
    if (lacks_descriptors(why)) {
      sbx_err_set(err, SBX_ENET, "cannot load libcurl: %s", sbx_err_system(EMFILE));
      return NULL;
    }
  }
  if (is_chosen) {
    sbx_err_set(err, SBX_ELIBRARY, "cannot load libcurl from the file that SBX_LIBCURL names: ");
    sbx_err_append_remote(err, sbx_slice_str(why));
    return NULL;
  }
  sbx_err_set(err, SBX_ELIBRARY,
              "remote sandboxes need libcurl, which cannot be loaded. Install it: apt-get install "
              "libcurl4 (Debian, Ubuntu; libcurl4t64 on new ones), dnf install libcurl (Fedora, "
              "RHEL), apk add libcurl (Alpine), zypper install libcurl4 (SUSE), pacman -S curl "
              "(Arch); macOS has it. SBX_LIBCURL may name its file");
  return NULL;
}

static bool find_functions(void *library, sbx_err *err) {
#define X(name)                                                                                    \
  {                                                                                                \
    void *symbol = dlsym(library, "curl_" #name);                                                  \
    if (symbol == NULL) {                                                                          \
      sbx_err_set(err, SBX_ELIBRARY,                                                               \
                  "the libcurl found here is too old: it has no curl_" #name                       \
                  "; install 7.61 or newer");                                                      \
      return false;                                                                                \
    }                                                                                              \
    memcpy(&table.name, &symbol, sizeof symbol);                                                   \
  }
  SBX_CURL_FUNCTIONS(X)
#undef X
  return true;
}

static bool has_https(const curl_version_info_data *info) {
  for (const char *const *name = info->protocols; *name != NULL; name++) {
    if (strcmp(*name, "https") == 0)
      return true;
  }
  return false;
}

/* A library without thread-safe initialization is fine: the lock is ours. One that resolves
 * names in the calling thread is not: it would stop the loop. */
static bool check_library(sbx_err *err) {
  const curl_version_info_data *info = table.version_info(CURLVERSION_NOW);
  const char *problem = NULL;
  if (info->version_num < OLDEST_VERSION)
    problem = "is older than 7.61";
  else if (!has_https(info))
    problem = "has no TLS";
  else if ((info->features & CURL_VERSION_ASYNCHDNS) == 0)
    problem = "cannot resolve names asynchronously";
  if (problem != NULL) {
    sbx_err_set(err, SBX_ELIBRARY,
                "the libcurl found here (%s) %s; install the one of your distribution",
                info->version, problem);
    return false;
  }
  table.info = info;
  table.has_http2 = (info->features & CURL_VERSION_HTTP2) != 0;
  table.shares_http2 = table.has_http2 && info->version_num >= 0x080100;
  return true;
}

/* The library is never unloaded: TLS libraries register handlers that run at exit. */
static bool load(const char *file, sbx_err *err) {
  void *library = open_library(file, err);
  if (library == NULL || !find_functions(library, err) || !check_library(err))
    return false;
  CURLcode rc = table.global_init(CURL_GLOBAL_DEFAULT);
  if (rc != CURLE_OK)
    sbx_err_set(err, SBX_ELIBRARY, "libcurl cannot be initialized: %s", table.easy_strerror(rc));
  return rc == CURLE_OK;
}

int sbx_curl_load(const sbx_curl **out, const char *file, sbx_err *err) {
  sbx_err failure;
  sbx_err_clear(&failure);
  if (!atomic_load(&loaded)) {
    pthread_mutex_lock(&lock);
    if (!atomic_load(&loaded) && load(file, &failure))
      atomic_store(&loaded, true);
    pthread_mutex_unlock(&lock);
  }
  if (failure.code != SBX_OK) {
    sbx_err_copy(err, &failure);
    return failure.code;
  }
  *out = &table;
  return SBX_OK;
}
