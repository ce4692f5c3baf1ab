#include "kw/core/bind_sentences.h"

#include <algorithm>

#include "kw/core/error.h"
#include "kw/core/size.h"

namespace kw {
namespace {

// "weight has 4095 elements", "x has last dimension 4096", "q has size 3 in dimension 1".
std::string size_text(const std::string& what, int32_t rank, int32_t place, int64_t size) {
  auto n = static_cast<long long>(size);
  if (rank == 1) return format("%s has %lld element%s", what.c_str(), n, n == 1 ? "" : "s");
  if (place == rank - 1) return format("%s has last dimension %lld", what.c_str(), n);
  return format("%s has size %lld in dimension %d", what.c_str(), n, place);
}

std::string number_text(double v) { return format("%.12g", v); }

}  // namespace

std::string shape_text(const int64_t* sizes, int32_t rank) {
  std::string text = "[";
  for (int32_t i = 0; i < rank; i++) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

std::string device_text(int32_t type, int32_t index) {
  if (type == KW_CPU) return "cpu";
  if (type == KW_CUDA) return format("cuda:%d", index);
  return format("device type %d", type);
}

void Complaint::say(const std::string& sentence) const { throw Error(KW_ERROR_ARGUMENT, c_.name + ": " + sentence); }

void Complaint::missing(int input) const {
  const Input& i = c_.inputs[static_cast<size_t>(input)];
  say(i.type.list ? i.name + " is an empty list" : i.name + " is missing");
}

void Complaint::not_single(int input, int32_t count) const {
  const std::string& name = c_.inputs[static_cast<size_t>(input)].name;
  if (count < 0) say(format("%s has %d tensors", name.c_str(), count));
  if (count == 1) say(name + " is a null pointer");
  say(format("%s is one tensor, but %d are given", name.c_str(), count));
}

void Complaint::rank(const std::string& what, const TensorType& type, const kw_tensor& t) const {
  if (t.rank < 0) say(format("%s has rank %d", what.c_str(), t.rank));
  if (t.rank > KW_MAX_RANK) say(format("%s has %d dimensions, but at most %d are supported", what.c_str(), t.rank, KW_MAX_RANK));
  if (t.rank > 0 && (!t.sizes || !t.strides)) say(what + " comes without its sizes or strides");
  bool variadic = !type.shape.empty() && type.shape[0].variadic;
  auto wanted = static_cast<int>(type.shape.size()) - variadic;
  say(format("%s has shape %s, but %s has %s%d dimension%s", what.c_str(), shape_text(t.sizes, t.rank).c_str(), to_text(type, c_).c_str(),
             variadic ? "at least " : "", wanted, wanted == 1 ? "" : "s"));
}

void Complaint::negative_size(const std::string& what, const kw_tensor& t) const {
  say(what + " has shape " + shape_text(t.sizes, t.rank) + ", but sizes are never negative");
}

void Complaint::too_large(const std::string& what) const { say(what + " has more bytes than 64 bits can count"); }

void Complaint::layout(const std::string& what, const kw_tensor& t) const {
  say(what + " has a layout that the op cannot read (sizes " + shape_text(t.sizes, t.rank) + ", strides " + shape_text(t.strides, t.rank) +
      "): each row must be contiguous, and at most 3 distances may say where rows lie; make it contiguous first");
}

void Complaint::written_rows(const std::string& what) const { say(what + " is written, but its rows may overlap in memory"); }

void Complaint::device(const std::string& what, const kw_tensor& t, const std::string& first, int32_t type, int32_t index) const {
  if (t.device_type != KW_CPU && t.device_type != KW_CUDA)
    say(what + " is on " + device_text(t.device_type, t.device_index) + ", but only cpu (1) and cuda (2) are supported");
  say(what + " is on " + device_text(t.device_type, t.device_index) + ", but " + first + " is on " + device_text(type, index));
}

void Complaint::element(const std::string& what, const kw_tensor& t, DType wanted) const {
  if (!is_dtype(t.dtype)) say(format("%s has the unknown dtype %d", what.c_str(), t.dtype));
  say(format("%s is %s, but must be %s", what.c_str(), dtype_name(t.dtype), dtype_name(wanted)));
}

void Complaint::same_type(const std::string& what, const kw_tensor& t, int variable, int other_input, int32_t dtype) const {
  const std::string &other = c_.inputs[static_cast<size_t>(other_input)].name, &name = c_.types[static_cast<size_t>(variable)].name;
  if (!is_dtype(t.dtype)) element(what, t, KW_F32);
  say(what + " is " + dtype_name(t.dtype) + ", but " + other + " is " + dtype_name(dtype) + ", and both have the type " + name);
}

void Complaint::no_option(int variable, int input, int32_t dtype, const int32_t* dtypes) const {
  const auto& options = c_.types[static_cast<size_t>(variable)].options;
  std::vector<std::string> allowed;  // each once: a variable may stand for a type that is named as well
  for (const auto& option : options) {
    std::string one = dtype_name(option.variable < 0 ? option.dtype : dtypes[option.variable]);
    if (std::find(allowed.begin(), allowed.end(), one) == allowed.end()) allowed.push_back(std::move(one));
  }
  std::string text;
  for (size_t i = 0; i < allowed.size(); i++) text += (i == 0 ? "" : i + 1 == allowed.size() ? " or " : ", ") + allowed[i];
  say(c_.inputs[static_cast<size_t>(input)].name + " is " + dtype_name(dtype) + ", but must be " + text);
}

void Complaint::size(const std::string& what, const kw_tensor& t, int place, const std::string& other, const TensorType& other_type,
                     int other_place, int64_t wanted) const {
  // Places count from the front in `what`; the other one may have leading dimensions that are not in its type.
  bool variadic = other_type.shape[0].variadic;
  auto rank = static_cast<int32_t>(other_type.shape.size());
  std::string there = variadic && other_place != rank - 1
                          ? format("%s has size %lld in dimension %d", other.c_str(), static_cast<long long>(wanted), other_place - rank)
                          : size_text(other, variadic ? rank + 1 : rank, variadic ? rank : other_place, wanted);
  say(size_text(what, t.rank, place, t.sizes[place]) + ", but " + there);
}

void Complaint::leading(const std::string& what, const kw_tensor& t, int32_t count, const std::string& other, const int64_t* sizes,
                        int32_t other_count) const {
  say(what + " has leading dimensions " + shape_text(t.sizes, count) + ", but " + other + " has " + shape_text(sizes, other_count));
}

void Complaint::attribute(int attribute, const kw_attribute& value) const {
  const Attribute& a = c_.attributes[static_cast<size_t>(attribute)];
  using Type = Attribute::Type;
  if (a.type == Type::string) say(a.name + " is a null pointer, but must be a text");
  if (a.type == Type::boolean) say(format("%s is %lld, but must be 0 or 1", a.name.c_str(), static_cast<long long>(value.i)));
  if (a.type == Type::enumeration)
    say(format("%s is choice %lld, but there are %zu", a.name.c_str(), static_cast<long long>(value.i), a.values.size()));
  std::string wanted;
  auto bound = [&](const std::optional<double>& b, const char* sign) {
    if (b) wanted += (wanted.empty() ? "" : " and ") + std::string(sign) + " " + number_text(*b);
  };
  bound(a.at_least, ">="), bound(a.above, ">"), bound(a.at_most, "<="), bound(a.below, "<");
  std::string got = a.type == Type::integer ? std::to_string(value.i) : number_text(value.f);
  say(a.name + " is " + got + ", but must be " + wanted);
}

}  // namespace kw
