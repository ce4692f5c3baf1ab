// The torch schema of a contract.
#pragma once
#include <string>

#include "kw/core/contract.h"

namespace kw::torch_face {

// "scale(Tensor x, Tensor? weight=None, float factor=1e-06) -> Tensor": inputs, then attributes, all positional; an argument has a
// default when it has one in the contract (an optional tensor: None) and everything behind it has one too. Enumerations are str. Written
// inputs are annotated, "Tensor(a!)". Results: the outputs; with_saved, the saved ones too, under the private name "_scale".
std::string schema(const Contract& contract, bool with_saved);

}  // namespace kw::torch_face
