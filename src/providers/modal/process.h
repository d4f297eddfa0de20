/* process.h - one process in a sandbox of Modal. */
#ifndef SBX_MODAL_PROCESS_H
#define SBX_MODAL_PROCESS_H

#include "providers/modal/session.h"
#include "providers/remote/process/process.h"

extern const sbx_processes sbx__modal_processes;

#endif
