/* config.c - the options of the docker provider.
 *
 *   host         where the engine is: unix:///path, tcp://host:port, http://..., https://...
 *                ("unix:///var/run/docker.sock")
 *   tls          https for tcp:// (true for port 2376)
 *   certPath     folder with ca.pem, cert.pem and key.pem
 *   ca           certificates to trust, in PEM, in place of ca.pem
 *   apiVersion   "1.43": of the engine's API; without it the newest that both know
 *   containerId  name or id of a container that runs: it is used, and not deleted unless `owned`
 *   image ("python:3.12-slim"), pull ("missing", "always", "never"), platform
 *   user         numbers only ("65534:65534"); of a container that is there: its own
 *   workingDir   ("/workspace")
 *   network      "none", or the name of a network
 *   memoryMb (1024), cpus, pids (256), diskMb (512)
 *   readOnlyRoot (true), noNewPrivileges (true), capabilities (array of names: none), runtime
 *   mounts       see mounts.h
 *   env, labels  objects of strings
 *   lifetimeSeconds (3600)  the container ends itself then
 *
 * Invariant: what a create says is settled here, once; so a container that replaces a lost one is
 * made like the first. */
#include "providers/docker/config.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/docker/mounts.h"
#include "providers/docker/place.h"
#include "providers/remote/options.h"
#include "providers/remote/runner/text.h"

#include <stdio.h>
#include <string.h>

#define IMAGE "python:3.12-slim"
#define NOBODY "65534:65534"
#define DIR "/workspace"

enum {
  MAX_BODY = 4 * 1024 * 1024,
  DEFAULT_MEMORY_MB = 1024,
  DEFAULT_DISK_MB = 512,
  TMP_MB = 64,
  DEFAULT_PIDS = 256,
  DEFAULT_LIFETIME_S = 3600,
  MAX_LIFETIME_S = 30 * 24 * 3600,
  MAX_MB = 64 * 1024 * 1024,
  MIN_MEMORY_MB = 6, /* the engine's own bound */
};

const char *const sbx__docker_options[] = {"host",
                                           "tls",
                                           "certPath",
                                           "ca",
                                           "apiVersion",
                                           "containerId",
                                           "owned",
                                           "image",
                                           "pull",
                                           "platform",
                                           "user",
                                           "workingDir",
                                           "network",
                                           "memoryMb",
                                           "cpus",
                                           "pids",
                                           "diskMb",
                                           "readOnlyRoot",
                                           "noNewPrivileges",
                                           "capabilities",
                                           "runtime",
                                           "mounts",
                                           "env",
                                           "labels",
                                           "lifetimeSeconds",
                                           NULL};

static int no_memory(sbx_err *err) {
  return sbx_err_set(err, SBX_ENOMEM, NULL);
}

/* A text option with a default; `fallback` NULL: none. */
static int read_text(char **out, const sbx_json *options, const char *name, const char *fallback,
                     sbx_err *err) {
  int rc = sbx_remote_text(out, options, name, err);
  if (rc == SBX_OK && *out == NULL && fallback != NULL &&
      (*out = sbx_strndup(fallback, strlen(fallback))) == NULL)
    rc = no_memory(err);
  return rc;
}

/* ---- what a create says --------------------------------------------------------------------- */

typedef struct body {
  sbx_json_out json;
  const sbx_json *options;
  sbx_err *err;
  int rc;
} body;

static void put_name(body *b, const char *name) {
  sbx_json_put_name(&b->json, sbx_slice_str(name));
}

static void put_str(body *b, const char *text) {
  sbx_json_put_string(&b->json, sbx_slice_str(text));
}

static void put_member(body *b, const char *name, const char *text) {
  put_name(b, name);
  put_str(b, text);
}

static void fail(body *b, const char *text) {
  if (b->rc == SBX_OK)
    b->rc = sbx_err_set(b->err, SBX_EINVAL, "%s", text);
}

static void put_text(body *b, const char *option, const char *member, const char *fallback) {
  char *text = NULL;
  if (b->rc == SBX_OK)
    b->rc = read_text(&text, b->options, option, fallback, b->err);
  if (b->rc == SBX_OK && text != NULL)
    put_member(b, member, text);
  sbx_free(text);
}

