// Cross-entropy on the CPU: arguments and threads. The kernels are in cross_entropy_cpu.inc.
#include <algorithm>
#include <limits>

#include "kw/core/room.h"
#include "kw/cpu/parallel.h"

namespace kw::cpu {
namespace {

struct Forward {
  Rows logits, target, loss, dlogits;
  const void* weight;
  int64_t rows, length, ignore_index;
  double label_smoothing, z_loss, softcap;
  double scale;  // of dlogits
  bool wide;     // targets of 64 bits

  int64_t target_at(int64_t row) const {
    const int64_t i = target.at(row);
    return wide ? static_cast<const int64_t*>(target.data)[i] : static_cast<const int32_t*>(target.data)[i];
  }
};

// Fewer elements than this are not worth a second thread: waking one costs 2-5 us, and they take about as long.
constexpr int64_t worth_a_thread = 8192;

}  // namespace
}  // namespace kw::cpu

#define KW_ISA_FILE "kw/ops/cross_entropy/cross_entropy_cpu.inc"
#include "kw/cpu/each_isa.inc"

namespace kw::ops::cross_entropy {

using namespace cpu;  // for KW_FOR_ISA

namespace {

Forward arguments(const Call& c) {
  Forward p{};
  p.logits = c.rows("logits"), p.target = c.rows("target", 0), p.dlogits = c.rows("dlogits");
  p.weight = c.data("weight"), p.rows = c.dim("B"), p.length = c.dim("V");
  p.ignore_index = c.choice("ignore_index");
  p.label_smoothing = c.attr("label_smoothing"), p.z_loss = c.attr("z_loss"), p.softcap = c.attr("softcap");
  p.scale = 1;
  p.wide = c.dtype("I") == KW_I64;
  return p;
}

template <class T>
void run(const Forward& p) {
  const bool plain = p.label_smoothing == 0 && p.softcap == 0;
  auto kernel = plain ? KW_FOR_ISA(cross_entropy::forward<T, true>) : KW_FOR_ISA(cross_entropy::forward<T, false>);
  parallel_for(p.rows, worth_a_thread / std::max<int64_t>(p.length, 1), [&](int64_t first, int64_t last) { kernel(p, first, last); });
}

// Of the targets that count, the weights.
template <class A>
double counted(const Forward& p) {
  double sum = 0;
  for (int64_t r = 0; r < p.rows; r++)
    if (const int64_t t = p.target_at(r); t != p.ignore_index && t >= 0 && t < p.length)
      sum += p.weight ? static_cast<const A*>(p.weight)[t] : A(1);
  return sum;
}

}  // namespace

void forward_cpu(const Call& c) {
  for_type("cross_entropy", c.dtype("T"), [&]<class T>() {
    using A = acc_t<T>;
    Forward p = arguments(c);
    p.loss = c.rows("losses", 0);
    const double divisor = c.has("divisor") ? *static_cast<const A*>(c.data("divisor")) : c.choice("reduction") == 0 ? counted<A>(p) : 1;
    p.scale = 1 / divisor;
    run<T>(p);
    double sum = 0;
    for (int64_t r = 0; r < p.rows; r++) sum += static_cast<const A*>(c.data("losses"))[r];
    *static_cast<A*>(c.data("loss")) = static_cast<A>(sum / divisor);
  });
}

void unreduced_cpu(const Call& c) {
  for_type("cross_entropy_unreduced", c.dtype("T"), [&]<class T>() {
    Forward p = arguments(c);
    p.loss = c.rows("loss", 0);
    run<T>(p);
  });
}

void backward_cpu(const Call& c) {
  for_type("cross_entropy_backward", c.dtype("T"), [&]<class T>() {
    auto kernel = KW_FOR_ISA(cross_entropy::scale<T>);
    const Rows dloss = c.rows("dloss", 0), dlogits = c.rows("dlogits");
    const int64_t rows = c.dim("B"), length = c.dim("V");
    parallel_for(rows, worth_a_thread / std::max<int64_t>(length, 1), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; r++)
        if (const auto by = static_cast<const acc_t<T>*>(dloss.data)[dloss.at(r)]; by != 1)
          kernel(static_cast<T*>(dlogits.data) + dlogits.at(r), by, length);
    });
  });
}

}  // namespace kw::ops::cross_entropy
