/* ustar.h - tar archives: a reader that is fed with chunks, and a writer. Sans-I/O.
 *
 * What is read: ustar and what came before it, long names in the ways of GNU tar ('L', 'K') and of
 * pax (`path`, `linkpath`, `size`, `uid`, `gid`), sizes in octal and in base 256. Files with holes
 * that were left out, and kinds of entries that nobody knows, are refused. What is written: ustar,
 * and pax where that has no room. (POSIX.1-2017, pax, "ustar Interchange Format".)
 *
 * Links are told and never followed, and names are told as they are: an absolute one, or one with
 * "..", is for the consumer to refuse. */
#ifndef SBX_USTAR_H
#define SBX_USTAR_H

#include "core/buf.h"

#include <stdint.h>

enum {
  SBX_USTAR_BLOCK = 512,
  SBX_USTAR_NAME_MAX = 4096,        /* a name, and the target of a link */
  SBX_USTAR_EXTRA_MAX = 256 * 1024, /* a header that says more of the next entry */
};

typedef enum sbx_ustar_kind {
  SBX_USTAR_FILE,
  SBX_USTAR_DIR,
  SBX_USTAR_SYMLINK,
  SBX_USTAR_HARDLINK,
  SBX_USTAR_SPECIAL, /* a device or a pipe; read only */
} sbx_ustar_kind;

typedef struct sbx_ustar_entry {
  sbx_ustar_kind kind;
  sbx_slice name;
  sbx_slice link; /* target; empty but for links */
  uint64_t size;  /* of the bytes that follow; 0 but for files */
  uint32_t mode;  /* the twelve bits */
  uint64_t uid;
  uint64_t gid;
  uint64_t mtime_s; /* since 1970; read: 0 for a time before it */
} sbx_ustar_entry;

/* ---- reader --------------------------------------------------------------------------------- */

/* Each returns 0, or a code with `err` filled to stop the reader. */
typedef struct sbx_ustar_consumer {
  /* The entry's slices are valid until it returns. */
  int (*on_entry)(void *arg, const sbx_ustar_entry *entry, sbx_err *err);
  /* Bytes of the last entry as they come, never none, and in the end as many as it has said. */
  int (*on_bytes)(void *arg, sbx_slice bytes, sbx_err *err);
  void *arg;
} sbx_ustar_consumer;

typedef struct sbx_ustar {
  sbx_ustar_consumer consumer;
  unsigned char block[SBX_USTAR_BLOCK];
  size_t block_len;
  uint64_t left; /* of the bytes behind the last header */
  size_t pad;    /* and behind those, up to the next block */
  char what;     /* they are: the type of that header; 0: of an entry */
  unsigned zeros;
  bool ended;
  /* What stood before the header that comes. */
  sbx_buf extra;
  sbx_buf name;
  sbx_buf link;
  bool has_name, has_link, has_size, has_uid, has_gid;
  uint64_t size, uid, gid;
} sbx_ustar;

void sbx_ustar_init(sbx_ustar *reader, const sbx_ustar_consumer *consumer);
void sbx_ustar_deinit(sbx_ustar *reader);
/* Takes bytes at any split; what stands behind the archive's end is not looked at. Errors:
 * SBX_EPROTO, SBX_EUNSUPPORTED, SBX_ENOMEM, or the consumer's own. After an error it must not be
 * fed again. */
int sbx_ustar_feed(sbx_ustar *reader, sbx_slice bytes, sbx_err *err);
/* The stream has ended: SBX_EPROTO unless the archive has, too, with both of its last blocks. */
int sbx_ustar_finish(const sbx_ustar *reader, sbx_err *err);

/* ---- writer --------------------------------------------------------------------------------- */

/* An archive is, per entry: put_entry, then the entry->size bytes, then pad(); at last end(). All
 * return out->error, which is SBX_EINVAL for an entry that cannot be written. */
int sbx_ustar_put_entry(sbx_buf *out, const sbx_ustar_entry *entry);
int sbx_ustar_pad(sbx_buf *out, uint64_t size);
int sbx_ustar_end(sbx_buf *out);

#endif
