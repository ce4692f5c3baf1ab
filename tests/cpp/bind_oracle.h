// What binding should say, found the slow and obvious way: try every value for every name, look at every element's address.
// Right for small sizes only (below 24), and for ops without lists.
#pragma once
#include <cmath>
#include <optional>
#include <vector>

#include "kw/core/bind.h"

namespace kw::test {

struct OracleSpec {
  bool present = false;
  int32_t dtype = 0;
  std::vector<int64_t> sizes;
};

class BindOracle {
 public:
  BindOracle(const Contract& c, const kw_argument* inputs, const kw_attribute* attributes)
      : c_(c), inputs_(inputs), attributes_(attributes) {}

  // The results' shapes; nothing when the call does not fit.
  std::optional<std::vector<OracleSpec>> specs() {
    for (size_t a = 0; a < c_.attributes.size(); a++)
      if (!attribute_fits(c_.attributes[a], attributes_[a])) return std::nullopt;
    const kw_tensor* first = nullptr;
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const kw_tensor* t = input(i);
      if (!t && !c_.inputs[i].type.optional) return std::nullopt;
      if (!t) continue;
      if (!first) first = t;
      if (t->device_type != first->device_type || (t->device_type == KW_CUDA && t->device_index != first->device_index))
        return std::nullopt;
      if (!tensor_fits(c_.inputs[i].type, *t)) return std::nullopt;
    }
    types_.assign(c_.types.size(), -1);
    if (!find_types(0)) return std::nullopt;
    dims_.assign(c_.dims.size(), 0);
    if (!find_dims(0)) return std::nullopt;
    std::vector<OracleSpec> all;
    for (const Result& r : c_.results) {
      OracleSpec s;
      s.present = r.present_with < 0 || input(static_cast<size_t>(r.present_with));
      if (s.present) {
        s.dtype = dtype(r.type.element);
        for (const Dim& d : r.type.shape) {
          if (d.variadic) {
            s.sizes = lead(d);
          } else {
            std::optional<int64_t> n = value(d.size);
            if (!n || *n < 0) return std::nullopt;
            s.sizes.push_back(*n);
          }
        }
        if (s.sizes.size() > KW_MAX_RANK) return std::nullopt;
      }
      all.push_back(s);
    }
    return all;
  }

  static bool attribute_fits(const Attribute& a, const kw_attribute& v) {
    using Type = Attribute::Type;
    if (a.type == Type::string) return v.s;
    if (a.type == Type::boolean) return v.i == 0 || v.i == 1;
    if (a.type == Type::enumeration) return v.i >= 0 && static_cast<size_t>(v.i) < a.values.size();
    const double x = a.type == Type::integer ? static_cast<double>(v.i) : v.f;
    if (std::isnan(x) && (a.at_least || a.above || a.at_most || a.below)) return false;
    return !(a.at_least && x < *a.at_least) && !(a.above && x <= *a.above) && !(a.at_most && x > *a.at_most) && !(a.below && x >= *a.below);
  }

  // Every element of a row is next to the one before, and three distances say where row r begins: r = a + n (b + m c) for some n, m. What
  // is written has no element twice, as far as three distances can say.
  static bool layout_fits(const kw_tensor& t, int inner, bool written) {
    int64_t rows = 1, length = 1;
    for (int d = 0; d < t.rank; d++) (d < t.rank - inner ? rows : length) *= t.sizes[d];
    if (rows * length == 0) return true;
    auto offset = [&](int64_t index) {
      int64_t at = 0;
      for (int d = t.rank - 1; d >= 0; d--) at += index % t.sizes[d] * t.strides[d], index /= t.sizes[d];
      return at;
    };
    for (int64_t r = 0; r < rows; r++)
      for (int64_t i = 0; i < length; i++)
        if (offset(r * length + i) != offset(r * length) + i || offset(r * length) < 0) return false;
    for (int64_t n = 1; n <= rows; n++)
      for (int64_t m = 1; n * m <= rows; m++) {
        if (rows % (n * m) != 0) continue;
        const int64_t a = n > 1 ? offset(length) : 0, b = m > 1 ? offset(n * length) : 0, c = n * m < rows ? offset(n * m * length) : 0;
        bool fits = a >= 0 && b >= 0 && c >= 0;
        for (int64_t r = 0; fits && r < rows; r++) fits = offset(r * length) == r % n * a + r / n % m * b + r / n / m * c;
        if (fits) return !written || apart({{a, n}, {b, m}, {c, rows / n / m}}, length);
      }
    return false;
  }

  static bool apart(std::vector<std::pair<int64_t, int64_t>> distances, int64_t reach) {
    std::sort(distances.begin(), distances.end());
    for (auto [stride, size] : distances) {
      if (size == 1) continue;
      if (stride < reach) return false;
      reach += stride * (size - 1);
    }
    return true;
  }

 private:
  const kw_tensor* input(size_t i) const { return inputs_[i].count == 1 ? inputs_[i].tensors : nullptr; }

