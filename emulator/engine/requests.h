// The access report: what the requests of a kernel's warps would cost on a GPU. Off unless the option `access` is set.
//
// A request is one execution of one load or store by a warp. Here the lanes run one after the other, so they are matched: the n-th time
// that a lane executes an instruction belongs to the warp's n-th request. Where all lanes meet (barriers, collectives of the whole warp)
// the count begins anew, so a loop that some lanes left early does not shift what follows it.
#pragma once
#include "emulator/engine/engine.h"

namespace kwemu {
enum class Transfer : u8 {
  global_load,
  global_store,
  global_atomic,
  shared_load,
  shared_store,
  shared_atomic,
  cluster_load,  // shared memory of another block
  cluster_store,
  copy_load,  // the two sides of cp.async, each thread's
  copy_store,
  bulk_load,  // cp.async.bulk: one thread's request for many bytes; its shared side goes past the banks' queue
  bulk_store
};

struct SiteCost {  // an instruction of one kernel
  std::string kernel, place, what;
  u32 bytes;  // of one lane
  u64 launches, requests, lanes, pieces, least, dropped;
};
struct BufferCost {  // what one kernel moved to and from one buffer
  std::string kernel, name;
  u64 at, size, launches, read, read_sectors, written, written_sectors;  // read, written: bytes, each once per request
};

// Of the running thread.
void note_transfer(const Region*, u64 address, u64 bytes, Transfer, void* pc);
void note_access(const Region*, u64 address, u64 bytes, int kind, bool peer, void* pc);  // kind: see access.h

void begin_access_gang(u32 blocks, u32 warps_of_a_block);
void lanes_met(const Block*, u32 warp);  // all of the warp's lanes: what they did before is complete
void block_met(const Block*);
void end_access_launch();

const std::vector<SiteCost>& site_costs();
const std::vector<BufferCost>& buffer_costs();
void clear_costs();
}  // namespace kwemu
