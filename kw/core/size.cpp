#include "kw/core/size.h"

#include <algorithm>

namespace kw {

using Kind = Size::Kind;

SizeFault evaluate(const Size& size, const int64_t* dims, int64_t& value) {
  if (size.kind == Kind::constant) return value = size.value, SizeFault::none;
  if (size.kind == Kind::dim) return value = dims[size.value], SizeFault::none;
  int64_t a = 0, b = 0;
  if (SizeFault f = evaluate(size.operands[0], dims, a); f != SizeFault::none) return f;
  if (SizeFault f = evaluate(size.operands[1], dims, b); f != SizeFault::none) return f;
  bool overflow = false;
  switch (size.kind) {
    case Kind::add:
      overflow = __builtin_add_overflow(a, b, &value);
      break;
    case Kind::sub:
      overflow = __builtin_sub_overflow(a, b, &value);
      break;
    case Kind::mul:
      overflow = __builtin_mul_overflow(a, b, &value);
      break;
    case Kind::div:  // by a positive constant: the parser saw to it
      if (a % b != 0) return SizeFault::inexact;
      value = a / b;
      break;
    case Kind::min:
      value = std::min(a, b);
      break;
    default:
      value = std::max(a, b);
      break;
  }
  return overflow ? SizeFault::overflow : SizeFault::none;
}

SizeFault solve(const Size& size, int64_t value, uint32_t known, int64_t* dims, int32_t& solved) {
  if (size.kind == Kind::constant) return SizeFault::unsolvable;
  if (size.kind == Kind::dim) {
    if (known >> size.value & 1) return SizeFault::unsolvable;
    dims[size.value] = value;
    solved = static_cast<int32_t>(size.value);
    return SizeFault::none;
  }
  bool left = unknowns(size.operands[0], known) > 0;
  const Size &open = size.operands[left ? 0 : 1], &closed = size.operands[left ? 1 : 0];
  int64_t other = 0, inner = 0;
  if (unknowns(closed, known) > 0) return SizeFault::unsolvable;
  if (SizeFault f = evaluate(closed, dims, other); f != SizeFault::none) return f;
  bool overflow = false;
  switch (size.kind) {
    case Kind::add:
      overflow = __builtin_sub_overflow(value, other, &inner);
      break;
    case Kind::sub:
      overflow = left ? __builtin_add_overflow(value, other, &inner) : __builtin_sub_overflow(other, value, &inner);
      break;
    case Kind::mul:
      if (other <= 0) return SizeFault::unsolvable;  // 0*N: any N would do
      if (value % other != 0) return SizeFault::inexact;
      inner = value / other;
      break;
    case Kind::div:
      if (!left) return SizeFault::unsolvable;
      overflow = __builtin_mul_overflow(value, other, &inner);
      break;
    default:
      return SizeFault::unsolvable;
  }
  if (overflow) return SizeFault::overflow;
  return solve(open, inner, known, dims, solved);
}

int unknowns(const Size& size, uint32_t known) {
  if (size.kind == Kind::constant) return 0;
  if (size.kind == Kind::dim) return known >> size.value & 1 ? 0 : 1;
  return unknowns(size.operands[0], known) + unknowns(size.operands[1], known);
}

uint32_t dims_of(const Size& size) {
  if (size.kind == Kind::constant) return 0;
  if (size.kind == Kind::dim) return 1u << size.value;
  return dims_of(size.operands[0]) | dims_of(size.operands[1]);
}

namespace {

int precedence(const Size& size) {
  switch (size.kind) {
    case Kind::add:
    case Kind::sub:
      return 1;
    case Kind::mul:
    case Kind::div:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

std::string to_text(const Size& size, const Contract& contract) {
  if (size.kind == Kind::constant) return std::to_string(size.value);
  if (size.kind == Kind::dim) return contract.dims[static_cast<size_t>(size.value)];
  std::string a = to_text(size.operands[0], contract), b = to_text(size.operands[1], contract);
  if (size.kind == Kind::min || size.kind == Kind::max) return (size.kind == Kind::min ? "min(" : "max(") + a + ", " + b + ")";
  if (precedence(size.operands[0]) < precedence(size)) a = "(" + a + ")";
  if (precedence(size.operands[1]) <= precedence(size)) b = "(" + b + ")";
  const char* sign = size.kind == Kind::add ? "+" : size.kind == Kind::sub ? "-" : size.kind == Kind::mul ? "*" : "/";
  return a + sign + b;
}

std::string to_text(const TensorType& type, const Contract& contract) {
  const ElementType& e = type.element;
  std::string text = e.kind == ElementType::Kind::fixed ? dtype_name(e.dtype) : contract.types[static_cast<size_t>(e.variable)].name;
  if (e.kind == ElementType::Kind::accumulator) text = "acc(" + text + ")";
  text += "[";
  for (size_t i = 0; i < type.shape.size(); i++) {
    if (i) text += ", ";
    text += (type.shape[i].variadic ? "*" : "") + to_text(type.shape[i].size, contract);
  }
  return text + "]";
}

}  // namespace kw
