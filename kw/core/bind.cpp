#include "kw/core/bind.h"

#include <cstring>

#include "kw/core/bind_sentences.h"
#include "kw/core/error.h"
#include "kw/core/size.h"

namespace kw {
namespace {

class Binder {
 public:
  Binder(const Op& op, const kw_argument* inputs, const kw_attribute* attributes, Bound& out)
      : c_(op.contract), inputs_(inputs), attributes_(attributes), out_(out), complain_(op.contract) {}

  void run() {
    check_attributes();
    bool lists = false, later = false;
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const TensorType& type = c_.inputs[i].type;
      const kw_argument& a = inputs_[i];
      if (a.count == 0) {
        if (!type.optional) complain_.missing(static_cast<int>(i));
        continue;
      }
      if (a.count < 0 || !a.tensors || (a.count != 1 && !type.list)) complain_.not_single(static_cast<int>(i), a.count);
      out_.present |= 1u << i;
      if (type.list) {
        lists = true;
      } else {
        item_ = -1;
        later |= tensor(i, a.tensors[0]);
      }
    }
    if (later) expressions(-1);
    if (lists) bind_lists();
    types();
    results();
  }

 private:
  std::string name(size_t input, int32_t item) const {
    return item < 0 ? c_.inputs[input].name : format("%s[%d]", c_.inputs[input].name.c_str(), item);
  }
  std::string name(size_t input) const { return name(input, c_.inputs[input].type.list ? item_ : -1); }

  void check_attributes() const {
    using Type = Attribute::Type;
    for (size_t i = 0; i < c_.attributes.size(); i++) {
      const Attribute& a = c_.attributes[i];
      const kw_attribute& v = attributes_[i];
      bool ok = true;
      if (a.type == Type::floating) {  // written so that NaN is outside every bound
        ok = (!a.at_least || v.f >= *a.at_least) && (!a.above || v.f > *a.above) && (!a.at_most || v.f <= *a.at_most) &&
             (!a.below || v.f < *a.below);
      } else if (a.type == Type::integer) {  // bounds are whole numbers below 2^53, but a value need not be
        auto whole = [](const std::optional<double>& b) { return static_cast<int64_t>(*b); };
        ok = (!a.at_least || v.i >= whole(a.at_least)) && (!a.above || v.i > whole(a.above)) && (!a.at_most || v.i <= whole(a.at_most)) &&
             (!a.below || v.i < whole(a.below));
      } else if (a.type == Type::string) {
        ok = v.s != nullptr;
      } else {
        ok = v.i >= 0 && v.i < (a.type == Type::boolean ? 2 : static_cast<int64_t>(a.values.size()));
      }
      if (!ok) complain_.attribute(static_cast<int>(i), v);
    }
  }

  // One tensor of input i: what can be said of it alone, then the names that it gives a value. True when a size is an expression.
  bool tensor(size_t i, const kw_tensor& t) {
    const TensorType& type = c_.inputs[i].type;
    const auto places = static_cast<int32_t>(type.shape.size());
    const bool variadic = places > 0 && type.shape[0].variadic;
    const int32_t inner = places - variadic, lead = t.rank - inner;
    if (t.rank < 0 || t.rank > KW_MAX_RANK || (t.rank > 0 && (!t.sizes || !t.strides)) || lead < 0 || (lead > 0 && !variadic))
      complain_.rank(name(i), type, t);
    for (int32_t d = 0; d < t.rank; d++)
      if (t.sizes[d] < 0) complain_.negative_size(name(i), t);
    device(i, t);
    element(i, t);
    RowLayout rows;
    const bool folds = fold_rows(t, inner, rows);
    if (!countable(t, rows)) complain_.too_large(name(i));
    if (variadic) leading(i, t, static_cast<size_t>(type.shape[0].size.value), lead);
    bool later = false;
    for (int32_t p = variadic; p < places; p++) {
      const Size& size = type.shape[static_cast<size_t>(p)].size;
      const int64_t value = t.sizes[lead + p - variadic];
      if (size.kind != Size::Kind::dim) {
        later = true;
      } else if (auto d = static_cast<size_t>(size.value); !(known_ >> d & 1)) {
        known_ |= 1u << d;
        out_.dims[d] = value;
        origin_[d] = {static_cast<int16_t>(i), static_cast<int8_t>(p)};
      } else if (out_.dims[d] != value) {
        const auto from = static_cast<size_t>(origin_[d].input);
        complain_.size(name(i), t, lead + p - variadic, name(from), c_.inputs[from].type, origin_[d].place, out_.dims[d]);
      }
    }
    if (!folds) complain_.layout(name(i), t);
    if (type.written && rows_overlap(rows)) complain_.written_rows(name(i));
    return later;
  }

