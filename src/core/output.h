/* output.h - the bounded collector for a command's output.
 *
 * Keeps at most `max` bytes of the joined stream in order of arrival, and of each stream apart;
 * counts what it drops. Memory stays bounded by three times the cap, whatever arrives. Bytes until
 * the edge: nothing is decoded here, NUL bytes survive. */
#ifndef SBX_OUTPUT_H
#define SBX_OUTPUT_H

#include "core/buf.h"

typedef struct sbx_output sbx_output;

/* `merged`: one joined stream only; sbx_output_add() then ignores its `stream` for keeping.
 * `on_bytes` (may be NULL) sees everything, kept or not. NULL on out of memory. */
sbx_output *sbx_output_new(size_t max, sbx_truncate truncate, bool merged, sbx_output_cb on_bytes,
                           void *arg);
void sbx_output_free(sbx_output *out);

/* Takes bytes as they arrive. Returns 0 or SBX_ENOMEM: the collector then goes on with the memory
 * it has, as if that were its cap, and counts as dropped what it cannot keep. */
int sbx_output_add(sbx_output *out, sbx_stream stream, sbx_slice bytes);

/* True when further bytes would only be counted: nobody listens, and every stream's kept part is
 * full and cannot change. */
bool sbx_output_is_full(const sbx_output *out);
/* Counts bytes that were discarded unread; only when sbx_output_is_full(). */
void sbx_output_skip(sbx_output *out, sbx_stream stream, uint64_t bytes);

/* Counts bytes that the provider left out between what was added before and what comes: it keeps
 * what fits on its side. Only when a stream's kept part is full, but for a tail that is added next,
 * and when nobody listens. */
void sbx_output_gap(sbx_output *out, sbx_stream stream, uint64_t bytes);
/* Whether somebody listens: then every byte has to be added, also what is not kept. */
bool sbx_output_is_watched(const sbx_output *out);

/* What the command gave besides its streams: one JSON object, in ASCII or UTF-8, or nothing. The
 * provider writes it when the command has ended. */
#define SBX_OUTPUT_DETAILS_MAX ((size_t)64 << 20)
sbx_buf *sbx_output_details(sbx_output *out);

/* Views of what was kept, cut at UTF-8 boundaries; valid until the next add or the free. A head and
 * a tail are laid side by side in the collector's own memory: returns 0 always. */
int sbx_output_view(sbx_output *out, sbx_kept *joined, sbx_kept *std_out, sbx_kept *std_err);

#endif
