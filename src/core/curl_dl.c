/* curl_dl.c - loads libcurl with dlopen, once per process.
 *
 * RTLD_DEEPBIND makes the library prefer its own dependencies to symbols of the same name in the
 * executable: node exports OpenSSL, nghttp2, zlib and brotli of other versions. It is left out
 * where the loader has no such flag, and with SBX_NO_DEEPBIND for sanitizers, which refuse it.
 *
 * Invariant: the table is written only inside the uv_once, and is either complete or unused. */
#include "core/curl_dl.h"

#include "core/buf.h"
#include "core/err.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if defined(RTLD_DEEPBIND) && !defined(SBX_NO_DEEPBIND)
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#else
#define LOAD_FLAGS (RTLD_NOW | RTLD_LOCAL)
#endif

#define OLDEST_VERSION 0x073d00 /* 7.61.0 */

static uv_once_t once = UV_ONCE_INIT;
static sbx_curl table;
static sbx_err failure;

static const char *const library_names[] = {
#ifdef __APPLE__
    "libcurl.4.dylib",
    "/usr/lib/libcurl.4.dylib",
#else
    "libcurl.so.4",
    "libcurl-gnutls.so.4",
#endif
};

static void *open_library(void) {
  const char *chosen = getenv("SBX_LIBCURL");
  if (chosen != NULL && chosen[0] != '\0') {
    void *library = dlopen(chosen, LOAD_FLAGS);
    if (library == NULL) {
      sbx_err_set(&failure, SBX_ELIBRARY,
                  "cannot load libcurl from the file that SBX_LIBCURL names: ");
      sbx_err_append_remote(&failure, sbx_slice_str(dlerror()));
    }
    return library;
  }
  for (size_t i = 0; i < sizeof library_names / sizeof library_names[0]; i++) {
    void *library = dlopen(library_names[i], LOAD_FLAGS);
    if (library != NULL)
      return library;
  }
  sbx_err_set(&failure, SBX_ELIBRARY,
              "remote sandboxes need libcurl, which cannot be loaded. Install it: apt-get install "
              "libcurl4 (Debian, Ubuntu; libcurl4t64 on new ones), dnf install libcurl (Fedora, "
              "RHEL), apk add libcurl (Alpine), zypper install libcurl4 (SUSE), pacman -S curl "
              "(Arch); macOS has it. SBX_LIBCURL may name its file");
  return NULL;
}

static bool find_functions(void *library) {
#define X(name)                                                                                    \
  {                                                                                                \
    void *symbol = dlsym(library, "curl_" #name);                                                  \
    if (symbol == NULL) {                                                                          \
      sbx_err_set(&failure, SBX_ELIBRARY,                                                          \
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

/* A library without thread-safe initialization is fine: the uv_once is ours. One that resolves
 * names in the calling thread is not: it would stop the loop. */
static bool check_library(void) {
  const curl_version_info_data *info = table.version_info(CURLVERSION_NOW);
  const char *problem = NULL;
  if (info->version_num < OLDEST_VERSION)
    problem = "is older than 7.61";
  else if (!has_https(info))
    problem = "has no TLS";
  else if ((info->features & CURL_VERSION_ASYNCHDNS) == 0)
    problem = "cannot resolve names asynchronously";
  if (problem != NULL) {
    sbx_err_set(&failure, SBX_ELIBRARY,
                "the libcurl found here (%s) %s; install the one of your distribution",
                info->version, problem);
    return false;
  }
  table.info = info;
  table.has_http2 = (info->features & CURL_VERSION_HTTP2) != 0;
  return true;
}

/* The library is never unloaded: TLS libraries register handlers that run at exit. */
static void load(void) {
  void *library = open_library();
  if (library == NULL || !find_functions(library) || !check_library())
    return;
  CURLcode rc = table.global_init(CURL_GLOBAL_DEFAULT);
  if (rc != CURLE_OK)
    sbx_err_set(&failure, SBX_ELIBRARY, "libcurl cannot be initialized: %s",
                table.easy_strerror(rc));
}

int sbx_curl_get(const sbx_curl **out, sbx_err *err) {
  uv_once(&once, load);
  if (failure.code != SBX_OK) {
    sbx_err_copy(err, &failure);
    return failure.code;
  }
  *out = &table;
  return SBX_OK;
}
