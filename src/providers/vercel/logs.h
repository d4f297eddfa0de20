/* logs.h - what the answer to a command says: lines of JSON. Sans-I/O.
 *
 *   {"command":{"id":"cmd_1","exitCode":null,...}}     it has begun
 *   {"stream":"stdout","data":"42\n"}                  or stderr
 *   {"stream":"error","data":{"code":..,"message":..}} the stream has failed
 *   {"command":{"id":"cmd_1","exitCode":0,...}}        it has ended */
#ifndef SBX_VERCEL_LOGS_H
#define SBX_VERCEL_LOGS_H

#include "core/lines.h"

enum { SBX__VERCEL_ID_MAX = 128 };

typedef struct sbx__vercel_logs {
  sbx_lines lines;
  sbx_buf printed;                 /* both outputs, as they came */
  char id[SBX__VERCEL_ID_MAX + 1]; /* of the command; empty: not said yet */
  bool ended;
  int64_t exit_code; /* valid when it has ended */
} sbx__vercel_logs;

void sbx__vercel_logs_init(sbx__vercel_logs *logs, size_t most_printed);
void sbx__vercel_logs_deinit(sbx__vercel_logs *logs);
/* Takes bytes at any split. SBX_EPROTO, SBX_ETOOBIG, SBX_ENOMEM; SBX_ENET: the stream says that it
 * has failed. Lines of other kinds are passed over, and so is all behind the end. */
int sbx__vercel_logs_feed(sbx__vercel_logs *logs, sbx_slice bytes, sbx_err *err);
/* The answer is over: its last line may have no end. SBX_ENET also when the command has not ended.
 */
int sbx__vercel_logs_finish(sbx__vercel_logs *logs, sbx_err *err);

#endif