/* Of the option's unit `scale` are one; a value of 0 is not put. */
static int64_t put_int(body *b, const char *option, const char *member, int64_t min, int64_t max,
                       int64_t fallback, int64_t scale) {
  int64_t value = fallback;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_int(&value, b->options, option, min, max, b->err);
  if (b->rc != SBX_OK || value == 0)
    return 0;
  put_name(b, member);
  sbx_json_put_int(&b->json, value * scale);
  return value;
}

static bool read_bool(body *b, const char *option, bool fallback) {
  bool value = fallback;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_bool(&value, b->options, option, b->err);
  return value;
}

static void put_cpus(body *b) {
  const sbx_json *v = sbx_json_get(b->options, "cpus");
  double cpus = 0;
  if (v == NULL)
    return;
  if (!sbx_json_number(v, &cpus) || !(cpus >= 0.01 && cpus <= 4096)) {
    fail(b, "cpus must be a number from 0.01 to 4096");
    return;
  }
  put_name(b, "NanoCpus");
  sbx_json_put_int(&b->json, (int64_t)(cpus * 1e9));
}

static bool is_capability(sbx_slice name) {
  for (size_t i = 0; i < name.len; i++) {
    if (!(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z') && name.ptr[i] != '_')
      return false;
  }
  return name.len > 0 && name.len < 40;
}

/* What gives a container the host is refused: ALL, and those that reach around its borders. */
static bool is_dangerous(sbx_slice name) {
  static const char *const names[] = {
      "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_BOOT",
      "BPF", "PERFMON",   "SYSLOG",     "SYS_TIME",  "MAC_ADMIN",  "MAC_OVERRIDE"};
  if (sbx_slice_starts_with(name, sbx_slice_str("CAP_")))
    name = sbx_slice_skip(name, 4);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (sbx_slice_eq_str(name, names[i]))
      return true;
  }
  return false;
}

static void put_capabilities(body *b) {
  const sbx_json *list = sbx_json_get(b->options, "capabilities");
  sbx_slice name;
  if (list != NULL && !sbx_json_is_array(list))
    fail(b, "capabilities must be an array of names such as \"NET_BIND_SERVICE\"");
  put_name(b, "CapDrop");
  sbx_json_begin_array(&b->json);
  put_str(b, "ALL");
  sbx_json_end_array(&b->json);
  put_name(b, "CapAdd");
  sbx_json_begin_array(&b->json);
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL && b->rc == SBX_OK;
       v = sbx_json_next(list, v, NULL)) {
    if (!sbx_json_string(v, &name) || !is_capability(name))
      fail(b, "capabilities must be an array of names such as \"NET_BIND_SERVICE\"");
    else if (is_dangerous(name))
      fail(b, "capabilities: ALL, SYS_ADMIN, SYS_MODULE, SYS_PTRACE and the like give a container "
              "the host; they are not given");
    else
      sbx_json_put_string(&b->json, name);
  }
  sbx_json_end_array(&b->json);
}

/* A name is the engine's to know; these would be no network of the container's own. */
static void put_network(body *b) {
  char *name = NULL;
  if (b->rc == SBX_OK)
    b->rc = read_text(&name, b->options, "network", "none", b->err);
  if (b->rc == SBX_OK && (strcmp(name, "host") == 0 || strchr(name, ':') != NULL))
    fail(b, "network must be \"none\", \"bridge\" or the name of a network: the host's network, or "
            "another container's, is not given to commands");
  if (b->rc == SBX_OK)
    put_member(b, "NetworkMode", name);
  sbx_free(name);
}

static void put_host(body *b, const char *dir, const char *socket, bool *has_dir) {
  sbx_json_begin_object(&b->json);
  put_network(b);
  int64_t memory =
      put_int(b, "memoryMb", "Memory", MIN_MEMORY_MB, MAX_MB, DEFAULT_MEMORY_MB, 1 << 20);
  if (memory > 0) { /* no swap besides */
    put_name(b, "MemorySwap");
    sbx_json_put_int(&b->json, memory << 20);
  }
  put_cpus(b);
  put_int(b, "pids", "PidsLimit", 16, 4194304, DEFAULT_PIDS, 1);
  put_capabilities(b);
  put_text(b, "runtime", "Runtime", NULL);
  put_name(b, "SecurityOpt");
  sbx_json_begin_array(&b->json);
  if (read_bool(b, "noNewPrivileges", true))
    put_str(b, "no-new-privileges");
  sbx_json_end_array(&b->json);
  put_name(b, "ReadonlyRootfs");
  sbx_json_put_bool(&b->json, read_bool(b, "readOnlyRoot", true));
  put_name(b, "AutoRemove");
  sbx_json_put_bool(&b->json, true);
  put_name(b, "Mounts");
  if (b->rc == SBX_OK)
    b->rc = sbx__docker_put_mounts(&b->json, sbx_json_get(b->options, "mounts"), dir, socket,
                                   has_dir, b->err);
}

