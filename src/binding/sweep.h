/* sweep.h - the deletion of what other processes have left, as a Promise. */
#ifndef SBX_BINDING_SWEEP_H
#define SBX_BINDING_SWEEP_H

#include <napi.h>

namespace sbx {

/* sweep(provider, optionsJson): a Promise of the ids that were deleted. */
Napi::Value BeginSweep(const Napi::CallbackInfo &info);

} // namespace sbx

#endif
