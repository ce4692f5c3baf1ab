#include "kw/core/error.h"
#include "kw/core/registry.h"
#include "kw/core/size.h"

namespace kw {
namespace {

std::string list_arguments(const Contract& c) {
  std::string text;
  for (const Input& i : c.inputs) text += (text.empty() ? "" : ", ") + i.name;
  for (const Attribute& a : c.attributes) text += (text.empty() ? "" : ", ") + a.name;
  return text;
}

const TensorType* find_tensor(const Contract& c, std::string_view name) {
  for (const Input& i : c.inputs)
    if (i.name == name) return &i.type;
  for (const Result& r : c.results)
    if (r.name == name) return &r.type;
  if (name.front() == 'd')
    for (const Result& r : c.results)
      if (r.name == name.substr(1)) return &r.type;
  return nullptr;
}

const Attribute* find_attribute(const Contract& c, std::string_view name) {
  for (const Attribute& a : c.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

// Names may differ between the two contracts, the form of a shape may not.
bool same_form(const TensorType& a, const TensorType& b) {
  bool fixed = a.element.kind == ElementType::Kind::fixed && b.element.kind == ElementType::Kind::fixed;
  if (a.shape.size() != b.shape.size() || a.list != b.list || (fixed && a.element.dtype != b.element.dtype)) return false;
  return a.shape.empty() || a.shape[0].variadic == b.shape[0].variadic;
}

}  // namespace

void check_backward(const Contract& forward, const Contract& backward) {
  const Gradient& g = *forward.gradient;
  auto refuse = [&](const std::string& sentence) {
    throw Error(KW_ERROR_CONTRACT, forward.name + ": its gradient " + backward.name + " " + sentence);
  };
  if (g.arguments.size() != backward.inputs.size() + backward.attributes.size())
    refuse(format("is given %zu arguments, but takes %zu: %s", g.arguments.size(), backward.inputs.size() + backward.attributes.size(),
                  list_arguments(backward).c_str()));
  for (size_t i = 0; i < backward.inputs.size(); i++) {
    const std::string& given = g.arguments[i];
    const Input& wanted = backward.inputs[i];
    const TensorType* type = find_tensor(forward, given);
    if (!type) refuse("takes the tensor " + wanted.name + ", but is given the attribute " + given);
    if (!same_form(*type, wanted.type))
      refuse("takes " + wanted.name + ": " + to_text(wanted.type, backward) + ", but is given " + given + " with " +
             to_text(*type, forward));
    if (type->optional && !wanted.type.optional) refuse("always needs " + wanted.name + ", but " + given + " is optional");
  }
  for (size_t i = 0; i < backward.attributes.size(); i++) {
    const std::string& given = g.arguments[backward.inputs.size() + i];
    const Attribute& wanted = backward.attributes[i];
    const Attribute* own = find_attribute(forward, given);
    if (!own) refuse("takes the attribute " + wanted.name + ", but is given the tensor " + given);
    if (own->type != wanted.type || own->values != wanted.values)
      refuse("takes the attribute " + wanted.name + ", but " + given + " has another type");
  }
  // The backward op's results are the gradients; one that only writes in place leaves them in the inputs that it writes.
  std::vector<const TensorType*> gradients;
  for (const Result& r : backward.results)
    if (r.kind == Result::Kind::output) gradients.push_back(&r.type);
  if (gradients.empty())
    for (const Input& i : backward.inputs)
      if (i.type.written) gradients.push_back(&i.type);
  const size_t named = g.results.back() + 1;
  if (gradients.size() != named) refuse(format("gives %zu gradients, but %zu are named", gradients.size(), named));
  for (size_t t = 0; t < g.targets.size(); t++) {
    const TensorType& result = *gradients[g.results[t]];
    const TensorType& input = *find_tensor(forward, std::string_view(g.targets[t]).substr(1));
    if (!same_form(result, input))
      refuse("gives " + g.targets[t] + " as " + to_text(result, backward) + ", but the input is " + to_text(input, forward));
    if (result.optional != input.optional)
      refuse("gives " + g.targets[t] +
             (input.optional ? " always, but the input is optional" : " only sometimes, but the input is always there"));
  }
}

}  // namespace kw
