/* cell.h - the reply to one piece of code. */
#ifndef SBX_E2B_CELL_H
#define SBX_E2B_CELL_H

#include "core/json.h"
#include "core/output.h"

/* The reply to one piece of code. */
typedef struct sbx__e2b_cell {
  sbx_output *out;
  sbx_buf results; /* JSON objects with commas between */
  size_t dropped;
  sbx_buf error; /* JSON object */
  bool failed;
  bool kernel_lost; /* the service lost sight of the code */
  bool ended;
} sbx__e2b_cell;

void sbx__e2b_cell_init(sbx__e2b_cell *cell, sbx_output *out);
void sbx__e2b_cell_deinit(sbx__e2b_cell *cell);
/* Takes one line. SBX_EPROTO, SBX_ENOMEM. */
int sbx__e2b_cell_line(sbx__e2b_cell *cell, sbx_slice line, sbx_err *err);
/* Writes the details of the output. SBX_ENOMEM. */
int sbx__e2b_cell_finish(sbx__e2b_cell *cell);

#endif
