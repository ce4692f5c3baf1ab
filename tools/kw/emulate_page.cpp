#include "tools/kw/emulate_page.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace kw::tool {
namespace {

constexpr const char* style = R"(<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #c62828; --warn: #b26a00; --formal: #546e7a; --good: #2e7d32; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font: 600 .9rem monospace; }
p.sub { margin-top: 0; opacity: .75; } code, pre, td.code { font: 13px/1.5 ui-monospace, monospace; }
table { border-collapse: collapse; } a { color: inherit; }
table.plain td, table.plain th { padding: .15rem .9rem .15rem 0; text-align: right; border-bottom: 1px solid var(--line); }
table.plain td.text, table.plain th.text { text-align: left; }
div.finding { border-left: 4px solid; padding: .3rem .8rem; margin: .6rem 0; background: var(--soft); }
div.finding b { margin-right: .6rem; } div.finding p { margin: .2rem 0; }
.error { border-color: var(--bad) !important; } .error > b, .error > a > b { color: var(--bad); }
.warning { border-color: var(--warn) !important; } .warning > b { color: var(--warn); }
.formal { border-color: var(--formal) !important; } .formal > b { color: var(--formal); }
.good { color: var(--good); } .over { color: var(--warn); font-weight: 600; }
table.source { width: 100%; } table.source td { vertical-align: top; padding: 0 .6rem 0 0; }
table.source td.number { text-align: right; opacity: .5; width: 3rem; user-select: none; font-size: 13px; }
table.plain { margin-bottom: .8rem; }
table.source td.cost { text-align: right; white-space: pre; width: 17rem; font: 12px/1.6 ui-monospace, monospace; }
td.code { white-space: pre-wrap; } tr.marked td { background: var(--soft); } summary { cursor: pointer; opacity: .6; font-size: .85rem; }
</style>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Place {
  std::string file;
  size_t line = 0;  // 0: no place
};
Place place_of(const std::string& text) {  // "a.cuh:20 < b.cu:7" -> a.cuh, 20
  const std::string first = text.substr(0, text.find_first_of(" ,;"));
  const size_t colon = first.rfind(':');
  if (colon == first.npos || colon + 1 == first.size()) return {};
  if (first.find_first_not_of("0123456789", colon + 1) != first.npos || first.size() > colon + 9) return {};
  return {first.substr(0, colon), static_cast<size_t>(std::stoul(first.substr(colon + 1)))};
}
// Places that a sentence names, "written by ... at a.cu:18 with no ordering between".
std::vector<Place> places_in(const std::string& sentence) {
  std::vector<Place> found;
  for (size_t at = 0; (at = sentence.find(" at ", at)) != sentence.npos;)
    if (const Place p = place_of(sentence.substr(at += 4)); p.line) found.push_back(p);
  return found;
}

struct Marks {  // of one line
  std::vector<size_t> findings, other_sides;
  std::vector<const test::AccessSite*> sites;
};
using Sources = std::map<std::string, std::map<size_t, Marks>>;

double each(int64_t of, int64_t requests) { return static_cast<double>(of) / static_cast<double>(std::max<int64_t>(requests, 1)); }

std::string cost(const test::AccessSite& s) {
  std::string chain;
  for (const std::string& frame : s.frames) chain += (chain.empty() ? "" : " < ") + frame;
  const std::string more =
      format("%s in %s: %lld requests, %.1f lanes and %lld bytes a lane; %s", s.what.c_str(), s.kernel.c_str(),
             static_cast<long long>(s.requests), each(s.lanes, s.requests), static_cast<long long>(s.bytes), chain.c_str());
  return format(R"(<span class="%s" title="%s">%s %.4g (least %.4g)</span>)", s.pieces > s.least ? "over" : "good", escaped(more).c_str(),
                s.what.c_str(), each(s.pieces, s.requests), each(s.least, s.requests));
}

std::string shown(const std::string& span) { return span.substr(span.find('>')); }

std::string finding_block(const Finding& f, size_t number, bool whole) {
  std::string text =
      format(R"(<div class="finding %s"><b>%zu. %s: %s</b>)", f.severity.c_str(), number, f.severity.c_str(), f.kind.c_str());
  if (whole) {
    if (const Place p = place_of(f.at); p.line)
      text += format(R"(<a href="#%s-%zu">%s</a>)", escaped(p.file).c_str(), p.line, escaped(f.at).c_str());
    if (!f.kernel.empty()) text += " in <code>" + escaped(f.kernel) + "</code>";
    if (!f.thread.empty()) text += ", " + escaped(f.thread);
  }
  text += "<p>" + escaped(f.what) + "</p>";
  if (!f.help.empty()) text += "<p><i>" + escaped(f.help) + "</i></p>";
  return text + "</div>\n";
}

std::string access_section(const test::AccessReport& report) {
  std::set<std::string> done;
  std::string text =
      "<h2>What the kernels' accesses cost</h2>\n<p>Sectors are 32 bytes of global memory, wavefronts turns of shared memory's"
      " banks: what a warp's request takes, and the least that its bytes could take.</p>\n";
  for (const test::AccessSite& first : report.sites) {
    if (!done.insert(first.kernel).second) continue;
    text += "<h3>" + escaped(first.kernel) + (first.launches > 1 ? format(", %lld launches", static_cast<long long>(first.launches)) : "") +
            "</h3>\n<table class=\"plain\"><tr><th class=\"text\">access<th class=\"text\">place<th>bytes a lane<th>requests<th>lanes"
            "<th>a request takes<th>least</tr>\n";
    for (const test::AccessSite& s : report.sites) {
      if (s.kernel != first.kernel) continue;
      const Place p = place_of(s.place());
      text += format(
          R"(<tr><td class="text">%s<td class="text"><a href="#%s-%zu">%s</a><td>%lld<td>%lld<td>%.1f<td class="%s">%.2f %s<td>%.2f</tr>)",
          s.what.c_str(), escaped(p.file).c_str(), p.line, escaped(s.place()).c_str(), static_cast<long long>(s.bytes),
          static_cast<long long>(s.requests), each(s.lanes, s.requests), s.pieces > s.least ? "over" : "good", each(s.pieces, s.requests),
          s.is_shared() ? "wavefronts" : "sectors", each(s.least, s.requests));
      text += "\n";
    }
    text += "</table>\n<table class=\"plain\"><tr><th class=\"text\">buffer<th>bytes<th>times read<th>times written</tr>\n";
    for (const test::AccessBuffer& b : report.buffers)
      if (b.kernel == first.kernel)
        text += format("<tr><td class=\"text\">%s<td>%lld<td>%.2f<td>%.2f</tr>\n", escaped(b.name).c_str(), static_cast<long long>(b.size),
                       b.times_read(), b.times_written());
    text += "</table>\n";
  }
  return text;
}

std::string source_section(const std::string& file, const std::map<size_t, Marks>& marks, const std::vector<Finding>& findings) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) return "";
  constexpr size_t around = 12;  // unmarked lines that stay open beside a marked one
  const auto near = [&](size_t n) {
    const auto next = marks.lower_bound(n > around ? n - around : 1);
    return next != marks.end() && next->first <= n + around;
  };
  std::string text = "<h2>" + escaped(file) + "</h2>\n";
  bool open = false, folded = false;
  const auto close = [&] {
    if (open) text += folded ? "</table></details>\n" : "</table>\n";
    open = false;
  };
  for (size_t n = 1; n <= lines.size(); n++) {
    if (const bool fold = !near(n); !open || fold != folded) {
      close();
      size_t end = n;
      while (end < lines.size() && near(end + 1) == near(n)) end++;
      folded = fold, open = true;
      if (fold) text += format("<details><summary>lines %zu to %zu</summary>", n, end);
      text += "<table class=\"source\">\n";
    }
    const auto found = marks.find(n);
    const Marks none, &m = found == marks.end() ? none : found->second;
    text += format(R"(<tr id="%s-%zu"%s><td class="number">%zu<td class="cost">)", escaped(file).c_str(), n,
                   found == marks.end() ? "" : " class=\"marked\"", n);
    std::vector<std::string> costs;  // kernels that do the same here are told once
    for (const test::AccessSite* s : m.sites)
      if (const auto c = cost(*s); std::none_of(costs.begin(), costs.end(), [&](auto& k) { return shown(k) == shown(c); }))
        costs.push_back(c);
    for (size_t i = 0; i < costs.size(); i++) text += (i ? "\n" : "") + costs[i];
    text += "<td class=\"code\">" + escaped(lines[n - 1]) + "</tr>\n";
    for (size_t i : m.findings) text += "<tr><td><td><td>" + finding_block(findings[i], i + 1, false) + "</tr>\n";
    for (size_t i : m.other_sides)
      text += format("<tr><td><td><td><div class=\"finding %s\"><b>%zu.</b> the other side: %s</div></tr>\n", findings[i].severity.c_str(),
                     i + 1, findings[i].kind.c_str());
  }
  close();
  return text;
}

}  // namespace

