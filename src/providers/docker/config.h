/* config.h - the options of the docker provider. */
#ifndef SBX_DOCKER_CONFIG_H
#define SBX_DOCKER_CONFIG_H

#include "providers/docker/session.h"

extern const char *const sbx__docker_options[];
int sbx__docker_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                          sbx_err *err);
void sbx__docker_config_free(sbx_config *config);

#endif
