// A sum in double without the loss of a long chain, for the references in double.
#pragma once
#include <cmath>

namespace kw {

// What every addition loses is kept and added in the end (Knuth's TwoSum; Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26, 2005, algorithm
// Sum2): as good as if the sum had been kept in twice the digits. Infinities and NaN come out as of a plain sum.
class Sum {
 public:
  Sum& operator+=(double v) {
    const double sum = sum_ + v, of_v = sum - sum_;
    lost_ += (sum_ - (sum - of_v)) + (v - of_v);
    sum_ = sum;
    return *this;
  }
  operator double() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

}  // namespace kw
