#include "tools/kw/access.h"

#include <algorithm>
#include <sstream>

namespace kw::tool {
namespace {

using test::AccessBuffer;
using test::AccessReport;
using test::AccessSite;

std::vector<std::string> kernels_of(const AccessReport& report) {
  std::vector<std::string> names;
  for (const AccessSite& s : report.sites)
    if (std::find(names.begin(), names.end(), s.kernel) == names.end()) names.push_back(s.kernel);
  return names;
}
int64_t launches_of(const AccessReport& report, const std::string& kernel) {
  for (const AccessSite& s : report.sites)
    if (s.kernel == kernel) return s.launches;
  return 0;
}

double each(int64_t of, int64_t requests) { return static_cast<double>(of) / static_cast<double>(std::max<int64_t>(requests, 1)); }

std::string remark(const AccessSite& s) {
  std::string text;
  if (s.pieces > s.least)
    text = s.is_shared() ? format("  bank conflicts: %lld", static_cast<long long>(s.pieces - s.least))
                         : format("  %.0f%% of the bytes unused", 100 * (1 - each(s.least, s.pieces)));
  if (s.dropped) text += format("  %lld accesses not counted", static_cast<long long>(s.dropped));
  return text;
}

std::string chain(const AccessSite& s) {
  std::string text;
  for (const std::string& frame : s.frames) text += (text.empty() ? "" : " < ") + frame;
  return text;
}

}  // namespace

std::string access_table(const AccessReport& report) {
  std::string text;
  for (const std::string& kernel : kernels_of(report)) {
    const int64_t launches = launches_of(report, kernel);
    text +=
        format("access  %s%s\n", kernel.c_str(), launches == 1 ? "" : format(", %lld launches", static_cast<long long>(launches)).c_str());
    text += "  access            bytes  requests  lanes  a request:               least  place\n";
    for (const AccessSite& s : report.sites) {
      if (s.kernel != kernel) continue;
      text += format("  %-16s  %5lld  %8lld  %5.1f  %8.2f %-10s  %8.2f  %s%s\n", s.what.c_str(), static_cast<long long>(s.bytes),
                     static_cast<long long>(s.requests), each(s.lanes, s.requests), each(s.pieces, s.requests),
                     s.is_shared() ? "wavefronts" : "sectors", each(s.least, s.requests), s.place().c_str(), remark(s).c_str());
    }
    text += "  buffer                                            bytes      read  (sectors)   written  (sectors): times its size\n";
    for (const AccessBuffer& b : report.buffers) {
      if (b.kernel != kernel) continue;
      const double whole = static_cast<double>(std::max<int64_t>(b.size * b.launches, 1));
      text +=
          format("  %-42s %12lld  %8.2f  (%7.2f)  %8.2f  (%7.2f)\n", b.name.c_str(), static_cast<long long>(b.size), b.times_read(),
                 32 * static_cast<double>(b.read_sectors) / whole, b.times_written(), 32 * static_cast<double>(b.written_sectors) / whole);
    }
  }
  return text;
}

void write_access(Json& json, const AccessReport& report) {
  json.key("kernels").open('[');
  for (const std::string& kernel : kernels_of(report)) {
    json.open('{').key("kernel").string(kernel).key("launches").whole(launches_of(report, kernel)).key("accesses").open('[');
    for (const AccessSite& s : report.sites) {
      if (s.kernel != kernel) continue;
      json.open('{').key("what").string(s.what).key("place").string(s.place()).key("chain").open('[');
      for (const std::string& frame : s.frames) json.string(frame);
      json.close(']').key("bytes").whole(s.bytes).key("requests").whole(s.requests).key("lanes").whole(s.lanes);
      json.key(s.is_shared() ? "wavefronts" : "sectors")
          .whole(s.pieces)
          .key("least")
          .whole(s.least)
          .key("dropped")
          .whole(s.dropped)
          .close('}');
    }
    json.close(']').key("buffers").open('[');
    for (const AccessBuffer& b : report.buffers) {
      if (b.kernel != kernel) continue;
      json.open('{')
          .key("name")
          .string(b.name)
          .key("bytes")
          .whole(b.size)
          .key("read")
          .whole(b.read)
          .key("read_sectors")
          .whole(b.read_sectors);
      json.key("written").whole(b.written).key("written_sectors").whole(b.written_sectors);
      json.key("times_read").number(b.times_read()).key("times_written").number(b.times_written()).close('}');
    }
    json.close(']').close('}');
  }
  json.close(']');
}

std::string to_lines(const AccessReport& report) {
  std::ostringstream out;
  for (const AccessSite& s : report.sites)
    out << "site\t" << s.kernel << '\t' << s.what << '\t' << chain(s) << '\t' << s.bytes << ' ' << s.launches << ' ' << s.requests << ' '
        << s.lanes << ' ' << s.pieces << ' ' << s.least << ' ' << s.dropped << '\n';
  for (const AccessBuffer& b : report.buffers)
    out << "buffer\t" << b.kernel << '\t' << b.name << "\t\t" << b.size << ' ' << b.launches << ' ' << b.read << ' ' << b.read_sectors
        << ' ' << b.written << ' ' << b.written_sectors << '\n';
  return out.str();
}

AccessReport from_lines(const std::string& text) {
  AccessReport report;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string kind, kernel, name, places;
    std::getline(fields, kind, '\t'), std::getline(fields, kernel, '\t'), std::getline(fields, name, '\t');
    std::getline(fields, places, '\t');
    if (kind == "site") {
      AccessSite s{kernel, name, {}};
      for (size_t at = 0, end; at <= places.size(); at = end + 3) {
        end = std::min(places.find(" < ", at), places.size());
        s.frames.push_back(places.substr(at, end - at));
      }
      if (fields >> s.bytes >> s.launches >> s.requests >> s.lanes >> s.pieces >> s.least >> s.dropped)
        report.sites.push_back(std::move(s));
    } else {
      AccessBuffer b{kernel, name};
      if (fields >> b.size >> b.launches >> b.read >> b.read_sectors >> b.written >> b.written_sectors)
        report.buffers.push_back(std::move(b));
    }
  }
  return report;
}

}  // namespace kw::tool
