// What can only be said of a whole contract: every dimension and type can be found from the inputs, rows fold, gradients fit.
#include "kw/core/contract_parser.h"
#include "kw/core/error.h"
#include "kw/core/size.h"

namespace kw {
namespace {

class Check {
 public:
  Check(const Contract& contract, const ContractText& text, const ContractPlaces& places) : c_(contract), text_(text), places_(places) {}

  void all() const {
    if (c_.name.size() > 0 && required_input() < 0)
      text_.fail(places_.arrow, "an op needs an input that is always there: its device is the op's");
    bool writes = !outputs().empty();
    for (const Input& i : c_.inputs) writes = writes || i.type.written;
    if (!writes) text_.fail(places_.arrow, "the op has no result and writes no input ('!')");
    types();
    lists();
    dimensions();
    counts();
    folds();
    if (c_.gradient) {
      gradient();
    } else {
      for (size_t i = 0; i < c_.results.size(); i++)
        if (c_.results[i].kind == Result::Kind::saved)
          text_.fail(places_.results[i], c_.results[i].name + " is saved for a gradient, but there is none");
    }
  }

 private:
  int required_input() const {
    for (size_t i = 0; i < c_.inputs.size(); i++)
      if (!c_.inputs[i].type.optional) return static_cast<int>(i);
    return -1;
  }

  std::vector<size_t> outputs() const {
    std::vector<size_t> list;
    for (size_t i = 0; i < c_.results.size(); i++)
      if (c_.results[i].kind == Result::Kind::output) list.push_back(i);
    return list;
  }

  int input(std::string_view name) const {
    for (size_t i = 0; i < c_.inputs.size(); i++)
      if (c_.inputs[i].name == name) return static_cast<int>(i);
    return -1;
  }

  const Result* result(std::string_view name) const {
    for (const Result& r : c_.results)
      if (r.name == name) return &r;
    return nullptr;
  }

  bool attribute(std::string_view name) const {
    for (const Attribute& a : c_.attributes)
      if (a.name == name) return true;
    return false;
  }

  // A variable takes its type from an input that is declared with it; nothing else says what it is.
  void types() const {
    for (size_t v = 0; v < c_.types.size(); v++) {
      bool found = false;
      for (const Input& i : c_.inputs)
        found = found || (i.type.element.kind == ElementType::Kind::variable && i.type.element.variable == static_cast<int>(v));
      if (!found) text_.fail(places_.types[v], "no input has the type " + c_.types[v].name + ", so nothing says which one it is");
    }
  }

  static uint32_t dims_of(const TensorType& type) {
    uint32_t bits = 0;
    for (const Dim& d : type.shape) bits |= kw::dims_of(d.size);
    return bits;
  }

  uint32_t list_dims() const {
    uint32_t bits = 0;
    for (const Input& i : c_.inputs)
      if (i.type.list) bits |= dims_of(i.type);
    return bits;
  }

  // The items of a list have dimensions of their own: a name stands for one number per item there, and for a single one elsewhere.
  void lists() const {
    uint32_t list = list_dims();
    for (size_t i = 0; i < c_.inputs.size(); i++)
      if (!c_.inputs[i].type.list && (dims_of(c_.inputs[i].type) & list))
        text_.fail(places_.inputs[i], "a dimension of " + c_.inputs[i].name + " is also one of the items of a list, which have their own");
    for (size_t i = 0; i < c_.results.size(); i++)
      if (c_.results[i].kind != Result::Kind::scratch && (dims_of(c_.results[i].type) & list))
        text_.fail(places_.results[i], "a dimension of " + c_.results[i].name + " is one of the items of a list, which have their own");
  }

  // Which dimensions have a value once these inputs are there.
  uint32_t known_from(int optional) const {
    uint32_t known = 0;
    auto there = [&](size_t i) { return !c_.inputs[i].type.optional || static_cast<int>(i) == optional; };
    for (size_t i = 0; i < c_.inputs.size(); i++)
      if (there(i))
        for (const Dim& d : c_.inputs[i].type.shape)
          if (d.size.kind == Size::Kind::dim) known |= kw::dims_of(d.size);
    std::vector<int64_t> values(c_.dims.size(), 1);
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = 0; i < c_.inputs.size(); i++)
        if (there(i))
          for (const Dim& d : c_.inputs[i].type.shape) {
            int32_t solved = -1;
            // Any value shows whether the expression can be turned around; `inexact` and `overflow` depend on the value alone.
            if (unknowns(d.size, known) == 1 && solve(d.size, 1, known, values.data(), solved) != SizeFault::unsolvable) {
              known |= kw::dims_of(d.size);
              progress = true;
            }
          }
    }
    return known;
  }

  std::string name_of_first(uint32_t bits) const {
    for (size_t d = 0; d < c_.dims.size(); d++)
      if (bits >> d & 1) return c_.dims[d];
    return {};
  }

