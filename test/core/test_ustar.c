/* Tests of the reader and the writer of tar archives: at every split, and what is wrong or lies. */
#include "core/ustar.h"

#include "support/core_test.h"

#include <stdio.h>
#include <string.h>

/* ---- what was read -------------------------------------------------------------------------- */

/* As text: "F name mode uid gid mtime size>link[bytes]". */
typedef struct seen {
  sbx_buf text;
  int stop; /* code with which the consumer stops at the first bytes */
} seen;

static int on_entry(void *arg, const sbx_ustar_entry *entry, sbx_err *err) {
  sbx_buf *text = &((seen *)arg)->text;
  (void)err;
  sbx_buf_appendf(text, "%c ", "FDSHX"[entry->kind]);
  sbx_buf_append_slice(text, entry->name);
  sbx_buf_appendf(text, " %o %llu %llu %llu %llu", (unsigned)entry->mode,
                  (unsigned long long)entry->uid, (unsigned long long)entry->gid,
                  (unsigned long long)entry->mtime_s, (unsigned long long)entry->size);
  if (entry->link.len > 0) {
    sbx_buf_append_char(text, '>');
    sbx_buf_append_slice(text, entry->link);
  }
  return sbx_buf_append_char(text, '\n');
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  seen *s = arg;
  (void)err;
  assert_true(bytes.len > 0);
  sbx_buf_append_slice(&s->text, bytes);
  return s->stop;
}

/* In pieces: the first one of `first` bytes, further ones of `next`. */
static int read_pieces(sbx_slice in, size_t first, size_t next, seen *s, sbx_err *err) {
  const sbx_ustar_consumer consumer = {on_entry, on_bytes, s};
  sbx_ustar reader;
  int rc = SBX_OK;
  sbx_buf_init(&s->text, 64 * 1024);
  sbx_ustar_init(&reader, &consumer);
  for (size_t at = 0, n = first; rc == SBX_OK && at < in.len; at += n, n = next) {
    if (n > in.len - at)
      n = in.len - at;
    sbx_slice piece = tight_copy(sbx_slice_of(in.ptr + at, n));
    rc = sbx_ustar_feed(&reader, piece, err);
    tight_free(piece);
  }
  if (rc == SBX_OK)
    rc = sbx_ustar_finish(&reader, err);
  sbx_ustar_deinit(&reader);
  return rc;
}

static void check_pieces(sbx_slice in, size_t first, size_t next, int code, const char *text) {
  seen s = {0};
  sbx_err err;
  int rc = read_pieces(in, first, next, &s, &err);
  if (rc != code)
    fail_msg("%d and not %d: %s", rc, code, rc != SBX_OK ? err.message : "");
  assert_slice(sbx_buf_slice(&s.text), sbx_slice_str(text));
  sbx_buf_deinit(&s.text);
}

/* At every split in two, and in pieces of every size up to more than a block. */
static void check(const sbx_buf *archive, int code, const char *text) {
  sbx_slice in = sbx_buf_slice(archive);
  assert_int_equal(archive->error, SBX_OK);
  for (size_t first = 0; first <= in.len; first++)
    check_pieces(in, first, SIZE_MAX / 2, code, text);
  for (size_t piece = 1; piece < SBX_USTAR_BLOCK + 10; piece += piece < 20 ? 1 : 37)
    check_pieces(in, piece, piece, code, text);
}

static void check_once(const sbx_buf *archive, int code, const char *text) {
  check_pieces(sbx_buf_slice(archive), SIZE_MAX / 2, 1, code, text);
}

/* ---- what is written ------------------------------------------------------------------------ */

static void put(sbx_buf *out, sbx_ustar_entry entry, const char *bytes) {
  entry.size = strlen(bytes);
  assert_int_equal(sbx_ustar_put_entry(out, &entry), SBX_OK);
  sbx_buf_append_str(out, bytes);
  assert_int_equal(sbx_ustar_pad(out, entry.size), SBX_OK);
}

static void repeat(char *out, char c, size_t count) {
  memset(out, c, count);
  out[count] = '\0';
}

