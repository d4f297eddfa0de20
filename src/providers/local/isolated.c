/* isolated.c - the options of an isolated sandbox, and what is said of its layers.
 *
 *   network     "off" (default), or "on"
 *   allowedHosts  array of what egress_rules.h takes: reached all the same when the network is off,
 *               over a listener inside that is handed out
 *   require     array of layers: without them there is no sandbox
 *   accept      array of layers that may be missing of those which are required by default
 *   mounts      array of pairs of absolute paths: what is at the first one stands, read-only, at
 *               the second one inside
 *   needed      array of paths that must be there at the start
 *   processes, openFiles, fileBytes, cpuSeconds, memoryBytes, tempBytes
 *               limits; 0 is none
 *   outputBytes what each command may write; 0 is 256 MiB, or 64 times of what is kept of it
 *
 * Invariant: what is required and missing is an error that names it. There is no way from here to
 * commands that are not isolated. */
#include "providers/local/isolated.h"

#include "core/alloc.h"
#include "core/err.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  PROCESSES = 256,
  OPEN_FILES = 1024,
  TEMP_MIB = 512,
  OUTPUT_MIB = 256,
  OUTPUT_TIMES = 64, /* of what is kept */
  NOBODY = 65534     /* what root becomes, where the workspace says nobody else */
};

#define BIT(layer) (1U << SBX_LAYER_##layer)

static const char *const layer_names[] = {
#define X(name, text) text,
    SBX_LAYER_MAP(X)
#undef X
};

static const uint32_t required_by_default = BIT(USERNS) | BIT(MOUNTS) | BIT(PIDNS) | BIT(PROCFS) |
                                            BIT(NETNS) | BIT(IPCNS) | BIT(NO_NEW_PRIVS) |
                                            BIT(CAPABILITIES) | BIT(SECCOMP) | BIT(RLIMITS);

/* ---- options -------------------------------------------------------------------------------- */

static int read_layers(uint32_t *out, const sbx_json *options, const char *name, sbx_err *err) {
  const sbx_json *list = sbx_json_get(options, name);
  sbx_slice text;
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    int found = -1;
    for (int i = 0; i < SBX_LAYER_COUNT && sbx_json_string(v, &text); i++)
      found = sbx_slice_eq_str(text, layer_names[i]) ? i : found;
    if (found < 0)
      return sbx_err_set(err, SBX_EINVAL, "isolation: `%s` must be an array of names of layers",
                         name);
    *out |= 1U << found;
  }
  return SBX_OK;
}

static int read_limit(uint64_t *out, const sbx_json *options, const char *name, uint64_t fallback,
                      sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  int64_t value = (int64_t)fallback;
  if (v != NULL && !sbx_json_int(v, 0, INT64_MAX / 2, &value))
    return sbx_err_set(err, SBX_EINVAL, "isolation: `%s` must be a whole number, 0 or more", name);
  *out = (uint64_t)value;
  return SBX_OK;
}

static int read_limits(sbx__isolation *iso, const sbx_json *options, sbx_err *err) {
  const struct {
    uint64_t *out;
    const char *name;
    uint64_t fallback;
  } list[] = {
      {&iso->setup.processes, "processes", PROCESSES},
      {&iso->setup.open_files, "openFiles", OPEN_FILES},
      {&iso->setup.file_bytes, "fileBytes", 0},
      {&iso->setup.cpu_seconds, "cpuSeconds", 0},
      {&iso->setup.memory_bytes, "memoryBytes", 0},
      {&iso->output_bytes, "outputBytes", 0},
      {&iso->setup.temp_bytes, "tempBytes", (uint64_t)TEMP_MIB << 20},
  };
  int rc = SBX_OK;
  for (size_t i = 0; rc == SBX_OK && i < sizeof list / sizeof *list; i++)
    rc = read_limit(list[i].out, options, list[i].name, list[i].fallback, err);
  return rc;
}

/* Where a mount may not be: it would take the place of a part of the view. */
static bool is_free(sbx_slice to) {
  static const char *const taken[] = {"/",    "/usr",  "/etc",          "/dev",
                                      "/tmp", "/home", "/home/sandbox", "/proc"};
  static const char *const below[] = {"/proc/", "/dev/", SBX_GUARD_WORKSPACE "/", "/etc/"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    if (sbx_slice_eq_str(to, taken[i]))
      return false;
  }
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    if (sbx_slice_starts_with(to, sbx_slice_str(below[i])))
      return false;
  }
  return !sbx_slice_eq_str(to, SBX_GUARD_WORKSPACE);
}

