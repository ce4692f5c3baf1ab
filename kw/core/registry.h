// Adding several rooms as one: internal to the registry and the C face.
#pragma once
#include <vector>

#include "kw/core/op.h"

namespace kw {

// All of them or none. A room that is registered already (the same pointer) is passed over.
void register_rooms(const std::vector<const kw_room*>& rooms);

// Whether the backward op takes and gives what the contract's gradient says. Throws KW_ERROR_CONTRACT.
void check_backward(const Contract& forward, const Contract& backward);

}  // namespace kw