static void put_env(body *b, const char *dir) {
  const sbx_json *env = NULL;
  sbx_slice name, value = {NULL, 0};
  sbx_buf line;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_map(&env, b->options, "env", b->err);
  put_name(b, "Env");
  sbx_json_begin_array(&b->json);
  sbx_buf_init(&line, MAX_BODY);
  if (sbx_json_get(env, "HOME") == NULL) {
    sbx_buf_append_str(&line, "HOME=");
    sbx_buf_append_str(&line, dir);
    sbx_json_put_string(&b->json, sbx_buf_slice(&line));
  }
  for (const sbx_json *v = sbx_json_next(env, NULL, &name); v != NULL && b->rc == SBX_OK;
       v = sbx_json_next(env, v, &name)) {
    sbx_json_string(v, &value);
    if (!sbx_provider_is_env_name(name))
      fail(b, "env: a name must be letters, digits and _, and no digit first");
    sbx_buf_truncate(&line, 0);
    sbx_buf_append_slice(&line, name);
    sbx_buf_append_char(&line, '=');
    sbx_buf_append_slice(&line, value);
    sbx_json_put_string(&b->json, sbx_buf_slice(&line));
  }
  if (line.error != SBX_OK && b->rc == SBX_OK)
    b->rc = sbx_err_set(b->err, line.error, NULL);
  if (line.ptr != NULL)
    sbx_wipe(line.ptr, line.len);
  sbx_buf_deinit(&line);
  sbx_json_end_array(&b->json);
}

static void put_container(body *b, const sbx_config *config) {
  char lifetime[16];
  snprintf(lifetime, sizeof lifetime, "%u", (unsigned)config->lifetime_s);
  sbx_json_begin_object(&b->json);
  put_member(b, "Image", config->image);
  put_name(b, "Entrypoint");
  sbx_json_begin_array(&b->json);
  put_str(b, "/bin/sh");
  sbx_json_end_array(&b->json);
  put_name(b, "Cmd");
  sbx_json_begin_array(&b->json);
  put_str(b, "-c");
  sbx_json_put_string(&b->json, sbx_runner_text(SBX_RUNNER_LIVE));
  put_str(b, "cloudsandbox");
  put_str(b, lifetime);
  sbx_json_end_array(&b->json);
  put_member(b, "User", config->user);
  put_member(b, "WorkingDir", config->dir);
  put_member(b, "StopSignal", "SIGKILL");
  put_env(b, config->dir);
}

static void put_labels(body *b) {
  const sbx_json *labels = NULL;
  sbx_slice name;
  if (b->rc == SBX_OK)
    b->rc = sbx_remote_map(&labels, b->options, "labels", b->err);
  for (const sbx_json *v = sbx_json_next(labels, NULL, &name); v != NULL;
       v = sbx_json_next(labels, v, &name)) {
    if (name.len == 0 || sbx_slice_starts_with(name, sbx_slice_str("cloudsandbox")))
      fail(b, "labels: a name must not be empty, nor begin with \"cloudsandbox\"");
  }
  if (b->rc == SBX_OK)
    sbx_remote_begin_map(&b->json, labels);
}

/* Takes what was written, when nothing went wrong. */
static void take(body *b, char **out) {
  sbx_buf *text = b->json.buf;
  size_t len;
  if (b->rc == SBX_OK && text->error != SBX_OK)
    b->rc = sbx_err_set(b->err, text->error,
                        text->error == SBX_ETOOBIG ? "the options are too large" : NULL);
  if (b->rc == SBX_OK)
    *out = sbx_buf_take(text, &len);
  if (text->ptr != NULL)
    sbx_wipe(text->ptr, text->len); /* variables may be secrets */
  sbx_buf_deinit(text);
  sbx_json_out_init(&b->json, text);
}

/* Options of a file system in memory, from which programs can be run. */
static int write_tmpfs(char **out, int64_t mb, sbx_err *err) {
  char text[80];
  int len = snprintf(text, sizeof text, "rw,exec,nosuid,nodev,mode=1777,size=%lldm", (long long)mb);
  *out = sbx_strndup(text, (size_t)len);
  return *out != NULL ? SBX_OK : no_memory(err);
}

