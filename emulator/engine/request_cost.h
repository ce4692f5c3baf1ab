// What one request of a warp costs: 32-byte sectors of global memory, wavefronts of shared memory.
#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
struct Lane {
  u64 address, bytes;
};
struct Cost {
  u64 pieces;  // sectors or wavefronts
  u64 least;   // the fewest that these bytes, or these lanes, can have
  u64 bytes;   // different ones
};
// Sectors that the lanes touch, against as many as their bytes would fill if they lay side by side.
Cost global_cost(std::vector<Lane>& lanes);

// Of shared memory: 32 banks of 4 bytes, each of which gives one word in a wavefront, to any number of lanes. Lanes of up to 4 bytes go
// together, of 8 bytes by half warps, of 16 by quarters, and two such groups at once where every two neighbours read the same; each takes
// as many wavefronts as its busiest bank has different words. (As Nsight Compute counts on an H200, 2026-12-01: benchmarks/access_ncu.py.)
// `numbers[i]` is the lane number of lanes[i].
Cost shared_cost(const std::vector<Lane>& lanes, const std::vector<u32>& numbers);
}  // namespace kwemu