static int add_path(sbx__isolation *iso, const sbx_json *v, bool inside, sbx_err *err) {
  sbx_slice path;
  if (!sbx_json_string(v, &path) || path.len == 0 || path.ptr[0] != '/' ||
      sbx_slice_has_nul(path) || iso->path_count >= 2 * (size_t)SBX_GUARD_MOUNTS_MAX)
    return sbx_err_set(err, SBX_EINVAL,
                       "isolation: `mounts` must be an array of at most %d pairs of absolute paths",
                       SBX_GUARD_MOUNTS_MAX);
  char *copy = sbx_strndup(path.ptr, path.len);
  if (copy == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  iso->paths[iso->path_count++] = copy;
  if (inside && (!is_free(path) || strstr(copy, "/../") != NULL || strstr(copy, "//") != NULL ||
                 copy[path.len - 1] == '/' || strcmp(copy + path.len - 2, "..") == 0)) {
    sbx_err_set(err, SBX_EINVAL, "isolation: nothing can be mounted at \"");
    sbx_err_append_remote(err, path);
    sbx_err_append(err, "\" in the sandbox");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

static int read_mounts(sbx__isolation *iso, const sbx_json *list, sbx_err *err) {
  int rc = SBX_OK;
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); rc == SBX_OK && v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    const sbx_json *from = sbx_json_next(v, NULL, NULL);
    rc = add_path(iso, from, false, err);
    if (rc == SBX_OK)
      rc = add_path(iso, sbx_json_next(v, from, NULL), true, err);
  }
  iso->setup.mounts = (uint32_t)(iso->path_count / 2);
  return rc;
}

static int read_needed(sbx__isolation *iso, const sbx_json *list, sbx_err *err) {
  sbx_slice path;
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    if (!sbx_json_string(v, &path) || sbx_slice_has_nul(path) ||
        iso->needed_count >= (size_t)SBX_GUARD_MOUNTS_MAX)
      return sbx_err_set(err, SBX_EINVAL, "readOnlyPaths must be at most %d paths",
                         SBX_GUARD_MOUNTS_MAX);
    char *copy = sbx_strndup(path.ptr, path.len);
    if (copy == NULL)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
    iso->needed[iso->needed_count++] = copy;
  }
  return SBX_OK;
}

/* A list of hosts means nothing on a network that is not the sandbox's own. */
static int read_hosts(sbx__isolation *iso, const sbx_json *list, sbx_err *err) {
  sbx_slice text;
  int rc = SBX_OK;
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); rc == SBX_OK && v != NULL;
       v = sbx_json_next(list, v, NULL))
    rc = sbx_json_string(v, &text)
             ? sbx__egress_rules_add(&iso->hosts, text, err)
             : sbx_err_set(err, SBX_EINVAL, "allowedHosts must be an array of strings");
  if (rc != SBX_OK || iso->hosts.count == 0)
    return rc;
  if (iso->setup.network == SBX_GUARD_NET_ON)
    return sbx_err_set(err, SBX_EINVAL, "allowedHosts are exceptions of network: \"off\"");
  iso->setup.network = SBX_GUARD_NET_LISTEN;
  iso->setup.required |= BIT(NETNS);
  return SBX_OK;
}

int sbx__isolated_configure(sbx__isolation *iso, const sbx_json *options, sbx_err *err) {
  static const char *const networks[] = {"off", "on"};
  sbx_slice network = sbx_slice_str(networks[0]);
  uint32_t accepted = 0;
  if (options == NULL)
    return SBX_OK;
  iso->wanted = true;
  iso->setup.magic = SBX_GUARD_MAGIC;
  sbx_json_string(sbx_json_get(options, "network"), &network);
  iso->setup.network =
      sbx_slice_eq_str(network, networks[1]) ? SBX_GUARD_NET_ON : SBX_GUARD_NET_OFF;
  if (iso->setup.network == SBX_GUARD_NET_OFF && !sbx_slice_eq_str(network, networks[0]))
    return sbx_err_set(err, SBX_EINVAL, "isolation: `network` must be \"off\" or \"on\"");
  iso->setup.required = required_by_default;
  if (iso->setup.network == SBX_GUARD_NET_ON)
    iso->setup.required &= ~BIT(NETNS);
  int rc = read_layers(&accepted, options, "accept", err);
  iso->setup.required &= ~accepted;
  if (rc == SBX_OK)
    rc = read_hosts(iso, sbx_json_get(options, "allowedHosts"), err);
  if (rc == SBX_OK)
    rc = read_layers(&iso->setup.required, options, "require", err);
  if (rc == SBX_OK)
    rc = read_limits(iso, options, err);
  if (rc == SBX_OK)
    rc = read_needed(iso, sbx_json_get(options, "needed"), err);
  return rc == SBX_OK ? read_mounts(iso, sbx_json_get(options, "mounts"), err) : rc;
}