static bool is_mounted(const body *b, const char *dir, const char *place) {
  const sbx_json *mounts = sbx_json_get(b->options, "mounts");
  sbx_slice target;
  for (const sbx_json *v = sbx_json_next(mounts, NULL, NULL); v != NULL;
       v = sbx_json_next(mounts, v, NULL)) {
    if (sbx_json_string(sbx_json_get(v, "target"), &target) && sbx_slice_eq_str(target, place))
      return true;
  }
  return strcmp(dir, place) == 0;
}

/* Below a root that is read-only Podman makes these writable by itself, as large as the machine's
 * memory allows, unless something is mounted there. */
static void put_closed(body *b, const char *dir) {
  static const char *const places[] = {"/run", "/var/tmp"};
  for (size_t i = 0; read_bool(b, "readOnlyRoot", true) && i < 2; i++) {
    if (!is_mounted(b, dir, places[i]))
      put_member(b, places[i], "ro,nosuid,nodev,size=64m"); /* with what the image has there */
  }
}

static int read_home(sbx_config *config, const sbx_json *options, sbx_err *err) {
  sbx_slice home = sbx_slice_str(config->dir);
  sbx_json_string(sbx_json_get(sbx_json_get(options, "env"), "HOME"), &home);
  config->home = sbx_strndup(home.ptr, home.len);
  return config->home != NULL ? SBX_OK : no_memory(err);
}

