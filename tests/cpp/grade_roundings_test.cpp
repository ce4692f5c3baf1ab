// The verdict `roundings` (testing/compare.h): where one rounding is due it is to the nearest, ties to even; where more are, one alone is
// seen.
#include "testing/compare.h"
#include "testing/expect.h"
#include "testing/random.h"

namespace {

using namespace kw;

// bf16 results, each fourth of them a tie, of which every second lies above an even number: all rounded once, ties to even or away from 0.
std::string judged(bool ties_up) {
  constexpr int64_t n = 4000;
  test::Random random(5);
  test::Tensor got(KW_BF16, {n});
  test::Truth truth;
  truth.terms = n;
  std::vector<double> want;
  for (int64_t i = 0; i < n; i++) {
    const bool tie = i % 4 == 0;
    want.push_back(tie ? 1 + (static_cast<double>(i / 4 % 100) + 0.5) / 128 : 1 + random.uniform());
    got.set(i, tie && ties_up ? want.back() + 1.0 / 256 : want.back());
  }
  truth.want = truth.moves = {want};
  truth.wavers = {std::vector<double>(want.size())};
  return test::grade("y", got, truth, 0, KW_F32, true, 1).sentence;
}

bool holds(const std::string& sentence, const char* part) { return sentence.find(part) != std::string::npos; }

void one_rounding() {
  KW_EXPECT_EQ(judged(false), "");
  KW_EXPECT(holds(judged(true), "y[0] is 1.0078125, not the nearest to 1.00390625, and so are 500 of 4000 elements"));
}

void two_roundings() {
  constexpr int64_t n = 4000;
  test::Random random(6);
  const auto judge = [&](bool twice, bool all_round) {
    test::Tensor once(KW_BF16, {n}), got(KW_BF16, {n});
    test::Truth truth;
    truth.terms = n;
    std::vector<double> want;
    for (int64_t i = 0; i < n; i++) {
      const double x = 1 + random.uniform(), factor = 1 + random.uniform();
      want.push_back(x * factor);
      once.set(i, x);
      got.set(i, (twice ? once.at(i) : x) * factor);
    }
    truth.want = truth.moves = {want};
    truth.wavers = {std::vector<double>(want.size())};
    return test::grade("y", got, truth, 0, KW_F32, true, 2, all_round).sentence;
  };
  KW_EXPECT_EQ(judge(true, true), "");
  KW_EXPECT(holds(judge(false, true), "as after one rounding, where 2 are due"));
  KW_EXPECT_EQ(judge(false, false), "");
}

}  // namespace

int main() {
  one_rounding();
  two_roundings();
  return kw::test::finish();
}