  static bool tensor_fits(const TensorType& type, const kw_tensor& t) {
    const bool variadic = !type.shape.empty() && type.shape[0].variadic;
    const int inner = static_cast<int>(type.shape.size()) - variadic;
    if (t.rank > KW_MAX_RANK || t.rank < inner || (!variadic && t.rank > inner) || !is_dtype(t.dtype)) return false;
    if (t.device_type != KW_CPU && t.device_type != KW_CUDA) return false;
    for (int d = 0; d < t.rank; d++)
      if (t.sizes[d] < 0) return false;
    return layout_fits(t, inner, type.written);
  }

  int32_t dtype(const ElementType& e) const {
    if (e.kind == ElementType::Kind::fixed) return e.dtype;
    const int32_t v = types_[static_cast<size_t>(e.variable)];
    return e.kind == ElementType::Kind::variable ? v : accumulator(v);
  }

  bool find_types(size_t v) {
    if (v == types_.size()) {
      for (size_t i = 0; i < c_.inputs.size(); i++)
        if (input(i) && input(i)->dtype != dtype(c_.inputs[i].type.element)) return false;
      return true;
    }
    bool named = false;  // by an input that is there
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const ElementType& e = c_.inputs[i].type.element;
      named = named || (input(i) && e.kind == ElementType::Kind::variable && e.variable == static_cast<int>(v));
    }
    for (const auto& o : c_.types[v].options) {
      types_[v] = o.variable < 0 ? o.dtype : types_[static_cast<size_t>(o.variable)];
      if (find_types(v + 1)) return true;
      if (!named) return false;  // takes the first
    }
    return false;
  }

  std::vector<int64_t> lead(const Dim& d) const {
    for (size_t i = 0; i < c_.inputs.size(); i++)
      if (const TensorType& type = c_.inputs[i].type;
          input(i) && !type.shape.empty() && type.shape[0].variadic && type.shape[0].size.value == d.size.value)
        return lead_of(i);
    return {};
  }
  std::vector<int64_t> lead_of(size_t i) const {
    const kw_tensor& t = *input(i);
    return {t.sizes, t.sizes + t.rank - static_cast<int>(c_.inputs[i].type.shape.size()) + 1};
  }

  std::optional<int64_t> value(const Size& s) const {
    if (s.kind == Size::Kind::constant) return s.value;
    if (s.kind == Size::Kind::dim) return dims_[static_cast<size_t>(s.value)];
    auto a = value(s.operands[0]), b = value(s.operands[1]);
    if (!a || !b) return std::nullopt;
    switch (s.kind) {
      case Size::Kind::add:
        return *a + *b;
      case Size::Kind::sub:
        return *a - *b;
      case Size::Kind::mul:
        return *a * *b;
      case Size::Kind::div:
        if (*a % *b != 0) return std::nullopt;
        return *a / *b;
      case Size::Kind::min:
        return *a < *b ? *a : *b;
      default:
        return *a > *b ? *a : *b;
    }
  }

  bool mentioned(const Size& s, size_t d) const {
    if (s.kind == Size::Kind::constant) return false;
    if (s.kind == Size::Kind::dim) return static_cast<size_t>(s.value) == d;
    return mentioned(s.operands[0], d) || mentioned(s.operands[1], d);
  }

  bool find_dims(size_t d) {
    if (d == dims_.size()) return shapes_fit();
    bool named = false;
    for (size_t i = 0; i < c_.inputs.size(); i++)
      if (input(i))
        for (const Dim& dim : c_.inputs[i].type.shape) named = named || mentioned(dim.size, d);
    if (!named) return dims_[d] = 0, find_dims(d + 1);
    if (c_.dim_variadic[d]) {
      Dim dim;
      dim.size.value = static_cast<int64_t>(d);
      dims_[d] = 1;
      for (int64_t n : lead(dim)) dims_[d] *= n;
      return find_dims(d + 1);
    }
    for (int64_t n = 0; n < 48; n++) {
      dims_[d] = n;
      if (plain_fit(d) && find_dims(d + 1)) return true;
    }
    return false;
  }

  // Saves the search from trying 48^4 values: a dimension that stands alone somewhere has the size found there.
  bool plain_fit(size_t d) const {
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const auto& shape = c_.inputs[i].type.shape;
      for (size_t p = 0; input(i) && p < shape.size(); p++)
        if (shape[p].size.kind == Size::Kind::dim && !shape[p].variadic && static_cast<size_t>(shape[p].size.value) == d &&
            input(i)->sizes[input(i)->rank - static_cast<int>(shape.size() - p)] != dims_[d])
          return false;
    }
    return true;
  }

  bool shapes_fit() const {
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const auto& shape = c_.inputs[i].type.shape;
      for (size_t p = 0; input(i) && p < shape.size(); p++) {
        if (shape[p].variadic) {
          if (lead(shape[p]) != lead_of(i)) return false;
        } else if (value(shape[p].size) != input(i)->sizes[input(i)->rank - static_cast<int>(shape.size() - p)]) {
          return false;
        }
      }
    }
    return true;
  }

  const Contract& c_;
  const kw_argument* inputs_;
  const kw_attribute* attributes_;
  std::vector<int64_t> dims_;
  std::vector<int32_t> types_;
};

}  // namespace kw::test
