/* relay.c - a command's output on its way to the user's callback.
 *
 * Invariant: chunks are handed on in the order in which they came, each once, and never from inside
 * a provider. */
#include "sandbox/relay.h"

#include "core/alloc.h"

#include <string.h>

struct sbx__chunk {
  sbx__chunk *next;
  sbx_stream stream;
  size_t len;
  char bytes[];
};

void sbx__relay_init(sbx__relay *relay, sbx_loop *loop, sbx_output_cb fn, void *arg) {
  *relay = (sbx__relay){.loop = loop, .fn = fn, .arg = arg, .last = &relay->first};
}

bool sbx__relay_add(sbx__relay *relay, sbx_stream stream, sbx_slice bytes) {
  size_t size;
  if (!sbx_size_add(&size, sizeof(sbx__chunk), bytes.len))
    return false;
  sbx__chunk *chunk = sbx_malloc(size);
  if (chunk == NULL)
    return false;
  chunk->next = NULL;
  chunk->stream = stream;
  chunk->len = bytes.len;
  memcpy(chunk->bytes, bytes.ptr, bytes.len);
  *relay->last = chunk;
  relay->last = &chunk->next;
  return true;
}

static sbx__chunk *take_first(sbx__relay *relay) {
  sbx__chunk *chunk = relay->first;
  if (chunk == NULL)
    return NULL;
  relay->first = chunk->next;
  if (relay->first == NULL)
    relay->last = &relay->first;
  return chunk;
}

bool sbx__relay_flush(sbx__relay *relay) {
  sbx__chunk *chunk;
  bool freed = false;
  bool *outer = relay->freed;
  relay->freed = &freed;
  while (!freed && (chunk = take_first(relay)) != NULL) {
    relay->fn(relay->arg, chunk->stream, sbx_slice_of(chunk->bytes, chunk->len));
    sbx_free(chunk);
  }
  if (!freed)
    relay->freed = outer;
  else if (outer != NULL)
    *outer = true;
  return !freed;
}

void sbx__relay_deinit(sbx__relay *relay) {
  sbx__chunk *chunk;
  while ((chunk = take_first(relay)) != NULL)
    sbx_free(chunk);
  if (relay->freed != NULL)
    *relay->freed = true;
}
