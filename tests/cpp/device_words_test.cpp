// The device words (kw/device) against the host, bit by bit: with KW_DRIVER=emulator in CI, and on a GPU with the same binary.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kw/runtime/kernel_cache.h"
#include "kw/runtime/launch.h"
#include "tests/cpp/on_device.h"

namespace {

using Floats = std::vector<float>;

struct Params {  // as in tests/device/words.cuh
  const void* in;
  const void* in2;
  void* out;
  int64_t count, length;
};

template <class Out, class In>
std::vector<Out> run(const std::string& kernel, uint32_t blocks, uint32_t threads, const std::vector<In>& in, size_t out_count,
                     int64_t count, int64_t length = 0, const std::vector<unsigned char>& in2 = {}, int shared_bytes = 0, int cluster = 0) {
  const kw_device_facts& gpu = kw::device_facts(0);
  kw::DeviceBuffer from(0, std::max<size_t>(1, in.size() * sizeof(In))), factor(0, in2.size() + 1), to(0, out_count * sizeof(Out));
  from.upload(in.data(), in.size() * sizeof(In));
  factor.upload(in2.data(), in2.size());
  std::vector<Out> out(out_count);
  std::memset(static_cast<void*>(out.data()), 0xCB, out_count * sizeof(Out));
  to.upload(out.data(), out_count * sizeof(Out));
  const Params params{from.data(), factor.data(), to.data(), count, length};
  kw_launch launch{};
  launch.grid[0] = blocks, launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = threads, launch.block[1] = launch.block[2] = 1;
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
  launch.cluster = static_cast<uint32_t>(cluster);
  launch.params_bytes = sizeof params;
  std::memcpy(launch.params, &params, sizeof params);
  kw::ContextGuard guard(kw::driver(), 0);
  kw::enqueue(kw::driver(), "device words", kw::find_kernel(*kw::source_set("tests/device/words.cuh"), kernel, gpu.arch), launch, 0, gpu,
              nullptr);
  kw::check(kw::driver(), kw::driver().cuCtxSynchronize(), kernel.c_str());
  to.download(out.data(), out_count * sizeof(Out));
  return out;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// ---- types ---------------------------------------------------------------------------------------------------------------------

float half_value(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
bool is_half_nan(uint16_t bits) { return (bits & 0x7c00) == 0x7c00 && bits & 0x3ff; }

Floats hard_numbers() {
  Floats all = {0.f, -0.f, 1.f,     1e-40f,  -1e-45f, 3.4e38f, INFINITY, -INFINITY,
                NAN, -NAN, 65504.f, 65519.f, 65520.f, 6e-8f,   3e-8f,    2.98e-8f};
  for (uint32_t high = 0; high < 0x10000; high += 37)  // around ties of bf16 and of f16
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, 0x1000u, 0x0fffu})
      all.push_back(std::bit_cast<float>(high << 16 | low));
  return all;
}

void types() {
  const auto wide = run<uint32_t, char>("words::widen_bf16", 256, 256, {}, 65536, 0);
  const auto wide_half = run<float, char>("words::widen_f16", 256, 256, {}, 65536, 0);
  int wrong = 0, wrong_half = 0;
  for (uint32_t i = 0; i < 65536; i++) {
    wrong += wide[i] != i << 16;
    const float want = half_value(static_cast<uint16_t>(i));
    wrong_half += is_half_nan(static_cast<uint16_t>(i)) ? !std::isnan(wide_half[i])
                                                        : std::bit_cast<uint32_t>(wide_half[i]) != std::bit_cast<uint32_t>(want);
  }
  KW_EXPECT_EQ(wrong, 0);
  KW_EXPECT_EQ(wrong_half, 0);

  const Floats in = hard_numbers();
  const auto out = run<uint32_t, float>("words::narrow", static_cast<uint32_t>(in.size() / 128 + 1), 128, in, 3 * in.size(),
                                        static_cast<int64_t>(in.size()));
  int alone = 0, pair = 0, half = 0;
  for (size_t i = 0; i < in.size(); i++) {
    const uint32_t want = kw::test::bf16_bits(in[i]), negative = kw::test::bf16_bits(-in[i]);
    alone += out[3 * i] != want;
    pair += out[3 * i + 1] != (want | negative << 16);
    const uint32_t want_half = std::isnan(in[i]) ? 0x7fff : std::bit_cast<uint16_t>(static_cast<_Float16>(in[i]));
    half += out[3 * i + 2] != want_half;
  }
  KW_EXPECT_EQ(alone, 0);
  KW_EXPECT_EQ(pair, 0);
  KW_EXPECT_EQ(half, 0);
}

void arithmetic() {
  Floats in;
  for (int i = -4000; i < 4000; i++) in.push_back(std::exp2(static_cast<float>(i) / 100));
  const auto out = run<float, float>("words::arithmetic", static_cast<uint32_t>(in.size() / 128 + 1), 128, in, 4 * in.size(),
                                     static_cast<int64_t>(in.size()));
  const auto ulps = [](float got, double want) {
    if (std::fabs(want) < 0x1p-126) return std::fabs(got - want) / 0x1p-149;  // subnormal: spacings of the smallest
    return std::fabs(got - want) / std::fabs(want) * 0x1p24;
  };
  int exact = 0;
  double root = 0, reciprocal = 0, exponential = 0;
  for (size_t i = 0; i < in.size(); i++) {
    const double x = in[i];
    exact += std::bit_cast<uint32_t>(out[4 * i]) != std::bit_cast<uint32_t>(std::fmaf(in[i], in[i], -1.0f));
    root = std::max(root, ulps(out[4 * i + 1], 1 / std::sqrt(x)));
    reciprocal = std::max(reciprocal, ulps(out[4 * i + 2], 1 / x));
    exponential = std::max(exponential, ulps(out[4 * i + 3], std::exp(-x)));
  }
  KW_EXPECT_EQ(exact, 0);
  // `ulps` counts half units where the number is just above a power of two: twice what the words promise.
  KW_EXPECT(root <= 4);
  KW_EXPECT(reciprocal <= 2);
  KW_EXPECT(exponential <= 4);
}

// ---- vectors -------------------------------------------------------------------------------------------------------------------

template <class T>
void copies(const char* type, int vec) {
  for (int align : {16, 8, 4, 2}) {
    if (align < static_cast<int>(sizeof(T))) continue;
    const int64_t piece = align / static_cast<int>(sizeof(T));
    for (int64_t count : {int64_t{0}, piece, 32 * vec - piece, int64_t{32} * vec}) {
      std::vector<T> in(static_cast<size_t>(32 * vec));
      for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<T>(i + 1);
      const auto out = run<T, T>(kw::format("words::copy<%s, %d, %d>", type, vec, align), 1, 32, in, in.size(), count);
      std::vector<T> want(in.size());
      std::memset(static_cast<void*>(want.data()), 0xCB, want.size() * sizeof(T));
      std::copy(in.begin(), in.begin() + count, want.begin());
      KW_EXPECT(same_bits(out, want));
    }
  }
}

// ---- sums ----------------------------------------------------------------------------------------------------------------------

float tree(Floats v) {  // the upper half is added to the lower
  for (size_t half = v.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; i++) v[i] += v[i + half];
  return v[0];
}

void sums(int threads, int groups) {
  const int rounds = 3, block = threads * groups;
  kw::test::Array x(KW_F32, {rounds * block});
  x.random(static_cast<unsigned>(threads));
  Floats in, want;
  for (int i = 0; i < rounds * block; i++) in.push_back(static_cast<float>(x.get(0, i)));
  for (size_t i = 0; i < in.size(); i += static_cast<size_t>(threads)) {
    Floats run(in.begin() + static_cast<int64_t>(i), in.begin() + static_cast<int64_t>(i) + threads), rest;
    for (float v : run) rest.push_back(3 - v);
    for (int t = 0; t < threads; t++) want.insert(want.end(), {tree(run), tree(rest)});
  }
  const auto out =
      run<float, float>(kw::format("words::sum<%d, %d>", threads, groups), 1, static_cast<uint32_t>(block), in, 2 * in.size(), rounds);
  if (!KW_EXPECT(same_bits(out, want))) std::cerr << "  threads " << threads << " groups " << groups << '\n';
}

// ---- rows ----------------------------------------------------------------------------------------------------------------------

// The canonical sum of squares of row.cuh: vectors go round the tree's virtual lanes, lanes meet in the tree.
float sum_of_squares(const Floats& row, int vec, int width) {
  Floats lanes(static_cast<size_t>(width));
  for (size_t i = 0; i < row.size(); i++) {
    float& lane = lanes[i / static_cast<size_t>(vec) % lanes.size()];
    lane = std::fmaf(row[i], row[i], lane);
  }
  return tree(lanes);
}

template <class T>
struct Rows {
  int64_t count, length;
  std::vector<T> data;
  std::vector<Floats> value;
  Rows(int64_t rows, int64_t columns) : count(rows), length(columns) {
    kw::test::Array x(KW_F32, {rows, columns});
    x.random(5);
    for (int64_t r = 0; r < rows; r++) {
      value.emplace_back();
      for (int64_t i = 0; i < columns; i++) {
        const auto v = static_cast<float>(x.get(r, i));
        if constexpr (sizeof(T) == 2)
          data.push_back(kw::test::bf16_bits(v)), value.back().push_back(kw::test::bf16_value(data.back()));
        else
          data.push_back(v), value.back().push_back(v);
      }
    }
  }
};
template <class T>
constexpr const char* type_name = sizeof(T) == 2 ? "kw::bf16" : "float";

template <class T>
void row(int threads, int rows, int vectors, int align, int64_t length, const char* factor, int cluster = 1, int width = 1024) {
  const int vec = 16 / static_cast<int>(sizeof(T));
  const Rows<T> x(cluster > 1 ? 3 : 2 * rows - 1, length);  // the last round is not full
  std::vector<unsigned char> factors(static_cast<size_t>(length) * 4);
  for (int64_t i = 0; i < length; i++) {
    const auto v = static_cast<float>(i % 64);
    std::memcpy(factors.data() + 4 * i, &v, 4);
  }
  const size_t sums = static_cast<size_t>(x.count * threads), elements = x.data.size(), bytes = sums * 4 + elements * sizeof(T);
  const std::string name = kw::format("words::row<%s, %s, kw::RowTile<%d, %d, %d, %d, %d, %d, %d>>", type_name<T>, factor, threads, rows,
                                      vectors, vec, align, cluster, width);
  const auto out = run<unsigned char, T>(name, static_cast<uint32_t>(cluster), static_cast<uint32_t>(threads * rows / cluster), x.data,
                                         bytes, x.count, length, factors, 0, cluster);
  Floats want;
  std::vector<T> stored;
  for (const Floats& r : x.value) {
    want.insert(want.end(), static_cast<size_t>(threads), sum_of_squares(r, vec, width));
    for (size_t i = 0; i < r.size(); i++) {
      const float v = std::fmaf(2, r[i], factor[0] == 'f' ? static_cast<float>(i % 64) : 1.0f);
      if constexpr (sizeof(T) == 2)
        stored.push_back(kw::test::bf16_bits(v));
      else
        stored.push_back(v);
    }
  }
  const bool ok =
      std::memcmp(out.data(), want.data(), sums * 4) == 0 && std::memcmp(out.data() + sums * 4, stored.data(), elements * sizeof(T)) == 0;
  if (!KW_EXPECT(ok)) std::cerr << "  " << name << " length " << length << '\n';
}

template <class T>
void window(int threads, int vectors, int cluster, int align, int64_t length, int apart) {
  const int vec = 16 / static_cast<int>(sizeof(T)), rows = 5;
  const int64_t places = int64_t{threads} * vectors, tile = places * vec;
  const Rows<T> x(rows, length);
  const std::string name =
      kw::format("words::window<%s, kw::RowTile<%d, 1, %d, %d, %d, %d>, %d>", type_name<T>, threads, vectors, vec, align, cluster, apart);
  const auto own = align == 16 ? places / cluster : cluster == 1 ? places + 1 : places / cluster / 8 * 9;
  const auto n = static_cast<size_t>(rows * (tile + length) + 16);
  const auto out = run<T, T>(name, static_cast<uint32_t>(rows * cluster), static_cast<uint32_t>(threads / cluster), x.data, n, rows, length,
                             {}, static_cast<int>(own) * 16, cluster);
  std::vector<T> want(n);
  std::memset(static_cast<void*>(want.data()), 0xCB, n * sizeof(T));
  const auto narrow = [](float v) {
    if constexpr (sizeof(T) == 2)
      return kw::test::bf16_bits(v);
    else
      return v;
  };
  for (int64_t r = 0; r < rows; r++) {
    const auto value = [&](int64_t i) {
      return i >= length ? 1.0f : r == 1 ? 0.0f : x.value[static_cast<size_t>(r)][static_cast<size_t>(i)];
    };
    for (int64_t i = 0; i < (length + vec - 1) / vec * vec; i++) want[static_cast<size_t>(r * tile + i)] = narrow(value(i));
    for (int64_t i = 0; i < length; i++)
      want[static_cast<size_t>(rows * tile + r * length + apart + i)] = narrow(i % 2 ? -value(i) : value(i));
  }
  if (!KW_EXPECT(same_bits(out, want))) std::cerr << "  " << name << " length " << length << '\n';
}

template <class T>
void long_row(int threads, int vectors, int align, int64_t length, int width = 1024) {
  const int vec = 16 / static_cast<int>(sizeof(T));
  const Rows<T> x(2, length);
  const std::string name =
      kw::format("words::long_row<%s, kw::RowTile<%d, 1, %d, %d, %d, 1, %d>>", type_name<T>, threads, vectors, vec, align, width);
  const auto out = run<float, T>(name, 2, static_cast<uint32_t>(threads), x.data, 2, 2, length);
  if (!KW_EXPECT(same_bits(out, {sum_of_squares(x.value[0], vec, width), sum_of_squares(x.value[1], vec, width)})))
    std::cerr << "  " << name << '\n';
}

// Every tile gives the same bits; they are right to what e^x is on a GPU. One row of numbers, one with infinities, one of nothing else.
void peaks(int64_t length) {
  Floats in;
  for (int64_t i = 0; i < 3 * length; i++) in.push_back(static_cast<float>(i * 7919 % 1009) * 0.03f - 40.0f);
  for (int64_t i = 0; i < length; i++) {
    if (i % 3 == 0) in[static_cast<size_t>(length + i)] = -INFINITY;
    in[static_cast<size_t>(2 * length + i)] = -INFINITY;
  }
  Floats first;
  for (auto [threads, vectors, cluster] : {std::tuple{1024, 1, 1}, {512, 2, 1}, {512, 6, 1}, {256, 4, 1}, {1024, 1, 4}, {1024, 2, 16}}) {
    if (cluster > 1 && kw::device_facts(0).arch < 90) continue;
    const std::string name = kw::format("words::peak<float, kw::RowTile<%d, 1, %d, 4, 4, %d>>", threads, vectors, cluster);
    const auto blocks = static_cast<uint32_t>(cluster);
    Floats out = run<float, float>(name, 3 * blocks, static_cast<uint32_t>(threads) / blocks, in, 9, 3, length, {}, 0, cluster);
    if (first.empty()) first = out;
    bool same = true;
    for (size_t r = 0; r < 3; r++) {
      same = same && same_bits<float>({out[3 * r], out[3 * r + 1]}, {first[3 * r], first[3 * r + 1]});
      const auto begin = in.begin() + static_cast<int64_t>(r) * length;
      const float top = *std::max_element(begin, begin + length);
      double sum = 0;
      for (auto x = begin; x < begin + length && top > -INFINITY; x++) sum += std::exp(double{*x} - top);
      same = same && out[3 * r] == top && std::fabs(out[3 * r + 1] - sum) <= 1e-6 * sum;
      const float piece = *std::max_element(begin, begin + std::min<int64_t>(length, int64_t{threads} * vectors * 4));
      same = same && (cluster > 1 || out[3 * r + 2] == piece);
    }
    if (!KW_EXPECT(same)) std::cerr << "  " << name << " length " << length << '\n';
  }
}

template <class T>
void columns(int threads, int rows, int vectors, int64_t count, int64_t length) {
  const Rows<T> x(count, length);
  Floats want;
  for (size_t i = 0; i < static_cast<size_t>(length); i++) {
    Floats groups(static_cast<size_t>(rows));
    for (size_t r = 0; r < x.value.size(); r++) groups[r % groups.size()] += x.value[r][i];
    for (size_t g = 1; g < groups.size(); g++) groups[0] += groups[g];
    want.push_back(groups[0]);
  }
  const std::string name = kw::format("words::columns<%s, kw::RowTile<%d, %d, %d, %d, 16>>", type_name<T>, threads, rows, vectors,
                                      16 / static_cast<int>(sizeof(T)));
  if (!KW_EXPECT(same_bits(run<float, T>(name, 1, static_cast<uint32_t>(threads * rows), x.data, want.size(), count, length), want)))
    std::cerr << "  " << name << '\n';
}

// ---- a ring --------------------------------------------------------------------------------------------------------------------

void ring(int slots, int step, int threads, int64_t count, int64_t length) {
  Floats in, want;
  std::vector<unsigned char> in2;
  for (int64_t i = 0; i < count * threads * 4; i++) {
    const auto a = static_cast<float>(i), b = static_cast<float>(i % 97);
    in.push_back(a);
    in2.insert(in2.end(), reinterpret_cast<const unsigned char*>(&b), reinterpret_cast<const unsigned char*>(&b + 1));
    want.push_back(i < length ? a + 2 * b : 0);
  }
  for (int t = 0; t < threads; t++) want.push_back(static_cast<float>(threads - 1 - t));
  const std::string name = kw::format("words::ring<%d, %d, %d>", slots, step, threads);
  const auto out = run<float, float>(name, 1, static_cast<uint32_t>(threads), in, want.size(), count, length, in2, slots * 32 * threads);
  if (!KW_EXPECT(same_bits(out, want))) std::cerr << "  " << name << " count " << count << " length " << length << '\n';
}

void all() {
  types();
  arithmetic();
  copies<uint32_t>("unsigned", 4);
  copies<uint16_t>("unsigned short", 8);
  for (auto [threads, groups] : {std::pair{1, 32}, {4, 8}, {32, 4}, {64, 1}, {64, 4}, {128, 2}, {256, 1}, {512, 2}, {1024, 1}})
    sums(threads, groups);
  // One row length, many tiles: the same bits.
  for (auto [threads, rows, vectors] : {std::tuple{4, 8, 8}, {16, 8, 2}, {32, 4, 1}, {64, 2, 1}, {128, 1, 2}}) {
    row<uint16_t>(threads, rows, vectors, 16, 248, "float");
    row<uint16_t>(threads, rows, vectors, 2, 241, "kw::One");
  }
  for (auto [threads, rows, vectors] : {std::tuple{64, 4, 8}, {128, 1, 4}, {256, 1, 2}, {512, 1, 1}, {1024, 1, 1}}) {
    row<uint16_t>(threads, rows, vectors, 8, 4092, "kw::One");
    row<float>(threads, rows, vectors, 16, 2048, "float");
  }
  row<float>(1024, 1, 4, 4, 16383, "float");
  row<uint16_t>(512, 1, 4, 16, 16384, "kw::One");
  if (kw::device_facts(0).arch >= 90)
    for (int cluster : {2, 4, 8, 16}) {  // a row over several blocks: the same bits
      row<float>(1024, 1, 3, 16, 12284, "float", cluster);
      row<uint16_t>(512, 1, 4, 16, 16384, "kw::One", cluster);
      row<float>(4096, 1, 3, 16, 36868, "float", cluster < 4 ? 4 : cluster, 4096);
      row<float>(1024, 1, 10, 16, 36868, "kw::One", cluster, 4096);
    }
  long_row<uint16_t>(512, 4, 16, 16384);
  long_row<uint16_t>(512, 2, 2, 16391);
  long_row<float>(1024, 1, 16, 16384);
  long_row<float>(512, 8, 16, 36868, 4096);
  long_row<float>(256, 4, 8, 12290);
  peaks(5), peaks(12290);
  columns<uint16_t>(16, 8, 2, 37, 256);
  columns<float>(64, 4, 1, 9, 252);
  columns<float>(256, 1, 2, 5, 2044);
  if (kw::device_facts(0).arch < 80) return;
  ring(1, 1, 64, 5, 5 * 64 * 4);
  ring(2, 1, 96, 7, 7 * 96 * 4 - 4);
  ring(3, 3, 32, 12, 9 * 32 * 4);
  ring(6, 4, 64, 20, 1000);
  ring(13, 8, 128, 48, 48 * 128 * 4);  // 53 KB
  for (int apart : {0, 1}) {
    window<uint16_t>(64, 3, 1, 2, 1529, apart);
    window<uint16_t>(128, 2, 1, 4, 2034, apart);  // as many windows as there are places
    window<float>(32, 2, 1, 4, 33, apart);
    if (kw::device_facts(0).arch >= 90) window<uint16_t>(256, 2, 4, 2, 4001, apart), window<float>(64, 5, 2, 8, 1222, 2 * apart);
  }
  window<float>(64, 2, 1, 16, 508, 0);
}

}  // namespace

int main() {
  const char* tree = std::getenv("KW_SOURCE_DIR");   // a build folder that was carried to another machine
  kw::set_kernel_path(tree ? tree : KW_SOURCE_DIR);  // where tests/device lies; it is not part of the library
  std::string why;
  if (!kw::find_driver(&why) || kw::device_count() == 0) {
    if (kw::emulator_requested()) KW_EXPECT_EQ(why, "");
    kw::use_emulator();  // the words are the device's alone: without a GPU they run here
  }
  kw::test::on_device({"inorder", "greedy", "shuffle"}, [](std::string_view) { all(); });
  return kw::test::finish();
}