uint64_t sbx__isolated_output(const sbx__isolation *iso, uint64_t kept) {
  uint64_t usual = (uint64_t)OUTPUT_MIB << 20;
  if (!iso->wanted || kept > UINT64_MAX / OUTPUT_TIMES)
    return UINT64_MAX;
  if (kept * OUTPUT_TIMES > usual)
    usual = kept * OUTPUT_TIMES;
  return iso->output_bytes > 0 ? iso->output_bytes : usual;
}

void sbx__isolated_deinit(sbx__isolation *iso) {
  for (size_t i = 0; i < iso->needed_count; i++)
    sbx_free(iso->needed[i]);
  for (size_t i = 0; i < iso->path_count; i++)
    sbx_free(iso->paths[i]);
  sbx__egress_rules_deinit(&iso->hosts);
}

void sbx__isolated_owner(const struct stat *directory, uid_t *uid, gid_t *gid) {
  bool taken = directory != NULL && directory->st_uid != 0;
  *uid = taken ? directory->st_uid : NOBODY;
  *gid = taken && directory->st_gid != 0 ? directory->st_gid : NOBODY;
}

/* ---- setup ---------------------------------------------------------------------------------- */

int sbx__isolated_check_paths(const sbx__isolation *iso, sbx_err *err) {
  struct stat st;
  for (size_t i = 0; i < iso->needed_count; i++) {
    if (stat(iso->needed[i], &st) == 0)
      continue;
    int error = errno;
    sbx_err_set(err, SBX_EINVAL, "readOnlyPaths: \"");
    sbx_err_append_remote(err, sbx_slice_str(iso->needed[i]));
    sbx_err_append(err, "\" cannot be shown in the sandbox: %s; %s", sbx_err_system(error),
                   error == ENOENT || error == ENOTDIR
                       ? "create it before the start, or leave it out"
                       : "leave it out, or let this process reach it");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

/* Networks that a sandbox of this process was looked at with; once is enough. */
static atomic_uint verified;

int sbx__isolated_setup(sbx_buf *out, const sbx__isolation *iso, uid_t uid, gid_t gid,
                        uint16_t port, const char *name) {
  sbx_guard_setup setup = iso->setup;
  setup.uid = uid;
  setup.gid = gid;
  setup.port = port;
  setup.verify = (atomic_load(&verified) & 1U << setup.network) == 0;
  sbx_buf_append(out, (const char *)&setup, sizeof setup);
  sbx_buf_append(out, name, strlen(name) + 1);
  for (size_t i = 0; i < iso->path_count; i++)
    sbx_buf_append(out, iso->paths[i], strlen(iso->paths[i]) + 1);
  return out->error;
}

void sbx__isolated_verified(const sbx__isolation *iso) {
  atomic_fetch_or(&verified, 1U << iso->setup.network);
}

/* ---- words ---------------------------------------------------------------------------------- */

static const char *errno_name(int error) {
  switch (error) {
#define NAME(name)                                                                                 \
  case name:                                                                                       \
    return #name;
    NAME(EPERM)
    NAME(ENOENT)
    NAME(EACCES)
    NAME(EEXIST)
    NAME(EINVAL)
    NAME(ENOSPC)
    NAME(EROFS)
    NAME(ENOSYS)
    NAME(EUSERS)
    NAME(ENOMEM)
    NAME(EAGAIN)
    NAME(ENODEV)
    NAME(EOPNOTSUPP)
#undef NAME
  default:
    return NULL;
  }
}

#define DOCKER "a container's filter of system calls, or a chroot, forbids it. In Docker, run with "
#define SYSCTL(name) "the limit user." name " is 0 or used up: raise it with sysctl"
#define APPARMOR                                                                                   \
  "the system lets user namespaces be made and then denies their use (Ubuntu 23.10 and later do "  \
  "so "                                                                                            \
  "by AppArmor): give the helper program an AppArmor profile that allows userns, or set "          \
  "kernel.apparmor_restrict_unprivileged_userns=0"

static const char *limit_hint(sbx_layer_id layer) {
  switch ((int)layer) {
  case SBX_LAYER_MOUNTS:
    return SYSCTL("max_mnt_namespaces");
  case SBX_LAYER_PIDNS:
    return SYSCTL("max_pid_namespaces");
  case SBX_LAYER_NETNS:
    return SYSCTL("max_net_namespaces");
  case SBX_LAYER_IPCNS:
    return SYSCTL("max_ipc_namespaces");
  case SBX_LAYER_UTSNS:
    return SYSCTL("max_uts_namespaces");
  case SBX_LAYER_CGROUPNS:
    return SYSCTL("max_cgroup_namespaces");
  default:
    return "the limit user.max_user_namespaces is 0 or used up, or user namespaces are nested 32 "
           "deep: raise it with sysctl";
  }
}

static const char *hint(sbx_layer_id layer, const sbx_guard_layer *l) {
  switch ((sbx_layer_step)l->step) {
  case SBX_STEP_SYSTEM:
    return "commands are isolated on Linux only";
  case SBX_STEP_MAPPED_ROOT:
    return "this process is root and cannot become another user here, and its commands would be "
           "the "
           "machine's root: start it as an ordinary user";
  case SBX_STEP_DROP:
    return "root could not become an ordinary user: start this process as one";
  case SBX_STEP_LIMIT:
    return limit_hint(layer);
  case SBX_STEP_CLONE:
    return l->error == EPERM ? DOCKER
               "a seccomp profile that allows clone and unshare with namespaces"
           : l->error == EUSERS ? limit_hint(layer)
                                : "the kernel was built without it, or a filter hides it";
  case SBX_STEP_MAP:
    return APPARMOR;
  case SBX_STEP_WORKSPACE:
    return "the user that commands run as may not enter the workspace: give it to that user, or "
           "leave `workspace` out";
  case SBX_STEP_MOUNT:
    return l->error == EPERM || l->error == EACCES ? APPARMOR
           : l->error == ENOSYS ? "Linux 5.12 or later is needed for mounts of this kind"
                                : "a part of the file system could not be mounted";
  case SBX_STEP_PROC:
    return "a container masks parts of /proc, and then the kernel allows no other one. In Docker, "
           "run with --security-opt systempaths=unconfined; or accept: [\"procfs\"] for an empty "
           "/proc";
  case SBX_STEP_LOOPBACK:
    return "the loopback of the sandbox's network could not be used";
  case SBX_STEP_VERIFIED:
    return "it was set up, but from inside it was not there: please report this";
  case SBX_STEP_WINDOW:
    return "its own processes have no numbers of their own: commands may end each other";
  case SBX_STEP_OLD:
    return "the kernel's Landlock is older than what is used of it";
  case SBX_STEP_WATCHED:
    return "this version makes no cgroups: what all commands have together is looked at ten times "
           "a "
           "second, and the largest one is ended; files in memory are not counted";
  case SBX_STEP_UNTRIED:
  case SBX_STEP_SET:
    break;
  }
  return layer == SBX_LAYER_LANDLOCK ? "the kernel was built or started without Landlock"
         : layer >= SBX_LAYER_CGROUP_MEMORY && layer <= SBX_LAYER_CGROUP_KILL
             ? "this version makes no cgroups; limits: \"best-effort\" takes what there is without"
         : layer == SBX_LAYER_DISK_QUOTA ? "what is temporary is limited, the workspace is not"
                                         : "the kernel refuses it";
}

int sbx__isolated_fail(const sbx_guard_hello *hello, sbx_err *err) {
  int layer = hello->frame.value;
  if (layer < 0 || layer >= SBX_LAYER_COUNT)
    return sbx_err_set(err, SBX_EPROTO, "the helper program said something unknown");
  const sbx_guard_layer *l = &hello->layers[layer];
  const char *name = errno_name(l->error);
  return sbx_err_set(
      err, SBX_EISOLATION,
      "commands cannot be isolated on this machine. Layer "
      "%s: %s%s%s. Else run the code in a remote sandbox or in Docker; for code that "
      "you trust there is isolation: \"none\"",
      layer_names[layer], name != NULL ? name : "", name != NULL ? ": " : "",
      hint((sbx_layer_id)layer, l));
}

static void put_layer(sbx_json_out *out, sbx_layer_id id, const sbx_guard_layer *l) {
  static const char *const states[] = {"unavailable", "enforced", "partial", "off"};
  const char *name = errno_name(l->error);
  bool good = l->state == SBX_LAYER_ENFORCED || l->state == SBX_LAYER_OFF;
  sbx_json_put_name(out, sbx_slice_str(layer_names[id]));
  sbx_json_begin_object(out);
  sbx_json_put_text(out, "state", sbx_slice_str(l->state < 4 ? states[l->state] : states[0]));
  if (!good && name != NULL)
    sbx_json_put_text(out, "errno", sbx_slice_str(name));
  if (!good)
    sbx_json_put_text(out, "hint", sbx_slice_str(hint(id, l)));
  sbx_json_end_object(out);
}

void sbx__isolated_describe(const sbx_guard_hello *hello, sbx_buf *out) {
  sbx_json_out json;
  sbx_json_out_init(&json, out);
  sbx_json_begin_object(&json);
  for (int i = 0; i < SBX_LAYER_COUNT; i++)
    put_layer(&json, (sbx_layer_id)i, &hello->layers[i]);
  sbx_json_end_object(&json);
}