static void test_what_is_written_is_read(void **state) {
  sbx_buf out;
  (void)state;
  sbx_buf_init(&out, SIZE_MAX / 2);
  put(&out, (sbx_ustar_entry){.name = LIT("a"), .mode = 0644, .mtime_s = 7}, "hello");
  put(&out, (sbx_ustar_entry){.kind = SBX_USTAR_DIR, .name = LIT("d/"), .mode = 01777, .uid = 5},
      "");
  put(&out,
      (sbx_ustar_entry){
          .kind = SBX_USTAR_SYMLINK, .name = LIT("../s"), .link = LIT("/etc/passwd"), .gid = 6},
      "");
  put(&out, (sbx_ustar_entry){.kind = SBX_USTAR_HARDLINK, .name = LIT("h"), .link = LIT("a")}, "");
  put(&out, (sbx_ustar_entry){.name = LIT("empty")}, "");
  assert_int_equal(sbx_ustar_end(&out), SBX_OK);
  assert_int_equal(out.len % SBX_USTAR_BLOCK, 0);
  check(&out, SBX_OK,
        "F a 644 0 0 7 5\nhelloD d/ 1777 5 0 0 0\nS ../s 0 0 6 0 0>/etc/passwd\n"
        "H h 0 0 0 0 0>a\nF empty 0 0 0 0 0\n");
  sbx_buf_deinit(&out);
}

/* Names of every length around the bounds of a header, with and without a place to cut them. */
static void test_names_of_every_length(void **state) {
  char name[SBX_USTAR_NAME_MAX + 2], text[2 * SBX_USTAR_NAME_MAX + 64];
  (void)state;
  for (size_t len = 1; len < 300; len++) {
    for (size_t cut = 0; cut < 3; cut++) {
      sbx_buf out;
      sbx_buf_init(&out, SIZE_MAX / 2);
      repeat(name, 'n', len);
      if (cut > 0)
        name[cut == 1 ? len / 2 : len - 1] = '/';
      sbx_ustar_kind kind = name[len - 1] == '/' ? SBX_USTAR_DIR : SBX_USTAR_FILE;
      put(&out, (sbx_ustar_entry){.kind = kind, .name = sbx_slice_str(name)}, "");
      put(&out,
          (sbx_ustar_entry){
              .kind = SBX_USTAR_SYMLINK, .name = LIT("l"), .link = sbx_slice_str(name)},
          "");
      sbx_ustar_end(&out);
      snprintf(text, sizeof text, "%c %s 0 0 0 0 0\nS l 0 0 0 0 0>%s\n", "FD"[kind], name, name);
      check_once(&out, SBX_OK, text);
      sbx_buf_deinit(&out);
    }
  }
}

static void test_a_long_name_at_every_split(void **state) {
  char name[200], text[256];
  sbx_buf out;
  (void)state;
  sbx_buf_init(&out, SIZE_MAX / 2);
  repeat(name, 'n', sizeof name - 1);
  put(&out, (sbx_ustar_entry){.name = sbx_slice_str(name)}, "x");
  sbx_ustar_end(&out);
  snprintf(text, sizeof text, "F %s 0 0 0 0 1\nx", name);
  check(&out, SBX_OK, text);
  sbx_buf_deinit(&out);
}

static void test_large_numbers(void **state) {
  sbx_buf out;
  (void)state;
  sbx_buf_init(&out, SIZE_MAX / 2);
  put(&out,
      (sbx_ustar_entry){.name = LIT("a"), .uid = 4294967294, .gid = 2097152, .mtime_s = 8589934592},
      "x");
  sbx_ustar_end(&out);
  check_once(&out, SBX_OK, "F a 0 4294967294 2097152 8589934591 1\nx");
  sbx_buf_deinit(&out);
  /* Its bytes never come. */
  const sbx_ustar_entry huge = {.name = LIT("a"), .size = (uint64_t)1 << 40};
  assert_int_equal(sbx_ustar_put_entry(&out, &huge), SBX_OK);
  sbx_ustar_end(&out);
  seen s = {.stop = SBX_EQUOTA};
  sbx_err err;
  assert_int_equal(read_pieces(sbx_buf_slice(&out), SIZE_MAX / 2, 1, &s, &err), SBX_EQUOTA);
  assert_int_equal(memcmp(s.text.ptr, "F a 0 0 0 0 1099511627776\n", 26), 0);
  sbx_buf_deinit(&s.text);
  sbx_buf_deinit(&out);
}