  void dimensions() const {
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      uint32_t missing = dims_of(c_.inputs[i].type) & ~known_from(static_cast<int>(i));
      if (missing)
        text_.fail(places_.inputs[i], "the dimension " + name_of_first(missing) + " of " + c_.inputs[i].name +
                                          " does not follow from this input and those that are always there");
    }
    for (size_t i = 0; i < c_.results.size(); i++) {
      uint32_t missing = dims_of(c_.results[i].type) & ~known_from(c_.results[i].present_with);
      if (missing)
        text_.fail(places_.results[i], "the dimension " + name_of_first(missing) + " of " + c_.results[i].name +
                                           " is known only when an optional input is there");
    }
  }

  void counts() const {
    for (size_t i = 0; i < c_.inputs.size(); i++) {
      const Input& in = c_.inputs[i];
      if (in.below < 0) continue;
      if (may_be_floating(in.type.element))
        text_.fail(places_.inputs[i], in.name + " counts within a dimension ('<'), but may hold other numbers than whole ones");
      if (!(known_from(static_cast<int>(i)) >> in.below & 1))
        text_.fail(places_.inputs[i], "the dimension " + c_.dims[static_cast<size_t>(in.below)] + " that " + in.name +
                                          " counts within does not follow from the inputs that are there with it");
    }
  }

  void folds() const {
    uint32_t rows = 0;
    for (size_t d = 0; d < c_.dims.size(); d++)
      if (c_.dim_variadic[d]) rows |= 1u << d;
    rows &= ~list_dims();
    for (size_t i = 0; i < c_.results.size(); i++) {
      const Result& r = c_.results[i];
      if (r.kind == Result::Kind::scratch) continue;
      bool has_rows = dims_of(r.type) & rows;
      if (rows && !has_rows && r.type.fold == Fold::none)
        text_.fail(places_.results[i],
                   r.name + " lacks *" + name_of_first(rows) + ": say how rows fold into it, 'sum', 'max' or 'all' before its type");
      if (r.type.fold != Fold::none && (!rows || has_rows))
        text_.fail(places_.results[i],
                   "nothing folds into " + r.name + ": " + (has_rows ? "it has the rows itself" : "no input has rows ('*B')"));
    }
  }

  bool may_be_floating(const ElementType& e) const {
    if (e.kind == ElementType::Kind::fixed) return is_floating(e.dtype);
    const auto& options = c_.types[static_cast<size_t>(e.variable)].options;
    for (const auto& o : options)
      if (o.variable >= 0 ? may_be_floating({ElementType::Kind::variable, KW_F32, o.variable}) : is_floating(o.dtype)) return true;
    return false;
  }

  void gradient() const {
    const Gradient& g = *c_.gradient;
    for (const Input& i : c_.inputs)
      if (i.type.written) text_.fail(places_.gradient, i.name + " is written in place: such an op has no gradient");
    if (g.op == c_.name) text_.fail(places_.backward, "the gradient of an op is another op");
    for (size_t t = 0; t < g.targets.size(); t++) {
      const std::string& target = g.targets[t];
      int i = target.front() == 'd' ? input(std::string_view(target).substr(1)) : -1;
      if (i < 0) text_.fail(places_.targets[t], "'" + target + "' is not 'd' and the name of an input");
      const TensorType& type = c_.inputs[static_cast<size_t>(i)].type;
      if (type.list) text_.fail(places_.targets[t], c_.inputs[static_cast<size_t>(i)].name + " is a list, which has no gradient");
      if (!may_be_floating(type.element))
        text_.fail(places_.targets[t], c_.inputs[static_cast<size_t>(i)].name + " has whole numbers, which have no gradient");
      for (size_t other = 0; other < t; other++)
        if (g.targets[other] == target) text_.fail(places_.targets[t], target + " is there twice");
    }
    for (size_t a = 0; a < g.arguments.size(); a++) argument(g.arguments[a], places_.arguments[a]);
    for (size_t i : outputs()) {
      bool used = false;
      for (const std::string& a : g.arguments) used = used || a == "d" + c_.results[i].name;
      if (!used && may_be_floating(c_.results[i].type.element))
        text_.fail(places_.backward,
                   "the gradient does not take d" + c_.results[i].name + ", so what flows into " + c_.results[i].name + " would be lost");
    }
  }

  // d + a public result's name, or an argument or result by its own name.
  void argument(const std::string& name, size_t at) const {
    const Result* own = result(name);
    const Result* of = name.front() == 'd' ? result(std::string_view(name).substr(1)) : nullptr;
    if (of && of->kind != Result::Kind::output) of = nullptr;
    if (own && own->kind == Result::Kind::scratch) text_.fail(at, name + " is scratch, which nobody keeps for the gradient");
    bool exact = own || input(name) >= 0 || attribute(name);
    if (of && exact) text_.fail(at, name + " is both a name of this op and the gradient of " + of->name + ": rename one");
    if (!of && !exact) text_.fail(at, "'" + name + "' is neither 'd' and a result, nor an input, a result or an attribute of this op");
    if (of && !may_be_floating(of->type.element)) text_.fail(at, of->name + " has whole numbers, so there is no " + name);
  }

  const Contract& c_;
  const ContractText& text_;
  const ContractPlaces& places_;
};

}  // namespace

void check_contract(const Contract& contract, const ContractText& text, const ContractPlaces& places) {
  Check(contract, text, places).all();
}

}  // namespace kw