  void device(size_t i, const kw_tensor& t) {
    if (first_ < 0) {
      first_ = static_cast<int>(i);
      if (t.device_type != KW_CPU && t.device_type != KW_CUDA) complain_.device(name(i), t, "", 0, 0);
      out_.raw.device_type = t.device_type;
      out_.raw.device_index = t.device_type == KW_CPU ? 0 : t.device_index;
    } else if (t.device_type != out_.raw.device_type || (t.device_type != KW_CPU && t.device_index != out_.raw.device_index)) {
      complain_.device(name(i), t, c_.inputs[static_cast<size_t>(first_)].name, out_.raw.device_type, out_.raw.device_index);
    }
  }

  void element(size_t i, const kw_tensor& t) {
    const ElementType& e = c_.inputs[i].type.element;
    if (e.kind == ElementType::Kind::fixed) {
      if (t.dtype != e.dtype) complain_.element(name(i), t, e.dtype);
    } else if (e.kind == ElementType::Kind::accumulator || !is_dtype(t.dtype)) {
      if (!is_dtype(t.dtype)) complain_.element(name(i), t, KW_F32);
      accumulators_ = true;  // its variable may not be known yet
    } else if (auto v = static_cast<size_t>(e.variable); !(types_known_ >> v & 1)) {
      types_known_ |= 1u << v;
      out_.dtypes[v] = t.dtype;
      type_from_[v] = static_cast<int8_t>(i);
    } else if (out_.dtypes[v] != t.dtype) {
      complain_.same_type(name(i), t, e.variable, type_from_[v], out_.dtypes[v]);
    }
  }

  void leading(size_t i, const kw_tensor& t, size_t d, int32_t count) {
    if (!(known_ >> d & 1)) {
      known_ |= 1u << d;
      int64_t product = 1;
      for (int32_t k = 0; k < count; k++)
        if (__builtin_mul_overflow(product, t.sizes[k], &product)) complain_.too_large(name(i));
      out_.dims[d] = product;
      origin_[d] = {static_cast<int16_t>(i), 0};
      lead_[d] = t.sizes;
      lead_count_[d] = count;
      return;
    }
    bool same = count == lead_count_[d];
    for (int32_t k = 0; same && k < count; k++) same = t.sizes[k] == lead_[d][k];
    if (!same) complain_.leading(name(i), t, count, name(static_cast<size_t>(origin_[d].input)), lead_[d], lead_count_[d]);
  }

  // Sizes such as 2*N: first those that give a dimension its value, until none does; then all are compared.
  void expressions(int32_t item) {
    item_ = item;
    for (bool progress = true; progress;) {
      progress = false;
      each_expression([&](size_t i, int32_t p, const Size& size, const kw_tensor& t, int32_t at) {
        if (unknowns(size, known_) != 1) return;
        int32_t solved = -1;
        int64_t value = t.sizes[at];
        SizeFault fault = solve(size, value, known_, out_.dims, solved);
        if (fault != SizeFault::none || out_.dims[solved] < 0) unsuited(i, t, at, size);
        known_ |= 1u << solved;
        origin_[solved] = {static_cast<int16_t>(i), static_cast<int8_t>(p)};
        progress = true;
      });
    }
    each_expression([&](size_t i, int32_t, const Size& size, const kw_tensor& t, int32_t at) {
      int64_t value = 0;
      if (unknowns(size, known_) != 0 || evaluate(size, out_.dims, value) != SizeFault::none || value != t.sizes[at])
        unsuited(i, t, at, size);
    });
  }

