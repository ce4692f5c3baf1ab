// The one kernel behind every torch op of ours.
#pragma once
#include "faces/torch/shim.h"

namespace kw::torch_face {

// The function that torch calls for op `index` of the registry: takes the dispatcher's stack, hands it to the one generic kernel.
// Serves the public and the private op, CPU and CUDA.
BoxedKernel trampoline(int index);

}  // namespace kw::torch_face
