// The contract of an op: one line of text from which everything else is derived.
//
//   rms_norm(x: T[*B, N], weight: W[N]?, *, eps: float >= 0 = 1e-6) -> y: T[*B, N]
//     where T: f16 bf16 f32 f64, W: T f32
//     gradient dx, dweight = rms_norm_backward(dy, x, weight, eps)
//
// This header is the parsed form. Parsing: parse_contract. Checking a call against it and sizing its results: bind.h. As JSON: manifest.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kw/core/dtype.h"

namespace kw {

// An integer expression over dimension names, kept as a tree: `N`, `7`, `2*N`, `N/2`, `R+1`, `min(B, 1024)`.
// `N/2` demands that N is even (a sentence otherwise); min and max appear in scratch only.
struct Size {
  enum class Kind { constant, dim, add, sub, mul, div, min, max };
  Kind kind = Kind::constant;
  int64_t value = 0;           // constant, or index into Contract::dims
  std::vector<Size> operands;  // two, for the operations
};

struct Dim {              // one place of a shape
  bool variadic = false;  // "*B": any number of leading dimensions; size is then the name alone
  Size size;
};

struct ElementType {  // `T`, `f32`, `acc(T)`
  enum class Kind { fixed, variable, accumulator };
  Kind kind = Kind::fixed;
  DType dtype = KW_F32;  // fixed
  int variable = -1;     // index into Contract::types
};

enum class Fold { none, sum, max, all };  // how rows fold into a result that lacks *B; all: in no way that partial results would fit

struct TensorType {
  ElementType element;
  std::vector<Dim> shape;
  bool optional = false;  // ?
  bool list = false;      // ...
  bool written = false;   // !
  Fold fold = Fold::none;
};

struct Input {
  std::string name;
  TensorType type;
  int below = -1;  // whole numbers that count within this dimension (index into Contract::dims): `target: i64[*B] < V`
};

struct Result {
  enum class Kind { output, saved, scratch };
  std::string name;
  TensorType type;
  Kind kind = Kind::output;
  int present_with = -1;  // an optional result is there exactly when this input is
};

struct Attribute {
  enum class Type { floating, integer, boolean, string, enumeration };
  std::string name;
  Type type = Type::floating;
  std::vector<std::string> values;  // enumeration
  std::optional<double> at_least, above, at_most, below;
  bool has_default = false;
  double number = 0;  // default of float, int (exact below 2^53), bool, enumeration (index)
  std::string text;   // default of str
};

struct TypeVariable {
  struct Option {
    int variable = -1;  // another variable ("W: T f32"), or
    DType dtype = KW_F32;
  };
  std::string name;
  std::vector<Option> options;  // an unbound variable (its tensor absent) takes the first
};

struct Gradient {
  std::vector<std::string> targets;    // "dx", "dweight": d + an input's name
  std::vector<size_t> results;         // by target: which of the backward op's results it is; targets joined by `and` share one
  std::string op;                      // "rms_norm_backward"
  std::vector<std::string> arguments;  // d + a result's name, inputs, results, attributes; in the backward op's order
};

struct Contract {
  std::string text, name;
  std::vector<Input> inputs;
  std::vector<Attribute> attributes;
  std::vector<Result> results;  // outputs, then saved, then scratch
  std::vector<std::string> dims;
  std::vector<bool> dim_variadic;
  std::vector<TypeVariable> types;
  std::optional<Gradient> gradient;
  bool capturable = true;
};

// Throws Error(KW_ERROR_CONTRACT) whose text shows the line and points at the character:
//   rms_norm: expected ']' after the dimensions of x
//     rms_norm(x: T[*B, N, weight: W[N]?) -> ...
//                        ^
Contract parse_contract(std::string_view text);

}  // namespace kw