  template <class F>
  void each_expression(F&& f) const {
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const TensorType& type = c_.inputs[i].type;
      if (!(out_.present >> i & 1) || type.list != (item_ >= 0)) continue;
      const kw_tensor& t = inputs_[i].tensors[type.list ? item_ : 0];
      const auto places = static_cast<int32_t>(type.shape.size());
      for (int32_t p = 0; p < places; p++) {
        const Size& size = type.shape[static_cast<size_t>(p)].size;
        if (size.kind != Size::Kind::dim) f(i, p, size, t, t.rank - places + p);
      }
    }
  }

  // "cos has last dimension 63, but the contract says D/2 with D = 128".
  [[noreturn, gnu::cold]] void unsuited(size_t i, const kw_tensor& t, int32_t place, const Size& size) const {
    std::string with;
    for (size_t d = 0; d < c_.dims.size(); d++)
      if ((dims_of(size) & known_) >> d & 1) with += (with.empty() ? " with " : ", ") + c_.dims[d] + " = " + std::to_string(out_.dims[d]);
    complain_.say(format("%s has shape %s, but its dimension %d must be %s%s", name(i).c_str(), shape_text(t.sizes, t.rank).c_str(), place,
                         to_text(size, c_).c_str(), with.c_str()));
  }

  // Lists run side by side: item k of each has its own dimensions. Afterwards a dimension holds the sum over the items.
  [[gnu::noinline]] void bind_lists() {
    int32_t count = -1;
    size_t longest = 0;
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      if (!c_.inputs[i].type.list || !(out_.present >> i & 1)) continue;
      if (count < 0) count = inputs_[i].count, longest = i;
      if (inputs_[i].count != count)
        complain_.say(format("%s has %d tensors, but %s has %d", c_.inputs[i].name.c_str(), inputs_[i].count,
                             c_.inputs[longest].name.c_str(), count));
    }
    const uint32_t outside = known_;
    int64_t sums[KW_MAX_SYMBOLS] = {};
    for (int32_t k = 0; k < count; k++) {
      item_ = k;
      known_ = outside;
      bool later = false;
      for (size_t i = 0; i < c_.inputs.size(); i++)
        if (c_.inputs[i].type.list && (out_.present >> i & 1)) later |= tensor(i, inputs_[i].tensors[k]);
      if (later) expressions(k);
      for (size_t d = 0; d < c_.dims.size(); d++)
        if ((known_ & ~outside) >> d & 1 && __builtin_add_overflow(sums[d], out_.dims[d], &sums[d])) complain_.too_large("the list");
    }
    for (size_t d = 0; d < c_.dims.size(); d++)
      if ((known_ & ~outside) >> d & 1) out_.dims[d] = sums[d];
  }

  void types() {
    for (size_t v = 0; v < c_.types.size(); v++) {
      const TypeVariable& variable = c_.types[v];
      auto value = [&](const TypeVariable::Option& o) { return o.variable < 0 ? o.dtype : out_.dtypes[o.variable]; };
      if (!(types_known_ >> v & 1)) {
        out_.dtypes[v] = value(variable.options[0]);
        continue;
      }
      bool found = false;
      for (const auto& o : variable.options) found = found || out_.dtypes[v] == value(o);
      if (!found) complain_.no_option(static_cast<int>(v), type_from_[v], out_.dtypes[v], out_.dtypes);
    }
    if (!accumulators_) return;
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const ElementType& e = c_.inputs[i].type.element;
      if (e.kind != ElementType::Kind::accumulator) continue;
      for (int32_t k = 0; k < inputs_[i].count; k++)
        if (DType wanted = accumulator(out_.dtypes[e.variable]); inputs_[i].tensors[k].dtype != wanted)
          complain_.element(name(i, c_.inputs[i].type.list ? k : -1), inputs_[i].tensors[k], wanted);
    }
  }

  void results() {
    for (size_t r = 0; r < c_.results.size(); r++) {
      const Result& result = c_.results[r];
      TensorSpec& spec = out_.results[r];
      spec.rank = 0;
      spec.present = result.present_with < 0 || (out_.present >> result.present_with & 1);
      if (!spec.present) continue;
      const ElementType& e = result.type.element;
      spec.dtype = e.kind == ElementType::Kind::fixed      ? e.dtype
                   : e.kind == ElementType::Kind::variable ? static_cast<DType>(out_.dtypes[e.variable])
                                                           : accumulator(out_.dtypes[e.variable]);
      for (const Dim& dim : result.type.shape) {
        int64_t value = 0;
        if (dim.variadic) {
          const auto d = static_cast<size_t>(dim.size.value);
          if (lead_count_[d] + static_cast<int32_t>(result.type.shape.size()) - 1 > KW_MAX_RANK)
            complain_.say(format("%s would have more than %d dimensions", result.name.c_str(), KW_MAX_RANK));
          for (; spec.rank < lead_count_[d]; spec.rank++) spec.sizes[spec.rank] = lead_[d][spec.rank];
          continue;
        }
        SizeFault fault = evaluate(dim.size, out_.dims, value);
        if (fault != SizeFault::none || value < 0) no_size(result, dim.size, fault, value);
        spec.sizes[spec.rank++] = value;
      }
      int64_t bytes = dtype_bytes(spec.dtype);
      bool empty = false, overflow = false;
      for (int32_t d = 0; d < spec.rank; d++) {
        empty = empty || spec.sizes[d] == 0;
        overflow = overflow || __builtin_mul_overflow(bytes, spec.sizes[d], &bytes);
      }
      if (overflow && !empty) complain_.too_large(result.name);
    }
  }

  // "y would have N/2 elements with N = 7: not a whole number".
  [[noreturn, gnu::cold]] void no_size(const Result& result, const Size& size, SizeFault fault, int64_t value) const {
    std::string with;
    for (size_t d = 0; d < c_.dims.size(); d++)
      if (dims_of(size) >> d & 1) with += (with.empty() ? " with " : ", ") + c_.dims[d] + " = " + std::to_string(out_.dims[d]);
    std::string why = fault == SizeFault::inexact    ? "not a whole number"
                      : fault == SizeFault::overflow ? "more than 64 bits can count"
                                                     : "negative (" + std::to_string(value) + ")";
    complain_.say("a dimension of " + result.name + " is " + to_text(size, c_) + with + ", which is " + why);
  }

  const Contract& c_;
  const kw_argument* inputs_;
  const kw_attribute* attributes_;
  Bound& out_;
  Complaint complain_;
  int32_t item_ = -1, first_ = -1;
  uint32_t known_ = 0, types_known_ = 0;
  bool accumulators_ = false;
  Origin origin_[KW_MAX_SYMBOLS];
  int8_t type_from_[KW_MAX_SYMBOLS];
  const int64_t* lead_[KW_MAX_SYMBOLS];  // what a variadic dimension stands for
  int32_t lead_count_[KW_MAX_SYMBOLS];
};

}  // namespace

void bind_inputs(const Op& op, const kw_argument* inputs, const kw_attribute* attributes, Bound& out) {
  out.op = &op;
  out.present = 0;
  std::memset(out.dims, 0, sizeof(int64_t) * op.contract.dims.size());
  out.raw = {&op.signature, inputs, nullptr, attributes, out.dims, out.dtypes, 0, 0, nullptr};
  if ((!inputs && !op.contract.inputs.empty()) || (!attributes && !op.contract.attributes.empty()))
    Complaint(op.contract).say(inputs ? "the attributes are a null pointer" : "the inputs are a null pointer");
  Binder(op, inputs, attributes, out).run();
}

bool needs_copy(const kw_tensor& tensor, int32_t inner) {
  RowLayout rows;
  return !fold_rows(tensor, inner, rows);
}

int32_t row_rank(const TensorType& type) {
  return static_cast<int32_t>(type.shape.size()) - (!type.shape.empty() && type.shape[0].variadic);
}

}  // namespace kw
