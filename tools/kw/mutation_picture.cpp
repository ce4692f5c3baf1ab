// The picture of kw mutate: how much the checker sees, beside allclose.
#include <algorithm>

#include "testing/catalogue.h"
#include "tools/kw/svg.h"
#include "tools/kw/verdicts.h"

namespace kw::tool {
namespace {

constexpr const char* colors[] = {"#4c72b0", "#55a868", "#c44e52", "#8172b2", "#ccb974", "#64b5cd", "#8c8c8c", "#dd8452", "#937860"};
constexpr const char* pale = "#e4e4e4";
constexpr double left = 400, full = 420, width = left + full + 60;

}  // namespace

std::string as_picture(const std::vector<Result>& results) {
  const Sums sums(results);
  const auto all = static_cast<double>(std::max<long long>(sums.planted, 1));
  const auto percent = [&](long long n) { return format("%lld (%.1f %%)", n, 100 * static_cast<double>(n) / all); };
  Svg svg;
  double y = 28;
  svg.text(20, y, format("%lld planted bugs, one at a time", sums.planted), Anchor::start, 16);
  svg.text(20, y += 20, format("and %lld legal variants of the kernels: %lld false alarms", sums.legal, sums.false_alarms));

  // What killed them: one bar, a piece for each layer, over that of allclose.
  const auto bar = [&](double x, double at, double height, long long n, const char* color) {
    svg.box(x, at, full * static_cast<double>(n) / all, height, color);
    return x + full * static_cast<double>(n) / all;
  };
  y += 24;
  svg.text(left - 10, y + 15, "kw check --device emulate: " + percent(sums.killed), Anchor::end);
  bar(left, y, 22, sums.planted, pale);
  std::vector<std::pair<long long, std::string>> layers;
  for (const auto& [layer, count] : sums.layers) layers.emplace_back(-count, layer);
  std::sort(layers.begin(), layers.end());
  double x = left;
  for (size_t i = 0; i < layers.size(); i++) x = bar(x, y, 22, -layers[i].first, colors[i % std::size(colors)]);
  y += 30;
  svg.text(left - 10, y + 15, "allclose(1e-2) on one random input: " + percent(sums.noticed), Anchor::end);
  bar(left, y, 22, sums.planted, pale);
  bar(left, y, 22, sums.noticed, "#333333");
  y += 44;
  svg.text(left - 10, y, "layer that sees it first", Anchor::end);
  for (size_t i = 0; i < layers.size(); i++) {
    const double at = left + static_cast<double>(i % 4) * 120, row = y + static_cast<double>(i / 4) * 18;
    svg.box(at, row - 10, 11, 11, colors[i % std::size(colors)]);
    svg.text(at + 16, row, format("%s %lld", layers[i].second.c_str(), -layers[i].first));
  }
  y += 18 * static_cast<double>((layers.size() + 3) / 4) + 22;

  svg.text(left - 10, y, "by kind, with its number in the catalogue", Anchor::end);
  svg.text(left, y, "planted (grey), killed by kw check (blue), noticed by allclose (black)");
  long long most = 1;
  for (const auto& [number, of] : sums.numbers) most = std::max(most, of.planted);
  const double unit = full / static_cast<double>(most);
  for (const auto& [number, of] : sums.numbers) {
    y += 20;
    svg.text(left - 10, y + 3, test::catalogue_name(number) + format("  %d", number), Anchor::end, 11);
    svg.box(left, y - 7, unit * static_cast<double>(of.planted), 14, pale);
    svg.box(left, y - 7, unit * static_cast<double>(of.killed), 9, colors[0]);
    svg.box(left, y + 3, unit * static_cast<double>(of.noticed), 4, "#333333");
    svg.text(left + unit * static_cast<double>(of.planted) + 6, y + 3, format("%lld of %lld", of.killed, of.planted), Anchor::start, 10);
  }
  return svg.picture(width, y + 24);
}

}  // namespace kw::tool
