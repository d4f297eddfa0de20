/* config.c - the options of the local provider, and the environment that they make.
 *
 *   guardPath    absolute path of the helper program; required
 *   workspace    absolute path of an existing directory to work in; it is never removed. Without
 *                it each sandbox gets a directory of its own, removed at its end
 *   tempDir      absolute path of the directory to make that in (TMPDIR, else /tmp)
 *   nodePath     what runs JavaScript ("node", looked up in the command's PATH)
 *   nodeArgs     array of strings: put between nodePath and the code
 *   environment  object of the host's variables that are read here: see set_defaults, inheritEnv
 *   inheritEnv   array of names: those of them that commands get
 *   env          object of strings: further variables
 *   killGraceMs  how long a command has between SIGTERM and SIGKILL (2000, at most 3000)
 *   isolation    object, see isolated.c: commands are isolated. Without it they are not
 *
 * Invariant: of this process's environment a command gets what is named here, and nothing else:
 * keys and tokens stand there. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KILL_GRACE_MS = 2000, MAX_KILL_GRACE_MS = 3000 };

/* ---- environment ---------------------------------------------------------------------------- */

static int env_add(sbx__env *env, sbx_slice name, sbx_slice value) {
  size_t len, size;
  char **items = sbx_grow(env->items, env->count, sizeof *items);
  if (items == NULL)
    return SBX_ENOMEM;
  env->items = items;
  if (!sbx_size_add(&len, name.len, value.len) || !sbx_size_add(&size, len, 2))
    return SBX_ENOMEM;
  char *item = sbx_malloc(size);
  if (item == NULL)
    return SBX_ENOMEM;
  memcpy(item, name.ptr, name.len);
  item[name.len] = '=';
  if (value.len > 0)
    memcpy(item + name.len + 1, value.ptr, value.len);
  item[len + 1] = '\0';
  env->items[env->count++] = item;
  return SBX_OK;
}

int sbx__env_add(sbx__env *env, const char *name, const char *value) {
  return env_add(env, sbx_slice_str(name), sbx_slice_str(value));
}

void sbx__env_free(sbx__env *env) {
  for (size_t i = 0; i < env->count; i++)
    sbx_free(env->items[i]);
  sbx_free(env->items);
  *env = (sbx__env){0};
}

static bool names_utf8(const char *locale) {
  if (locale == NULL)
    return false;
  for (const char *p = locale; *p != '\0'; p++) {
    sbx_slice rest = sbx_slice_str(p);
    if ((rest.len >= 5 && sbx_slice_eq_nocase(sbx_slice_of(p, 5), sbx_slice_str("utf-8"))) ||
        (rest.len >= 4 && sbx_slice_eq_nocase(sbx_slice_of(p, 4), sbx_slice_str("utf8"))))
      return true;
  }
  return false;
}

/* A variable of the host's; NULL: not set, or not in UTF-8. */
static const char *host_value(const sbx_json *options, const char *name) {
  sbx_slice value;
  bool found = sbx_json_string(sbx_json_get(sbx_json_get(options, "environment"), name), &value);
  return found && !sbx_slice_has_nul(value) ? value.ptr : NULL;
}

/* Enough to find programs and to write text; no more. HOME is the workspace, known later. */
static int set_defaults(sbx__env *env, const sbx_json *options) {
  const char *path = host_value(options, "PATH");
  const char *all = host_value(options, "LC_ALL"), *lang = host_value(options, "LANG");
  const char *zone = host_value(options, "TZ");
  int rc = sbx__env_add(env, "PATH",
                        path != NULL && *path != '\0' ? path : "/usr/local/bin:/usr/bin:/bin");
  if (rc == SBX_OK)
    rc = sbx__env_add(env, "TERM", "dumb");
  if (rc == SBX_OK)
    rc = sbx__env_add(env, "LANG", names_utf8(all) ? all : names_utf8(lang) ? lang : "C.UTF-8");
  if (rc == SBX_OK && zone != NULL)
    rc = sbx__env_add(env, "TZ", zone);
  return rc;
}

static const char *env_value(const sbx__env *env, const char *name) {
  size_t len = strlen(name);
  for (size_t i = env->count; i > 0; i--) {
    const char *item = env->items[i - 1];
    if (strncmp(item, name, len) == 0 && item[len] == '=')
      return item + len + 1;
  }
  return NULL;
}

