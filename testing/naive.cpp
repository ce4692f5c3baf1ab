#include "testing/naive.h"

#include <cmath>

#include "testing/truth.h"

namespace kw::test {

std::string naive_allclose(Device& device, const Op& op, const Case& c) {
  const std::vector<Tensor> inputs = make_inputs(op, c);
  std::vector<Tensor> results;
  try {
    results = run_once(device, op, c.arguments, inputs, 0x00, c.layout, c.seed);
  } catch (const Fault&) {
    return "stops";
  } catch (const Error&) {
    return "stops";
  }
  const Reference reference(op, c.arguments, inputs);
  const std::vector<Output> outputs = outputs_of(op);
  for (size_t r = 0; r < results.size(); r++) {
    if (!results[r].present || outputs[r].scratch) continue;
    const std::vector<double>&want = reference.truth().want[r], got = results[r].numbers();
    for (size_t i = 0; i < got.size(); i++) {
      if (std::isnan(want[i]) && std::isnan(got[i])) continue;
      if (got[i] != want[i] && !(std::fabs(got[i] - want[i]) <= 1e-2 + 1e-2 * std::fabs(want[i]))) return "fails";
    }
  }
  return "passes";
}

}  // namespace kw::test