static void test_entries_that_cannot_be_written(void **state) {
  char name[SBX_USTAR_NAME_MAX + 2];
  repeat(name, 'n', sizeof name - 1);
  const sbx_ustar_entry cases[] = {
      {.name = LIT("")},
      {.name = sbx_slice_str(name)},
      {.name = LIT("a\0b")},
      {.kind = SBX_USTAR_SYMLINK, .name = LIT("a")},
      {.kind = SBX_USTAR_SYMLINK, .name = LIT("a"), .link = sbx_slice_str(name)},
      {.name = LIT("a"), .link = LIT("b")},
      {.name = LIT("a/")},
      {.kind = SBX_USTAR_DIR, .name = LIT("a"), .size = 1},
      {.kind = SBX_USTAR_SPECIAL, .name = LIT("a")},
      {.name = LIT("a"), .size = UINT64_MAX},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf out;
    sbx_buf_init(&out, SIZE_MAX / 2);
    assert_int_equal(sbx_ustar_put_entry(&out, &cases[i]), SBX_EINVAL);
    assert_int_equal(out.len, 0);
    sbx_buf_deinit(&out);
  }
}

static void test_no_room_to_write(void **state) {
  (void)state;
  for (size_t max = 0; max < 3 * SBX_USTAR_BLOCK; max += 17) {
    sbx_buf out;
    const sbx_ustar_entry entry = {.name = LIT("a"), .uid = UINT32_MAX};
    sbx_buf_init(&out, max);
    assert_int_equal(sbx_ustar_put_entry(&out, &entry), SBX_ETOOBIG);
    assert_true(out.len <= max);
    sbx_buf_deinit(&out);
  }
}

/* ---- headers by hand ------------------------------------------------------------------------ */

typedef struct patch {
  size_t at;
  sbx_slice bytes;
} patch;

static void sum_up(char *block) {
  unsigned sum = 0;
  char text[8];
  memset(block + 148, ' ', 8);
  for (size_t i = 0; i < SBX_USTAR_BLOCK; i++)
    sum += (unsigned char)block[i];
  snprintf(text, sizeof text, "%06o", sum);
  memcpy(block + 148, text, 7);
}

/* A header of the type and the size, changed by the patches. */
static void put_block(sbx_buf *out, char type, size_t size, const patch *patches, size_t count) {
  char block[SBX_USTAR_BLOCK] = "name";
  snprintf(block + 124, 12, "%011zo", size);
  memcpy(block + 257, "ustar\00000", 8);
  block[156] = type;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < patches[i].bytes.len; k++)
      block[patches[i].at + k] = patches[i].bytes.ptr[k];
  sum_up(block);
  sbx_buf_append(out, block, sizeof block);
}

static void put_data(sbx_buf *out, char type, sbx_slice data) {
  put_block(out, type, data.len, NULL, 0);
  sbx_buf_append_slice(out, data);
  sbx_ustar_pad(out, data.len);
}

typedef struct one {
  char type;
  patch patches[2];
  int code;
  const char *text;
} one;

/* A header of two bytes' size, with "hi" behind it. */
static void check_one(const one *c) {
  sbx_buf in;
  sbx_buf_init(&in, SIZE_MAX / 2);
  put_block(&in, c->type, 2, c->patches, 2);
  sbx_buf_append_str(&in, "hi");
  sbx_ustar_pad(&in, 2);
  sbx_ustar_end(&in);
  check(&in, c->code, c->text);
  sbx_buf_deinit(&in);
}

