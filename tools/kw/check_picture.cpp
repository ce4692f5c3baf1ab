#include "tools/kw/check_picture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/kw/svg.h"

namespace kw::tool {
namespace {

constexpr int64_t most_of_class[] = {8, 64, 512, 4096, 32768};  // elements of a row; longer ones are the last class
constexpr const char* class_names[] = {"up to 8", "9 to 64", "65 to 512", "513 to 4096", "4097 to 32768", "longer"};
constexpr const char* bin_names[] = {"1/4", "1/2", "3/4", "1", "2", "4", "8", "more"};
constexpr const char* colors[] = {"#4c72b0", "#55a868", "#c44e52", "#8172b2"};
constexpr double cell_width = 34, cell_height = 24, map_left = 530, chart_left = 50, chart_width = 340, panel = 280;

// Elements of the longest row: what lies behind the leading dimensions of an input that has them.
int64_t row_length(const Op& op, const test::Case& c) {
  int64_t most = 0;
  for (size_t i = 0; i < c.arguments.inputs.size(); i++) {
    const test::Argument& a = c.arguments.inputs[i];
    const TensorType& type = op.contract.inputs[i].type;
    if (!a.present || !test::has_rows(type)) continue;
    int64_t n = 1;
    for (size_t d = a.sizes.size() - static_cast<size_t>(row_rank(type)); d < a.sizes.size(); d++) n *= a.sizes[d];
    most = std::max(most, n);
  }
  return most;
}

// White up to half a spacing, which is perfect rounding, dark from 64 on.
double depth(double spacings) { return std::clamp(std::log2(std::max(spacings, 0.5) / 0.5) / 7, 0.0, 1.0); }
std::string shade(double depth) {
  return format("#%02x%02x%02x", static_cast<int>(245 - 205 * depth), static_cast<int>(248 - 160 * depth),
                static_cast<int>(255 - 85 * depth));
}

std::string in_few_letters(double spacings) {
  return spacings < 9.95 ? format("%.1f", spacings) : spacings < 1000 ? format("%.0f", spacings) : format("%.0e", spacings);
}

}  // namespace

void CheckPicture::add(const Op& op, const test::Case& c, const test::Outcome& outcome) {
  if (ops_.empty() || ops_.back().op != &op) ops_.push_back({&op, {}, {}});
  OfOp& of = ops_.back();
  for (const auto& [dtype, errors] : outcome.errors)
    for (size_t bin = 0; bin < errors.size(); bin++) of.errors[dtype][bin] += errors[bin];
  const auto at = std::lower_bound(std::begin(most_of_class), std::end(most_of_class), row_length(op, c)) - std::begin(most_of_class);
  Cell& cell = of.cells[{static_cast<int>(at), c.values}];
  cell.spacings = std::max(cell.spacings, outcome.spacings), cell.cases++, cell.failed += !outcome.ok;
}

std::string CheckPicture::svg(const std::string& device) const {
  constexpr int value_count = static_cast<int>(test::Values::count), classes = std::size(class_names);
  Svg svg;
  svg.text(20, 26, "kw check on " + device + ": errors against the reference in double", Anchor::start, 16);
  double top = 46;
  for (const OfOp& of : ops_) {
    svg.text(20, top + 16, of.op->contract.name, Anchor::start, 14);
    // Histogram: bins side by side, in each a bar for every dtype.
    const double base = top + 190, height = 130, bin_width = chart_width / std::size(bin_names);
    svg.text(chart_left, top + 36, "share of elements, by error in spacings of the result's type (ULP)", Anchor::start, 11);
    for (int tick = 0; tick <= 4; tick++) {
      const double y = base - height * tick / 4;
      svg.line(chart_left, y, chart_left + chart_width, y, "#dddddd");
      svg.text(chart_left - 6, y + 4, format("%d %%", tick * 25), Anchor::end, 10);
    }
    size_t series = 0;
    for (const auto& [dtype, errors] : of.errors) {
      const auto all = static_cast<double>(std::max<int64_t>(1, std::accumulate(errors.begin(), errors.end(), int64_t{0})));
      const double bar = (bin_width - 8) / static_cast<double>(of.errors.size());
      const char* color = colors[series % std::size(colors)];
      for (size_t bin = 0; bin < errors.size(); bin++) {
        const double share = static_cast<double>(errors[bin]) / all, tall = errors[bin] ? std::max(1.0, height * share) : 0;
        svg.box(chart_left + static_cast<double>(bin) * bin_width + 4 + static_cast<double>(series) * bar, base - tall, bar, tall, color);
      }
      svg.box(chart_left + static_cast<double>(series) * 80, base + 32, 11, 11, color);
      svg.text(chart_left + static_cast<double>(series) * 80 + 16, base + 42, dtype_name(dtype), Anchor::start, 11);
      series++;
    }
    for (size_t bin = 0; bin < std::size(bin_names); bin++)
      svg.text(chart_left + (static_cast<double>(bin) + 0.5) * bin_width, base + 16, bin_names[bin], Anchor::middle, 10);
    // Heat map.
    svg.text(map_left, top + 16, "largest error in spacings: 0.5 is perfect rounding; x: failed", Anchor::start, 11);
    for (int v = 0; v < value_count; v++)
      svg.text(map_left + (v + 0.5) * cell_width, top + 38 + 11 * (v % 2), test::values_name(static_cast<test::Values>(v)), Anchor::middle,
               9);
    for (int k = 0; k < classes; k++) {
      const double y = top + 56 + k * cell_height;
      svg.text(map_left - 8, y + 16, class_names[k], Anchor::end, 10);
      for (int v = 0; v < value_count; v++) {
        const auto at = of.cells.find({k, static_cast<test::Values>(v)});
        const double x = map_left + v * cell_width;
        if (at == of.cells.end()) {
          svg.box(x + 1, y + 1, cell_width - 2, cell_height - 2, "#eeeeee");
          continue;
        }
        const Cell& cell = at->second;
        svg.box(x + 1, y + 1, cell_width - 2, cell_height - 2, cell.failed ? "#c0392b" : shade(depth(cell.spacings)).c_str());
        const bool dark = cell.failed || depth(cell.spacings) > 0.5;
        svg.text(x + cell_width / 2, y + 16, cell.failed ? "x" : in_few_letters(cell.spacings), Anchor::middle, 9,
                 dark ? "#ffffff" : "#222222");
      }
    }
    svg.text(map_left - 8, top + 50, "row length", Anchor::end, 10);
    top += panel;
  }
  return svg.picture(map_left + value_count * cell_width + 20, top);
}

}  // namespace kw::tool
