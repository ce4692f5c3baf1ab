// Arguments of a call as text and as data: "x=bf16[8192,4096] weight=none eps=1e-5"; with strides, "x=bf16[8192,4096:8192,2]". Used by `kw
// plan`, `kw bench` and `kw check`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kw/core/error.h"
#include "kw/core/op.h"

namespace kw::test {

struct Argument {  // one input
  bool present = false;
  DType dtype = KW_F32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // elements; empty: contiguous
};

struct AttributeValue {  // f for float; i for int, bool and enumerations; s for str
  double f = 0;
  int64_t i = 0;
  std::string s;
};

struct Arguments {
  std::vector<Argument> inputs;            // in contract order
  std::vector<AttributeValue> attributes;  // in contract order
  bool saved = true;                       // saved results are asked for, as where a gradient is wanted
};

// What the names of a contract stand for.
struct Symbols {
  std::vector<std::vector<int64_t>> leading;  // by Contract::dims: what a variadic dimension stands for
  std::vector<int64_t> dims;                  // by Contract::dims; -1 unknown; of a variadic one the product
  std::vector<int> types;                     // by Contract::types; -1 unknown
};

// The words of a command line or of a bench case (a word may hold several, separated by blanks). Inputs that are not named are derived
// from those that are when they are required ("dy" from "x"), else absent; attributes take their defaults. Throws KW_ERROR_ARGUMENT with
// a sentence; whether shapes agree with each other is bind_inputs' to say.
Arguments parse_arguments(const Op& op, const std::vector<std::string>& words);
std::string describe(const Op& op, const Arguments& arguments);  // the words again, defaults left out
void refuse_strides(const Op& op, const Arguments& arguments);   // throws when some are written: for verbs that choose layouts themselves

Symbols unknown_symbols(const Contract& contract);
Symbols solve(const Op& op, const Arguments& arguments);     // from the inputs that are present
int64_t evaluate(const Size& size, const Symbols& symbols);  // -1: unknown, negative, or a division that leaves a rest
// The dtype and shape of a tensor; not `present` when a symbol in it is unknown.
Argument instantiate(const TensorType& type, const Symbols& symbols);

// An attribute's default; where the contract has none, that of the op whose backward this is, else a number within its bounds.
AttributeValue default_value(const Op& op, size_t attribute);
// As bind_inputs wants them; points into `arguments`.
std::vector<kw_attribute> raw_attributes(const Op& op, const Arguments& arguments);

// Names near a mistyped one, as " (did you mean rms_norm?)", or "".
std::string suggest(std::string_view word, const std::vector<std::string>& names);

}  // namespace kw::test
