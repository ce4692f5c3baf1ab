// Writes an SVG picture: rectangles and text on white, in one font.
#pragma once
#include <string>
#include <string_view>

#include "kw/core/error.h"

namespace kw::tool {

enum class Anchor { start, middle, end };  // which part of a text lies at its x

class Svg {
 public:
  void box(double x, double y, double width, double height, const char* fill) {
    if (width > 0) text_ += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width, height, fill);
  }
  void line(double x0, double y0, double x1, double y1, const char* color = "#999999") {
    text_ += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x0, y0, x1, y1, color);
  }
  void text(double x, double y, std::string_view words, Anchor anchor = Anchor::start, double size = 12, const char* fill = "#222222") {
    const char* anchors[] = {"start", "middle", "end"};
    text_ += format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" fill=\"%s\" text-anchor=\"%s\">", x, y, size, fill,
                    anchors[static_cast<int>(anchor)]);
    for (char c : words) text_ += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
    text_ += "</text>\n";
  }
  std::string picture(double width, double height) const {
    return format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" ", width, height,
                  width, height) +
           "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + text_ + "</svg>\n";
  }

 private:
  std::string text_;
};

}  // namespace kw::tool
