/* remote.h - options.h and steps.h in one. */
#ifndef SBX_REMOTE_H
#define SBX_REMOTE_H

#include "providers/remote/options.h"
#include "providers/remote/steps.h"

#endif