const char *sbx__local_home(const sbx_config *config) {
  const char *home = env_value(&config->env, "HOME");
  return home == NULL && config->isolation.wanted ? SBX_GUARD_HOME : home;
}

char *sbx__local_find_bash(const sbx_config *config) {
  static const char *const usual[] = {"/bin/bash", "/usr/bin/bash"};
  char file[4096];
  const char *path = env_value(&config->env, "PATH");
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    if (access(usual[i], X_OK) == 0)
      return sbx_strndup(usual[i], strlen(usual[i]));
  }
  while (path != NULL && *path != '\0') {
    size_t len = strcspn(path, ":");
    int n = snprintf(file, sizeof file, "%.*s/bash", (int)len, path);
    if (path[0] == '/' && n > 0 && (size_t)n < sizeof file && access(file, X_OK) == 0)
      return sbx_strndup(file, (size_t)n);
    path += len + (path[len] == ':');
  }
  return NULL;
}

/* ---- members -------------------------------------------------------------------------------- */

static int bad_name(const char *option, sbx_slice name, sbx_err *err) {
  sbx_err_set(err, SBX_EINVAL, "%s: not a name of an environment variable: \"", option);
  sbx_err_append_remote(err, name);
  sbx_err_append(err, "\"; use letters, digits and _, and no digit first");
  return SBX_EINVAL;
}

/* A value that is no UTF-8 stands as an array with its base64. */
static int inherit(sbx__env *env, const sbx_json *host, sbx_slice name, sbx_err *err) {
  sbx_slice value;
  sbx_buf bytes;
  if (!sbx_provider_is_env_name(name))
    return bad_name("inheritEnv", name, err);
  char *text = sbx_strndup(name.ptr, name.len);
  if (text == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  const sbx_json *v = sbx_json_get(host, text);
  sbx_free(text);
  int rc = SBX_OK;
  sbx_buf_init(&bytes, SIZE_MAX / 2);
  if (sbx_json_is_array(v) && sbx_json_string(sbx_json_next(v, NULL, NULL), &value)) {
    rc = sbx_base64_decode(&bytes, value);
    value = sbx_buf_slice(&bytes);
  } else if (!sbx_json_string(v, &value)) {
    return SBX_OK; /* not set */
  }
  if (rc == SBX_OK)
    rc = sbx_slice_has_nul(value) ? SBX_EINVAL : env_add(env, name, value);
  sbx_buf_deinit(&bytes);
  return rc == SBX_OK ? SBX_OK : sbx_err_set(err, rc, NULL);
}

static int read_inherit(sbx__env *env, const sbx_json *options, sbx_err *err) {
  const sbx_json *list = sbx_json_get(options, "inheritEnv");
  sbx_slice name;
  int rc = SBX_OK;
  if (list != NULL && !sbx_json_is_array(list))
    return sbx_err_set(err, SBX_EINVAL, "inheritEnv must be an array of names");
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); rc == SBX_OK && v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    if (!sbx_json_string(v, &name))
      return sbx_err_set(err, SBX_EINVAL, "inheritEnv must be an array of names");
    rc = inherit(env, sbx_json_get(options, "environment"), name, err);
  }
  return rc;
}

/* Values may be secrets: only names are shown. */
static int read_env(sbx__env *env, const sbx_json *object, sbx_err *err) {
  sbx_slice name, value;
  if (object != NULL && !sbx_json_is_object(object))
    return sbx_err_set(err, SBX_EINVAL, "env must be an object of strings");
  for (const sbx_json *v = sbx_json_next(object, NULL, &name); v != NULL;
       v = sbx_json_next(object, v, &name)) {
    if (!sbx_provider_is_env_name(name))
      return bad_name("env", name, err);
    if (!sbx_json_string(v, &value) || sbx_slice_has_nul(value)) {
      sbx_err_set(err, SBX_EINVAL, "env: the value of ");
      sbx_err_append_remote(err, name);
      sbx_err_append(err, " must be a string without NUL bytes");
      return SBX_EINVAL;
    }
    if (env_add(env, name, value) != SBX_OK)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  return SBX_OK;
}

/* Copies a string member; `fallback` (may be NULL) stands for an absent one. */
static int read_text(char **out, const sbx_json *options, const char *name, const char *fallback,
                     bool absolute, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, name);
  sbx_slice text = fallback != NULL ? sbx_slice_str(fallback) : sbx_slice_of(NULL, 0);
  if (v != NULL && (!sbx_json_string(v, &text) || text.len == 0 || sbx_slice_has_nul(text)))
    return sbx_err_set(err, SBX_EINVAL, "%s must be a path", name);
  if (text.len == 0)
    return SBX_OK;
  if (absolute && text.ptr[0] != '/')
    return sbx_err_set(err, SBX_EINVAL, "%s must be an absolute path", name);
  *out = sbx_strndup(text.ptr, text.len);
  return *out != NULL ? SBX_OK : sbx_err_set(err, SBX_ENOMEM, NULL);
}

