/* report.h - what the runner's programs print. Sans-I/O. */
#ifndef SBX_RUNNER_REPORT_H
#define SBX_RUNNER_REPORT_H

#include "core/buf.h"

typedef enum sbx_runner_end {
  SBX_RUNNER_RAN,      /* it ended by itself */
  SBX_RUNNER_LATE,     /* its limit ended it */
  SBX_RUNNER_STOPPED,  /* a kill ended it, or kept it from being started */
  SBX_RUNNER_UNSTORED, /* it was not started: there is no room for its text */
  SBX_RUNNER_NODIR,    /* it was not started: its working directory cannot be entered */
  SBX_RUNNER_NOSHELL,  /* it was not started: the shell that was asked for is not there */
  SBX_RUNNER_AGAIN,    /* the line came a second time, and was not run again */
  SBX_RUNNER_GOING,    /* it runs still */
  SBX_RUNNER_ABSENT,   /* nothing of it is there: it has not begun, or there is no such file */
  SBX_RUNNER_ENDED,    /* the program that ran it was killed before it could report */
} sbx_runner_end;

typedef enum sbx_runner_background {
  SBX_RUNNER_NONE,      /* nothing of the command was seen to live */
  SBX_RUNNER_LIVES,     /* what it has left behind lives on */
  SBX_RUNNER_WAS_ENDED, /* it was ended, as asked for */
} sbx_runner_background;

typedef struct sbx_runner_report {
  sbx_runner_end end;
  int exit_code;
  bool tree_gone;
  sbx_runner_background background;
  uint64_t size[2]; /* bytes that each stream has */
  uint64_t lost[2]; /* at least so many more could not be stored, for lack of room */
  sbx_buf head[2];  /* the bytes that came */
  sbx_buf tail[2];
} sbx_runner_report;

/* Takes a number of at most 18 digits, and the blank behind it, off the front. */
bool sbx_runner_take_number(sbx_slice *text, uint64_t most, uint64_t *out);

void sbx_runner_report_init(sbx_runner_report *report);
void sbx_runner_report_deinit(sbx_runner_report *report);
/* Finds the report of `tag` in what a line has printed. SBX_EPROTO when there is none, or not the
 * whole of it; SBX_ENOMEM. `provider` is for the message. */
int sbx_runner_report_read(sbx_runner_report *report, sbx_slice printed, const char *tag,
                           const char *provider, sbx_err *err);

#endif
