/* config_test.h - what the tests of providers' options share. */
#ifndef SBX_TEST_CONFIG_TEST_H
#define SBX_TEST_CONFIG_TEST_H

#include "core_test.h"
#include "providers/provider.h"

typedef struct wrong_options {
  sbx_slice options;
  int code;
  const char *says;
} wrong_options;

static inline int configure(sbx_config **out, const sbx_provider *provider, sbx_slice options,
                            sbx_err *err) {
  sbx_json_doc *doc = NULL;
  int rc = sbx_json_parse(&doc, options, err);
  if (rc == SBX_OK)
    rc = sbx_provider_configure(out, provider, NULL, sbx_json_root(doc), err);
  sbx_json_free(doc, true);
  return rc;
}

static inline sbx_config *config_of(const sbx_provider *provider, const char *options) {
  sbx_config *config = NULL;
  sbx_err err;
  if (configure(&config, provider, sbx_slice_str(options), &err) != SBX_OK)
    fail_msg("%s: %s", options, err.message);
  return config;
}

/* Each is refused in these words; no message has the word "canary", which stands for a value. */
static inline void assert_refused(const sbx_provider *provider, const wrong_options *cases,
                                  size_t count) {
  for (size_t i = 0; i < count; i++) {
    sbx_config *config = NULL;
    sbx_err err;
    assert_int_equal(configure(&config, provider, cases[i].options, &err), cases[i].code);
    if (strstr(err.message, cases[i].says) == NULL || strstr(err.message, "canary") != NULL)
      fail_msg("%s: %s", cases[i].options.ptr, err.message);
  }
}

/* For each_allocation_fails(). */
typedef struct config_run {
  const sbx_provider *provider;
  sbx_slice options;
} config_run;

static inline int configure_once(void *arg) {
  const config_run *run = arg;
  sbx_config *config = NULL;
  int rc = configure(&config, run->provider, run->options, NULL);
  if (rc == SBX_OK)
    run->provider->config_free(config);
  return rc;
}

#endif
