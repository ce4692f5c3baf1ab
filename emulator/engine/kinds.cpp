#include "emulator/engine/kinds.h"

#include <cuda.h>

namespace kwemu {
namespace {
constexpr int kAddress = CUDA_ERROR_ILLEGAL_ADDRESS, kFailed = CUDA_ERROR_LAUNCH_FAILED, kTimeout = CUDA_ERROR_LAUNCH_TIMEOUT;
constexpr Kind kinds[] = {
    {"shared-race", kError, kFailed, "put __syncthreads() (or __syncwarp() within a warp) between the two accesses"},
    {"global-race", kError, kFailed, "two blocks meet only through atomics and fences, two threads of a block at __syncthreads()"},
    {"no-acquire-fence", kFormal, kFailed, "read what the flag guards behind a __threadfence() of the reader, too"},
    {"uninit-shared", kError, kFailed, "write the element first: shared memory begins with what the block before left there"},
    {"uninit-global", kError, kFailed, "write the element first (cudaMemset, or the kernel itself): fresh memory may hold NaN"},
    {"unwritten-output", kWarning, kFailed, "write every element that the host reads, or copy less"},
    {"global-oob", kError, kAddress, "compare the index with the number of elements before the access"},
    {"shared-oob", kError, kAddress, "the array is smaller than the index, or the launch gave too little dynamic shared memory"},
    {"local-oob", kError, kAddress, "a pointer to another thread's local variable means nothing here; use shared memory"},
    {"index-oob", kError, kFailed, "the index is outside the declared array"},
    {"null-pointer", kError, kAddress, "a pointer was never set, or an allocation of no bytes gave none"},
    {"host-memory", kError, kAddress, "pass a pointer that cudaMalloc gave; the GPU cannot read the host's memory"},
    {"host-access", kError, kFailed, "copy it with cudaMemcpy; the host cannot read the GPU's memory"},
    {"out-of-memory", kError, kFailed, "this machine has no memory left for the shadow of the device's"},
    {"use-after-free", kError, kAddress, "the allocation was freed before this kernel ran"},
    {"wild-pointer", kError, kAddress, "the address belongs to nobody: an index that overflowed, or a pointer that was overwritten"},
    {"stack-overflow", kError, kFailed, "large local arrays or deep recursion: use shared or global memory"},
    {"misaligned", kError, CUDA_ERROR_MISALIGNED_ADDRESS,
     "a vector access needs an address that its size divides; take the scalar path when it does not"},
    {"shift", kFormal, kFailed, "shift by less than the number of bits"},
    {"int-overflow", kFormal, kFailed, "compute in a wider or an unsigned type"},
    {"div-by-zero", kError, kFailed, "the divisor is zero"},
    {"assert", kError, CUDA_ERROR_ASSERT, "the kernel's own assertion"},
    {"trap", kError, kFailed, "the kernel gave up by itself"},
    {"barrier-divergence", kError, kFailed, "every thread of the block must reach the same barrier: take it out of the branch"},
    {"exit-before-barrier", kWarning, kFailed, "threads that return early are counted out since sm_70, and were not before"},
    {"warp-divergence", kError, kFailed, "every lane of the mask must call the same function"},
    {"shuffle-inactive", kError, kFailed, "the mask names lanes that are not there, or the source lane takes no part"},
    {"cluster-divergence", kError, kFailed, "every thread of the cluster must reach the same barrier"},
    {"grid-sync", kError, kFailed, "a grid barrier needs a cooperative launch"},
    {"async-pending", kError, kFailed, "wait for the copy (cp.async.wait_group, mbarrier) before its memory is touched"},
    {"proxy-fence", kError, kFailed, "put fence.proxy.async between ordinary writes and a bulk copy of them"},
    {"mbarrier", kError, kFailed, "initialise it once, and count every arrival and every byte"},
    {"mbarrier-deadlock", kError, kFailed, "nobody is left to complete the phase that is awaited"},
    {"cluster-start", kError, kFailed, "a cluster barrier must come before the first access to another block"},
    {"cluster-exit", kError, kFailed, "a cluster barrier must come after the last access to another block"},
    {"cluster-rank", kError, kFailed, "the rank is not less than the number of blocks of the cluster"},
    {"nested-launch", kError, kFailed, "launches from kernels do not run in the emulator"},
    {"step-limit", kError, kTimeout, "a loop that does not end, or a problem too large for the emulator: KWEMU_STEP_LIMIT"},
    {"endless-loop", kError, kTimeout, "the loop's condition never changes"},
    {"livelock", kError, kTimeout, "what is awaited comes from a block that may not run at the same time"},
    {"clock-limit", kError, kTimeout, "too many barriers in one launch for the emulator"},
};
constexpr Kind other{"", kError, kFailed, ""};
}  // namespace

const Kind& kind_of(std::string_view name) {
  for (const Kind& k : kinds)
    if (name == k.name) return k;
  return other;
}
}  // namespace kwemu