static void test_headers_of_all_kinds(void **state) {
  static const one cases[] = {
      {'0', {{0}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'\0', {{0}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'7', {{0}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      /* ustar's name in two parts; GNU's is in one, and v7's, which both have other things there */
      {'0', {{345, BYTES("pre/fix")}}, SBX_OK, "F pre/fix/name 0 0 0 0 2\nhi"},
      {'0', {{345, BYTES("123456")}, {257, BYTES("ustar  ")}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'0',
       {{345, BYTES("123456")}, {257, BYTES("\0\0\0\0\0\0\0\0")}},
       SBX_OK,
       "F name 0 0 0 0 2\nhi"},
      /* numbers as different programs write them */
      {'0', {{124, BYTES("          2\0")}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'0', {{124, BYTES("2 \0\0\0\0\0\0\0\0\0\0")}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'0', {{124, BYTES("000000000002")}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'0', {{124, BYTES("\x80\0\0\0\0\0\0\0\0\0\0\2")}}, SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'0', {{108, BYTES("\x80\0\0\0\xff\xff\xff\xfe")}}, SBX_OK, "F name 0 4294967294 0 0 2\nhi"},
      {'0',
       {{136, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}},
       SBX_OK,
       "F name 0 0 0 0 2\nhi"},
      {'0', {{100, BYTES("0100755")}}, SBX_OK, "F name 755 0 0 0 2\nhi"},
      {'0', {{124, BYTES("-0000000002\0")}}, SBX_EPROTO, ""},
      {'0', {{124, BYTES("00000000009\0")}}, SBX_EPROTO, ""},
      {'0', {{124, BYTES("2 2\0\0\0\0\0\0\0\0\0")}}, SBX_EPROTO, ""},
      {'0', {{124, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe")}}, SBX_EPROTO, ""},
      {'0', {{124, BYTES("\x80\0\0\1\0\0\0\0\0\0\0\0")}}, SBX_EPROTO, ""},
      {'0', {{124, BYTES("\x80\0\0\0\x80\0\0\0\0\0\0\0")}}, SBX_EPROTO, ""},
      {'0', {{108, BYTES("x")}}, SBX_EPROTO, ""},
      {'0', {{0, BYTES("\0\0\0\0")}}, SBX_EPROTO, ""},
      /* kinds that nobody knows, among them files with holes and volumes */
      {'S', {{0}}, SBX_EUNSUPPORTED, ""},
      {'M', {{0}}, SBX_EUNSUPPORTED, ""},
      {'A', {{0}}, SBX_EUNSUPPORTED, ""},
      /* a link has no bytes, so what follows is no header */
      {'2', {{157, BYTES("to")}}, SBX_EPROTO, "S name 0 0 0 0 0>to\n"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++)
    check_one(&cases[i]);
}

static void test_what_has_no_bytes(void **state) {
  static const struct {
    char type;
    const char *text;
  } cases[] = {{'1', "H name 0 0 0 0 0>to\n"}, {'2', "S name 0 0 0 0 0>to\n"},
               {'3', "X name 0 0 0 0 0\n"},    {'4', "X name 0 0 0 0 0\n"},
               {'5', "D name 0 0 0 0 0\n"},    {'6', "X name 0 0 0 0 0\n"}};
  const patch link = {157, LIT("to")};
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf in;
    sbx_buf_init(&in, SIZE_MAX / 2);
    put_block(&in, cases[i].type, 4096, &link, 1); /* its size is not its own */
    sbx_ustar_end(&in);
    check(&in, SBX_OK, cases[i].text);
    sbx_buf_deinit(&in);
  }
}

static void test_checksums(void **state) {
  sbx_buf in;
  int sum = 0;
  (void)state;
  sbx_buf_init(&in, SIZE_MAX / 2);
  const patch name = {0, LIT("\xc3\xa4\xc3\xa4")};
  put_block(&in, '0', 0, &name, 1);
  sbx_ustar_end(&in);
  check_once(&in, SBX_OK, "F \xc3\xa4\xc3\xa4 0 0 0 0 0\n");
  for (size_t i = 0; i < SBX_USTAR_BLOCK; i++)
    sum += i >= 148 && i < 156 ? ' ' : (signed char)in.ptr[i];
  snprintf(in.ptr + 148, 7, "%06o", (unsigned)sum);
  check_once(&in, SBX_OK, "F \xc3\xa4\xc3\xa4 0 0 0 0 0\n");
  for (size_t i = 0; i < SBX_USTAR_BLOCK; i++) {
    char kept = in.ptr[i];
    in.ptr[i] = (char)(kept + 1);
    seen s = {0};
    sbx_err err;
    if (read_pieces(sbx_buf_slice(&in), SIZE_MAX / 2, 1, &s, &err) != SBX_EPROTO)
      fail_msg("byte %zu", i);
    sbx_buf_deinit(&s.text);
    in.ptr[i] = kept;
  }
  sbx_buf_deinit(&in);
}

/* ---- what stands before a header ------------------------------------------------------------ */

typedef struct extra {
  char type;
  sbx_slice data;
  int code;
  const char *text; /* of the entry "name" of two bytes behind it */
} extra;

static void test_further_headers(void **state) {
  static const extra cases[] = {
      {'x', BYTES("13 path=long\n"), SBX_OK, "F long 0 0 0 0 2\nhi"},
      {'x', BYTES("9 path=a\n11 path=bcd\n"), SBX_EPROTO, ""},
      {'x', BYTES("10 path=a\n12 path=bcd\n"), SBX_OK, "F bcd 0 0 0 0 2\nhi"},
      {'x', BYTES("9 size=1\n"), SBX_OK, "F name 0 0 0 0 1\nh"},
      {'x', BYTES("9 size=0\n"), SBX_EPROTO, "F name 0 0 0 0 0\n"},
      {'x', BYTES("9 uid=10\n8 gid=3\n22 mtime=1234567.8901\n"), SBX_OK, "F name 0 10 3 0 2\nhi"},
      {'x', BYTES("20 SCHILY.xattr.a=b\n"), SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'x', BYTES(""), SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'x', BYTES("20 comment=line\nbrk\n"), SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'g', BYTES("15 comment=abc\n"), SBX_OK, "F name 0 0 0 0 2\nhi"},
      {'g', BYTES("13 path=long\n"), SBX_EUNSUPPORTED, ""},
      {'x', BYTES("22 GNU.sparse.major=1\n"), SBX_EUNSUPPORTED, ""},
      {'x', BYTES("12 size=-12\n"), SBX_EPROTO, ""},
      {'x', BYTES("8 size=\n"), SBX_EPROTO, ""},
      {'x', BYTES("28 size=9223372036854775808\n"), SBX_EPROTO, ""},
      {'x', BYTES("29 size=18446744073709551618\n"), SBX_EPROTO, ""},
      {'x', BYTES("8 path=\n"), SBX_EPROTO, ""},
      {'x', BYTES("12 path=a\0b\n"), SBX_EPROTO, ""},
      {'x', BYTES("13 path=long"), SBX_EPROTO, ""},
      {'x', BYTES("12 path=long\n"), SBX_EPROTO, ""},
      {'x', BYTES("99999999999999999999999 path=long\n"), SBX_EPROTO, ""},
      {'x', BYTES("0 path=long\n"), SBX_EPROTO, ""},
      {'x', BYTES("2 \n"), SBX_EPROTO, ""},
      {'x', BYTES("4 a\n"), SBX_EPROTO, ""},
      {'x', BYTES("5 =a\n"), SBX_EPROTO, ""},
      {'x', BYTES("path=long\n"), SBX_EPROTO, ""},
      {'L', BYTES("gnu\0"), SBX_OK, "F gnu 0 0 0 0 2\nhi"},
      {'L', BYTES("gnu"), SBX_OK, "F gnu 0 0 0 0 2\nhi"},
      {'L', BYTES("\0"), SBX_EPROTO, ""},
      {'L', BYTES(""), SBX_EPROTO, ""},
      {'K', BYTES("to\0"), SBX_OK, "F name 0 0 0 0 2\nhi"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf in;
    sbx_buf_init(&in, SIZE_MAX / 2);
    put_data(&in, cases[i].type, cases[i].data);
    put_data(&in, '0', LIT("hi"));
    sbx_ustar_end(&in);
    check_once(&in, cases[i].code, cases[i].text);
    check_pieces(sbx_buf_slice(&in), 1, 1, cases[i].code, cases[i].text);
    check_pieces(sbx_buf_slice(&in), 513, 100, cases[i].code, cases[i].text);
    sbx_buf_deinit(&in);
  }
}

/* They are for the next entry alone. */
static void test_further_headers_are_forgotten(void **state) {
  sbx_buf in;
  (void)state;
  sbx_buf_init(&in, SIZE_MAX / 2);
  put_data(&in, 'K', LIT("target"));
  put_data(&in, 'L', LIT("gnu"));
  put_data(&in, '2', LIT(""));
  put_data(&in, 'x', LIT("9 size=1\n9 uid=12\n"));
  put_data(&in, '0', LIT("h"));
  put_data(&in, '0', LIT("hello"));
  put_data(&in, '2', LIT(""));
  sbx_ustar_end(&in);
  check(&in, SBX_OK,
        "S gnu 0 0 0 0 0>target\nF name 0 12 0 0 1\nhF name 0 0 0 0 5\nhelloS name 0 0 0 0 0\n");
  sbx_buf_deinit(&in);
}

static void test_further_headers_that_are_too_long(void **state) {
  static const char types[] = {'x', 'g', 'L', 'K'};
  (void)state;
  for (size_t i = 0; i < sizeof types; i++) {
    sbx_buf in;
    sbx_buf_init(&in, SIZE_MAX / 2);
    put_block(&in, types[i], SBX_USTAR_EXTRA_MAX + 1, NULL, 0);
    check_once(&in, SBX_EPROTO, "");
    sbx_buf_deinit(&in);
  }
  char name[SBX_USTAR_NAME_MAX + 1];
  repeat(name, 'n', SBX_USTAR_NAME_MAX);
  sbx_buf in;
  sbx_buf_init(&in, SIZE_MAX / 2);
  put_data(&in, 'L', sbx_slice_of(name, SBX_USTAR_NAME_MAX + 1)); /* with its NUL */
  put_data(&in, '0', LIT(""));
  sbx_ustar_end(&in);
  seen s = {0};
  sbx_err err;
  assert_int_equal(read_pieces(sbx_buf_slice(&in), SIZE_MAX / 2, 1, &s, &err), SBX_OK);
  assert_int_equal(s.text.len, SBX_USTAR_NAME_MAX + 13);
  sbx_buf_deinit(&s.text);
  sbx_buf_deinit(&in);
  put_block(&in, 'L', SBX_USTAR_NAME_MAX + 1, NULL, 0);
  sbx_buf_append(&in, name, SBX_USTAR_NAME_MAX);
  sbx_buf_append_str(&in, "n");
  check_once(&in, SBX_EPROTO, "");
  sbx_buf_deinit(&in);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void test_every_place_to_break_off(void **state) {
  sbx_buf out;
  (void)state;
  sbx_buf_init(&out, SIZE_MAX / 2);
  put(&out, (sbx_ustar_entry){.name = LIT("a"), .uid = UINT32_MAX}, "hello");
  sbx_ustar_end(&out);
  for (size_t len = 0; len <= out.len; len++) {
    seen s = {0};
    sbx_err err;
    int rc = read_pieces(sbx_slice_of(out.ptr, len), SIZE_MAX / 2, 1, &s, &err);
    assert_int_equal(rc, len == out.len ? SBX_OK : SBX_EPROTO);
    sbx_buf_deinit(&s.text);
  }
  sbx_buf_deinit(&out);
}

static void test_what_stands_around_the_end(void **state) {
  static const char zeros[SBX_USTAR_BLOCK] = {0};
  sbx_buf in;
  (void)state;
  /* Others fill their last record. */
  sbx_buf_init(&in, SIZE_MAX / 2);
  sbx_ustar_end(&in);
  sbx_ustar_end(&in);
  sbx_buf_append_str(&in, "what is this?");
  check_once(&in, SBX_OK, "");
  sbx_buf_deinit(&in);
  /* Goes on behind its end. */
  sbx_buf_append(&in, zeros, sizeof zeros);
  put_data(&in, '0', LIT("hi"));
  sbx_ustar_end(&in);
  check_once(&in, SBX_EPROTO, "");
  sbx_buf_deinit(&in);
  /* A name without its entry. */
  put_data(&in, 'L', LIT("gnu"));
  sbx_ustar_end(&in);
  check_once(&in, SBX_EPROTO, "");
  sbx_buf_deinit(&in);
  sbx_buf_append_str(&in, "<html>no archive</html>");
  check_once(&in, SBX_EPROTO, "");
  sbx_buf_deinit(&in);
}

static void test_a_consumer_stops_it(void **state) {
  sbx_buf in;
  seen s = {.stop = SBX_ETOOBIG};
  sbx_err err;
  (void)state;
  sbx_buf_init(&in, SIZE_MAX / 2);
  put_data(&in, '0', LIT("hi"));
  put_data(&in, '0', LIT("hi"));
  sbx_ustar_end(&in);
  assert_int_equal(read_pieces(sbx_buf_slice(&in), SIZE_MAX / 2, 1, &s, &err), SBX_ETOOBIG);
  assert_slice(sbx_buf_slice(&s.text), LIT("F name 0 0 0 0 2\nhi"));
  sbx_buf_deinit(&s.text);
  sbx_buf_deinit(&in);
}

/* ---- memory --------------------------------------------------------------------------------- */

static int ignore_entry(void *arg, const sbx_ustar_entry *entry, sbx_err *err) {
  (void)arg;
  (void)entry;
  (void)err;
  return SBX_OK;
}

static int ignore_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  (void)arg;
  (void)bytes;
  (void)err;
  return SBX_OK;
}

static int write_and_read(void *arg) {
  static const sbx_ustar_consumer consumer = {ignore_entry, ignore_bytes, NULL};
  char name[200];
  sbx_buf out;
  sbx_ustar reader;
  sbx_err err;
  (void)arg;
  repeat(name, 'n', sizeof name - 1);
  const sbx_ustar_entry entry = {
      .kind = SBX_USTAR_SYMLINK, .name = sbx_slice_str(name), .link = sbx_slice_str(name)};
  sbx_buf_init(&out, SIZE_MAX / 2);
  sbx_ustar_put_entry(&out, &entry);
  int rc = sbx_ustar_end(&out);
  sbx_ustar_init(&reader, &consumer);
  if (rc == SBX_OK)
    rc = sbx_ustar_feed(&reader, sbx_buf_slice(&out), &err);
  if (rc == SBX_OK)
    rc = sbx_ustar_finish(&reader, &err);
  sbx_ustar_deinit(&reader);
  sbx_buf_deinit(&out);
  return rc;
}

static void test_without_memory(void **state) {
  (void)state;
  assert_true(each_allocation_fails(write_and_read, NULL) > 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_written_is_read),
      cmocka_unit_test(test_names_of_every_length),
      cmocka_unit_test(test_a_long_name_at_every_split),
      cmocka_unit_test(test_large_numbers),
      cmocka_unit_test(test_entries_that_cannot_be_written),
      cmocka_unit_test(test_no_room_to_write),
      cmocka_unit_test(test_headers_of_all_kinds),
      cmocka_unit_test(test_what_has_no_bytes),
      cmocka_unit_test(test_checksums),
      cmocka_unit_test(test_further_headers),
      cmocka_unit_test(test_further_headers_are_forgotten),
      cmocka_unit_test(test_further_headers_that_are_too_long),
      cmocka_unit_test(test_every_place_to_break_off),
      cmocka_unit_test(test_what_stands_around_the_end),
      cmocka_unit_test(test_a_consumer_stops_it),
      cmocka_unit_test(test_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
