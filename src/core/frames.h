/* frames.h - decoder for the frames in which a container engine sends both outputs of a process
 * over one connection. Sans-I/O.
 *
 * A frame is one byte that names the stream, three zero bytes, a 32-bit big-endian length, and so
 * many bytes. (Docker Engine API, "stream format" of attach.) */
#ifndef SBX_FRAMES_H
#define SBX_FRAMES_H

#include "core/buf.h"

typedef enum sbx_frame {
  SBX_FRAME_STDIN, /* shown as stdout */
  SBX_FRAME_STDOUT,
  SBX_FRAME_STDERR,
  SBX_FRAME_ERROR, /* the engine's own words: it cannot go on */
} sbx_frame;

/* Gets the bytes of frames as they come, never none. Returns 0, or a code with `err` filled to stop
 * the decoder. */
typedef int (*sbx_frames_fn)(void *arg, sbx_frame frame, sbx_slice bytes, sbx_err *err);

typedef struct sbx_frames {
  sbx_frames_fn fn;
  void *arg;
  unsigned char head[8]; /* of the frame that comes */
  size_t head_len;
  size_t left; /* of its bytes */
} sbx_frames;

void sbx_frames_init(sbx_frames *decoder, sbx_frames_fn fn, void *arg);
/* Takes bytes at any split, and holds none of them. Errors: SBX_EPROTO, or the callback's own.
 * After an error it must not be fed again. */
int sbx_frames_feed(sbx_frames *decoder, sbx_slice bytes, sbx_err *err);
/* Whether the stream may end here: SBX_EPROTO inside a frame. */
int sbx_frames_finish(const sbx_frames *decoder, sbx_err *err);

#endif