static int read_paths(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const char *temp = host_value(options, "TMPDIR");
  int rc = read_text(&config->workspace, options, "workspace", NULL, true, err);
  if (rc == SBX_OK)
    rc = read_text(&config->temp_dir, options, "tempDir",
                   temp != NULL && temp[0] == '/' ? temp : "/tmp", true, err);
  if (rc == SBX_OK)
    rc = read_text(&config->node_path, options, "nodePath", "node", false, err);
  if (rc == SBX_OK)
    rc = read_text(&config->guard_path, options, "guardPath", NULL, true, err);
  if (rc == SBX_OK && config->guard_path == NULL)
    rc = sbx_err_set(err, SBX_EINVAL, "guardPath is missing: it names the helper program");
  return rc;
}

static int read_node_args(sbx_config *config, const sbx_json *list, sbx_err *err) {
  sbx_slice text;
  size_t count = 0;
  if (list == NULL)
    return SBX_OK;
  bool good = sbx_json_is_array(list);
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); good && v != NULL;
       v = sbx_json_next(list, v, NULL), count++)
    good = sbx_json_string(v, &text) && !sbx_slice_has_nul(text);
  if (!good)
    return sbx_err_set(err, SBX_EINVAL, "nodeArgs must be an array of strings without NUL bytes");
  config->node_args = sbx_calloc(count + 1, sizeof *config->node_args);
  if (config->node_args == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  for (const sbx_json *v = sbx_json_next(list, NULL, NULL); v != NULL;
       v = sbx_json_next(list, v, NULL)) {
    sbx_json_string(v, &text);
    char *copy = sbx_strndup(text.ptr, text.len);
    if (copy == NULL)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
    config->node_args[config->node_arg_count++] = copy;
  }
  return SBX_OK;
}

static int read_grace(sbx_config *config, const sbx_json *options, sbx_err *err) {
  const sbx_json *v = sbx_json_get(options, "killGraceMs");
  int64_t grace = KILL_GRACE_MS;
  if (v != NULL && !sbx_json_int(v, 0, MAX_KILL_GRACE_MS, &grace))
    return sbx_err_set(err, SBX_EINVAL, "killGraceMs must be an integer from 0 to %d",
                       MAX_KILL_GRACE_MS);
  config->kill_grace_ms = (uint32_t)grace;
  return SBX_OK;
}

void sbx__local_config_free(sbx_config *config) {
  sbx_free(config->workspace);
  sbx_free(config->temp_dir);
  sbx_free(config->guard_path);
  sbx_free(config->node_path);
  for (size_t i = 0; i < config->node_arg_count; i++)
    sbx_free(config->node_args[i]);
  sbx_free(config->node_args);
  sbx__env_free(&config->env);
  sbx__isolated_deinit(&config->isolation);
  sbx_free(config);
}

const char *const sbx__local_options[] = {"workspace", "tempDir",    "guardPath", "nodePath",
                                          "nodeArgs",  "inheritEnv", "env",       "killGraceMs",
                                          "isolation", NULL};

int sbx__local_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                         sbx_err *err) {
  config->loop = loop;
  int rc = read_paths(config, options, err);
  if (rc == SBX_OK)
    rc = read_node_args(config, sbx_json_get(options, "nodeArgs"), err);
  if (rc == SBX_OK)
    rc = read_grace(config, options, err);
  if (rc == SBX_OK && set_defaults(&config->env, options) != SBX_OK)
    rc = sbx_err_set(err, SBX_ENOMEM, NULL);
  if (rc == SBX_OK)
    rc = read_inherit(&config->env, options, err);
  config->env_given = config->env.count;
  if (rc == SBX_OK)
    rc = read_env(&config->env, sbx_json_get(options, "env"), err);
  return rc == SBX_OK
             ? sbx__isolated_configure(&config->isolation, sbx_json_get(options, "isolation"), err)
             : rc;
}