static int read_create(sbx_config *config, const sbx_json *options, const char *socket,
                       sbx_err *err) {
  sbx_buf text;
  int64_t lifetime = DEFAULT_LIFETIME_S, disk = DEFAULT_DISK_MB;
  bool has_dir = false;
  body b = {.options = options, .err = err, .rc = SBX_OK};
  sbx_buf_init(&text, MAX_BODY);
  sbx_json_out_init(&b.json, &text);
  b.rc = sbx_remote_int(&lifetime, options, "lifetimeSeconds", 1, MAX_LIFETIME_S, err);
  config->lifetime_s = (uint32_t)lifetime;
  if (b.rc == SBX_OK)
    b.rc = sbx_remote_int(&disk, options, "diskMb", 1, MAX_MB, err);
  put_container(&b, config);
  take(&b, &config->create_body);
  put_host(&b, config->dir, socket, &has_dir);
  take(&b, &config->host_body);
  put_labels(&b);
  take(&b, &config->label_body);
  put_closed(&b, config->dir);
  take(&b, &config->closed);
  bool own_dir = !has_dir && strcmp(config->dir, "/tmp") != 0;
  if (b.rc == SBX_OK)
    b.rc = write_tmpfs(&config->memory, TMP_MB, err);
  if (b.rc == SBX_OK && own_dir)
    b.rc = write_tmpfs(&config->disk, disk, err);
  config->has_mounts = sbx_json_next(sbx_json_get(options, "mounts"), NULL, NULL) != NULL;
  return b.rc == SBX_OK ? read_home(config, options, err) : b.rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* "1000" or "1000:1000": a name would be looked up in files of the image. */
static bool is_numeric_user(const char *user) {
  size_t digits = 0, colons = 0;
  for (const char *at = user; *at != '\0'; at++) {
    if (*at == ':' && digits > 0 && colons == 0) {
      colons++;
      digits = 0;
    } else if (!sbx_is_digit(*at) || ++digits > 9) {
      return false;
    }
  }
  return digits > 0;
}

static int read_user(sbx_config *config, const sbx_json *options, sbx_err *err) {
  int rc = read_text(&config->user, options, "user", config->attach == NULL ? NOBODY : NULL, err);
  if (rc == SBX_OK && config->user != NULL && !is_numeric_user(config->user))
    rc = sbx_err_set(err, SBX_EINVAL,
                     "user must be a number, or two with a colon (\"1000:1000\"): a name means "
                     "whatever the image says");
  return rc;
}

static int read_image(sbx_config *config, const sbx_json *options, sbx_err *err) {
  static const char *const pulls[] = {"missing", "always", "never"};
  char *pull = NULL;
  int rc = read_text(&config->image, options, "image", IMAGE, err);
  if (rc == SBX_OK)
    rc = read_text(&pull, options, "pull", "missing", err);
  int which = -1;
  for (int i = 0; i < 3 && pull != NULL; i++)
    which = strcmp(pull, pulls[i]) == 0 ? i : which;
  config->pull = which >= 0 ? (sbx__docker_pull)which : SBX__DOCKER_PULL_MISSING;
  if (rc == SBX_OK && which < 0)
    rc = sbx_err_set(err, SBX_EINVAL, "pull must be \"missing\", \"always\" or \"never\"");
  sbx_free(pull);
  for (const char *at = config->image; rc == SBX_OK && *at != '\0'; at++) {
    if (!sbx_is_letter(*at) && !sbx_is_digit(*at) && strchr("._-/:@+", *at) == NULL)
      rc =
          sbx_err_set(err, SBX_EINVAL, "image must be the name of an image, such as \"%s\"", IMAGE);
  }
  return rc == SBX_OK ? sbx_remote_text(&config->platform, options, "platform", err) : rc;
}

/* What only says how a container is made makes no sense for one that is there. */
static int check_attach(const sbx_config *config, const sbx_json *options, sbx_err *err) {
  static const char *const of_create[] = {
      "image",   "pull",   "platform", "workingDir",   "network",        "memoryMb",
      "cpus",    "pids",   "diskMb",   "readOnlyRoot", "capabilities",   "noNewPrivileges",
      "runtime", "mounts", "env",      "labels",       "lifetimeSeconds"};
  for (size_t i = 0; config->attach != NULL && i < sizeof of_create / sizeof *of_create; i++) {
    if (sbx_json_get(options, of_create[i]) != NULL)
      return sbx_err_set(err, SBX_EINVAL,
                         "%s is for a new container, and containerId names one that is there",
                         of_create[i]);
  }
  if (config->attach == NULL && !config->owned)
    return sbx_err_set(err, SBX_EINVAL,
                       "owned: false is for a container that is there "
                       "(containerId)");
  return SBX_OK;
}

void sbx__docker_config_free(sbx_config *config) {
  sbx_http_client_free(config->http);
  sbx_headers_deinit(&config->headers);
  sbx_free(config->base);
  sbx_free(config->service);
  sbx_free(config->attach);
  sbx_free(config->image);
  sbx_free(config->platform);
  sbx_free(config->user);
  sbx_free(config->dir);
  sbx_free(config->home);
  sbx_free(config->memory);
  sbx_free(config->disk);
  sbx_free(config->closed);
  sbx_free_secret(config->create_body); /* it has variables in it */
  sbx_free(config->host_body);
  sbx_free(config->label_body);
  sbx_free(config);
}

int sbx__docker_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                          sbx_err *err) {
  char *host = NULL, *socket_path = NULL;
  sbx_slice socket = {NULL, 0};
  config->loop = loop;
  sbx_headers_init(&config->headers, 1024);
  int rc = sbx_headers_add(&config->headers, sbx_slice_str("Content-Type"),
                           sbx_slice_str("application/json"), err);
  if (rc == SBX_OK)
    rc = read_text(&host, options, "host", SBX__DOCKER_HOST, err);
  if (rc == SBX_OK)
    rc = sbx__docker_read_place(config, options, host, &socket, err);
  if (rc == SBX_OK)
    rc = sbx_remote_text(&config->attach, options, "containerId", err);
  config->owned = config->attach == NULL;
  if (rc == SBX_OK)
    rc = sbx_remote_bool(&config->owned, options, "owned", err);
  if (rc == SBX_OK)
    rc = check_attach(config, options, err);
  if (rc == SBX_OK)
    rc = read_image(config, options, err);
  if (rc == SBX_OK)
    rc = read_user(config, options, err);
  if (rc == SBX_OK)
    rc = read_text(&config->dir, options, "workingDir", DIR, err);
  if (rc == SBX_OK && !sbx__docker_is_plain_path(sbx_slice_str(config->dir)))
    rc = sbx_err_set(err, SBX_EINVAL,
                     "workingDir must be the absolute path of a directory other than /");
  if (rc == SBX_OK && socket.len > 0 && (socket_path = sbx_strndup(socket.ptr, socket.len)) == NULL)
    rc = no_memory(err);
  config->asks_memory = sbx_json_get(options, "memoryMb") != NULL;
  config->asks_cpus = sbx_json_get(options, "cpus") != NULL;
  config->asks_pids = sbx_json_get(options, "pids") != NULL;
  if (rc == SBX_OK && config->attach == NULL)
    rc = read_create(config, options, socket_path, err);
  sbx_free(host);
  sbx_free(socket_path);
  return rc;
}
