/* stats.h - what at.sh prints of files. Sans-I/O. */
#ifndef SBX_RUNNER_STATS_H
#define SBX_RUNNER_STATS_H

#include "providers/provider.h"

/* Adds what the text says; a name may be empty. SBX_ETOOBIG when there is more than `most`, or the
 * last one is not whole; SBX_EPROTO, SBX_ENOMEM. */
int sbx_runner_stats_read(sbx_stats *out, sbx_slice text, size_t most);

#endif