Finding finding_of_line(const std::string& json) {
  const auto field = [&](const std::string& name) {
    const std::string key = "\"" + name + "\": \"";
    std::string value;
    const size_t at = json.find(key);
    if (at == json.npos) return value;
    for (size_t i = at + key.size(); i < json.size() && json[i] != '"'; i++) {
      if (json[i] != '\\') {
        value += json[i];
      } else if (json[++i] == 'u') {  // a control character
        value += ' ';
        i += 4;
      } else {
        value += json[i];
      }
    }
    return value;
  };
  return {field("severity"), field("kind"), field("kernel"), field("thread"), field("at"), field("what"), field("help")};
}

std::string emulate_page(const Emulated& run) {
  Sources sources;
  for (size_t i = 0; i < run.findings.size(); i++) {
    if (const Place p = place_of(run.findings[i].at); p.line) sources[p.file][p.line].findings.push_back(i);
    for (const Place& p : places_in(run.findings[i].what))
      if (Marks& m = sources[p.file][p.line]; m.findings.empty() || m.findings.back() != i) m.other_sides.push_back(i);
  }
  for (const test::AccessSite& s : run.access.sites)
    if (const Place p = place_of(s.place()); p.line) sources[p.file][p.line].sites.push_back(&s);

  const auto count = [&](const char* severity) {
    return std::count_if(run.findings.begin(), run.findings.end(), [&](const Finding& f) { return f.severity == severity; });
  };
  std::string text =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>" + escaped(run.program) + ": kw emulate</title>\n" + style;
  text += "<h1>" + escaped(run.program) + "</h1>\n<p class=\"sub\"><code>" + escaped(run.command) + "</code><br>";
  text += format("%td errors, %td warnings, %td formal; the program's exit status was %d%s</p>\n", count("error"), count("warning"),
                 count("formal"), run.exit_status, escaped(run.remark).c_str());
  if (!run.findings.empty()) text += "<h2>Findings</h2>\n";
  for (size_t i = 0; i < run.findings.size(); i++) text += finding_block(run.findings[i], i + 1, true);
  for (const auto& [file, marks] : sources) text += source_section(file, marks, run.findings);
  if (!run.access.sites.empty()) text += access_section(run.access);
  return text + "</html>\n";
}

}  // namespace kw::tool
