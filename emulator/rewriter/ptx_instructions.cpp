#include "emulator/rewriter/ptx_translator.h"

namespace kwemu::ptx {
namespace {
// Operations whose operands and result all have the instruction's type; the number of operands behind the result.
const std::map<std::string, int> kPlain = {{"add", 2},  {"sub", 2}, {"div", 2}, {"rem", 2},  {"min", 2},  {"max", 2},  {"and", 2},
                                           {"or", 2},   {"xor", 2}, {"not", 1}, {"neg", 1},  {"abs", 1},  {"sqrt", 1}, {"rsqrt", 1},
                                           {"rcp", 1},  {"ex2", 1}, {"lg2", 1}, {"sin", 1},  {"cos", 1},  {"tanh", 1}, {"copysign", 2},
                                           {"brev", 1}, {"fma", 3}, {"mov", 1}, {"cvta", 1}, {"cnot", 1}, {"prmt", 3}, {"sad", 3}};
}  // namespace

bool Translator::instruction(const Words& p, const Words& o) {
  const std::string& op = p[0];
  const std::string type = type_of(p);
  const bool shared = has(p, "shared") || has(p, "shared::cta");
  if (op == "ld" || op == "ldu" || op == "st") return memory(p, o, type, shared);
  if (op == "mov" && type == "unsigned long long" && o.size() == 2 && o[1][0] == '{') return pack(o, "unsigned");
  if (op == "mov" && type == "unsigned" && o.size() == 2 && o[1][0] == '{') return pack(o, "unsigned short");
  if (op == "mov" && o.size() == 2 && o[0][0] == '{') return unpack(o, type == "unsigned" ? "unsigned short" : "unsigned");
  if (op == "cvta" && (shared || has(p, "to"))) {
    if (o.size() != 2) return false;
    std::string v = value(o[1], "unsigned long long");
    bool to_shared = shared && has(p, "to");
    put(o[0], "unsigned long long",
        !shared     ? v
        : to_shared ? "kwemu_shared_offset((void*)" + v + ")"
                    : "(unsigned long long)kwemu_shared_address(" + v + ")");
    return true;
  }
  if (auto plain = kPlain.find(op); plain != kPlain.end() && !type.empty()) {
    if (o.size() != (size_t)plain->second + 1) return false;
    std::string call = "kwemu_ptx_" + op + "<" + type + ">(";
    for (size_t i = 1; i < o.size(); i++) call += (i > 1 ? ", " : "") + value(o[i], type);
    put(o[0], type, has(p, "sat") ? "kwemu_ptx_sat(" + call + "))" : call + ")");
    return true;
  }
  if (op == "mul" || op == "mad") {
    const bool wide = has(p, "wide"), high = has(p, "hi");
    const std::string result = wide ? "kwemu_wide<" + type + ">" : type;
    std::string v = std::string("kwemu_ptx_mul_") +
                    (wide   ? "wide"
                     : high ? "hi"
                            : "lo") +
                    "<" + type + ">(" + value(o[1], type) + ", " + value(o[2], type) + ")";
    if (op == "mad") v = "kwemu_ptx_add<" + result + ">(" + v + ", " + value(o[3], result) + ")";
    return type.empty() ? false : (put(o[0], result, v), true);
  }
  if (op == "shl" || op == "shr")
    return put(o[0], type, "kwemu_ptx_" + op + "<" + type + ">(" + value(o[1], type) + ", " + value(o[2], "unsigned") + ")"), true;
  if (op == "shf")
    return put(o[0], type,
               std::string("__funnelshift_") + (has(p, "l") ? "l" : "r") + (has(p, "clamp") ? "c(" : "(") + value(o[1], type) + ", " +
                   value(o[2], type) + ", " + value(o[3], type) + ")"),
           true;
  if (op == "popc" || op == "clz") return put(o[0], "unsigned", "kwemu_ptx_" + op + "<" + type + ">(" + value(o[1], type) + ")"), true;
  if (op == "bfe" || op == "bfi") {
    std::string call = "kwemu_ptx_" + op + "<" + type + ">(";
    for (size_t i = 1; i < o.size(); i++) call += (i > 1 ? ", " : "") + value(o[i], i + 2 >= o.size() ? "unsigned" : type);
    return put(o[0], type, call + ")"), true;
  }
  if (op == "lop3")
    return put(o[0], "unsigned",
               "kwemu_ptx_lop3(" + value(o[1], type) + ", " + value(o[2], type) + ", " + value(o[3], type) + ", " +
                   value(o[4], "unsigned") + ")"),
           true;
  if (op == "dp4a") {
    const std::string t = type_of(p);
    return put(o[0], t, "__dp4a(" + value(o[1], t) + ", " + value(o[2], t) + ", " + value(o[3], t) + ")"), true;
  }
  if (op == "selp") return put(o[0], type, value(o[3], "bool") + " ? " + value(o[1], type) + " : " + value(o[2], type)), true;
  if (op == "setp" || op == "set") return compare(p, o, type);
  if (op == "cvt") return convert(p, o);
  return threads(p, o, type, shared);
}

bool Translator::memory(const Words& p, const Words& o, const std::string& type, bool shared) {
  const bool load = p[0] != "st";
  if (o.size() != 2 || type.empty()) return false;
  const std::string count = has(p, "v4") ? "4" : has(p, "v2") ? "2" : "1";
  const bool strong = has(p, "volatile") || has(p, "relaxed") || has(p, "acquire") || has(p, "release");
  const std::string what = "kwemu_vec<" + type + ", " + count + ">";
  const std::string& place = load ? o[1] : o[0];
  Words elements = {load ? o[0] : o[1]};
  if (count != "1") {
    if (elements[0].size() < 3 || elements[0][0] != '{') return false;
    elements = split(elements[0].substr(1, elements[0].size() - 2), ',');
    if (elements.size() != (size_t)atoi(count.c_str())) return false;
  }
  out_ += "{ ";
  if (load) {
    out_ += (strong ? "auto v = kwemu_load_strong<" : "auto v = *(const ") + what + (strong ? ">(" : "*)") + address(place, shared) +
            (strong ? "); " : "; ");
    if (has(p, "acquire")) out_ += "kwemu_fence(); ";
    for (size_t i = 0; i < elements.size(); i++) put(elements[i], type, "v.e[" + std::to_string(i) + "]");
  } else {
    if (has(p, "release")) out_ += "kwemu_fence(); ";
    out_ += what + " v = {{";
    for (size_t i = 0; i < elements.size(); i++) out_ += (i ? ", " : "") + value(elements[i], type);
    out_ += "}}; " +
            (strong ? "kwemu_store_strong(" + address(place, shared) + ", v); " : "*(" + what + "*)" + address(place, shared) + " = v; ");
  }
  out_ += "} ";
  return true;
}
bool Translator::pack(const Words& o, const std::string& part) {
  Words e = split(o[1].substr(1, o[1].size() - 2), ',');
  const int bits = part == "unsigned" ? 32 : 16;
  if (e.size() != 2) return false;
  put(o[0], bits == 32 ? "unsigned long long" : "unsigned",
      "(unsigned long long)" + value(e[0], part) + " | (unsigned long long)" + value(e[1], part) + " << " + std::to_string(bits));
  return true;
}
bool Translator::unpack(const Words& o, const std::string& part) {
  Words e = split(o[0].substr(1, o[0].size() - 2), ',');
  if (e.size() != 2) return false;
  out_ += "{ unsigned long long v = " + value(o[1], "unsigned long long") + "; ";
  put(e[0], part, "(" + part + ")v");
  put(e[1], part, "(" + part + ")(v >> " + (part == "unsigned" ? "32" : "16") + ")");
  out_ += "} ";
  return true;
}
bool Translator::compare(const Words& p, const Words& o, const std::string& type) {
  static const std::map<std::string, const char*> signs = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},  {"le", "<="}, {"gt", ">"},
                                                           {"ge", ">="}, {"lo", "<"},  {"ls", "<="}, {"hi", ">"},  {"hs", ">="}};
  auto sign = p.size() > 1 ? signs.find(p[1]) : signs.end();
  if (sign == signs.end() || o.size() < 3 || type.empty()) return false;
  std::string v = value(o[1], type) + " " + sign->second + " " + value(o[2], type);
  if (o.size() > 3) {
    if (!has(p, "and") && !has(p, "or")) return false;
    v = "(" + v + ") " + (has(p, "and") ? "&& " : "|| ") + value(o[3], "bool");
  }
  Words results = split(o[0], '|');
  put(results[0], p[0] == "set" ? "int" : "bool", p[0] == "set" ? "-(int)(" + v + ")" : v);
  if (results.size() > 1) put(results[1], "bool", "!(" + v + ")");
  return true;
}
bool Translator::convert(const Words& p, const Words& o) {
  const std::string to = type_of(p, 1), from = type_of(p);
  const std::string mode = has(p, "rzi") || has(p, "rz")   ? "kwemu_rz"
                           : has(p, "rmi") || has(p, "rm") ? "kwemu_rd"
                           : has(p, "rpi") || has(p, "rp") ? "kwemu_ru"
                                                           : "kwemu_rn";
  if (to.empty() || from.empty()) return false;
  if (o.size() == 3)
    put(o[0], "unsigned", "kwemu_ptx_pack<" + to + ">(" + value(o[1], from) + ", " + value(o[2], from) + ")");
  else
    put(o[0], to,
        "kwemu_ptx_cvt<" + to + ", " + from + ">(" + value(o[1], from) + ", " + mode + ", " + (has(p, "sat") ? "true" : "false") + ")");
  return true;
}

// What threads do together, and copies.
bool Translator::threads(const Words& p, const Words& o, const std::string& type, bool shared) {
  const std::string& op = p[0];
  if (op == "bar" || op == "barrier") {
    if (has(p, "cluster")) return out_ += has(p, "arrive") ? "" : "kwemu_cluster_barrier(); ", true;
    if (has(p, "warp")) return out_ += "__syncwarp(" + value(o[0], "unsigned") + "); ", true;
    return o.size() == 1 && has(p, "sync") && o[0] == "0" ? (out_ += "kwemu_block_barrier(); ", true) : false;
  }
  if (op == "membar" || op == "fence") return out_ += has(p, "proxy") ? "kwemu_fence_proxy(); " : "kwemu_fence(); ", true;
  if (op == "prefetch" || op == "prefetchu" || op == "discard" || op == "applypriority" || op == "griddepcontrol" || op == "nanosleep" ||
      op == "pmevent")
    return true;
  if (op == "trap") return out_ += "kwemu_trap(); ", true;
  if (op == "exit") return out_ += "return; ", true;
  if (op == "bra") {
    labels_.insert(identifier(o[0]));
    return out_ += "goto " + identifier(o[0]) + "; ", true;
  }
  if (op == "activemask") return put(o[0], "unsigned", "kwemu_active_mask()"), true;
  if (op == "shfl") {
    Words results = split(o[0], '|');
    const char* mode = has(p, "up") ? "0" : has(p, "down") ? "1" : has(p, "bfly") ? "2" : "3";
    out_ += "{ bool inside; unsigned v = kwemu_ptx_shfl(" + std::string(mode) + ", " + value(o[1], "unsigned") + ", " +
            value(o[2], "unsigned") + ", " + value(o[3], "unsigned") + ", " + (o.size() > 4 ? value(o[4], "unsigned") : "~0u") +
            ", inside); ";
    put(results[0], "unsigned", "v");
    if (results.size() > 1) put(results[1], "bool", "inside");
    return out_ += "} ", true;
  }
  if (op == "vote") {
    const std::string mask = o.size() > 2 ? value(o[2], "unsigned") : "~0u", v = "(" + mask + ", " + value(o[1], "bool") + ")";
    if (has(p, "ballot")) return put(o[0], "unsigned", "__ballot_sync" + v), true;
    if (has(p, "any") || has(p, "all")) return put(o[0], "bool", std::string(has(p, "any") ? "__any_sync" : "__all_sync") + v), true;
    return false;
  }
  if (op == "red" || op == "atom") return atomic(p, o, type, shared);
  if (op == "cp" && has(p, "async") && !has(p, "bulk") && !has(p, "mbarrier")) {
    if (has(p, "commit_group")) return out_ += "kwemu_cp_async_commit(); ", true;
    if (has(p, "wait_group")) return out_ += "kwemu_cp_async_wait(" + value(o[0], "unsigned") + "); ", true;
    if (has(p, "wait_all")) return out_ += "kwemu_cp_async_commit(); kwemu_cp_async_wait(0); ", true;
    if (o.size() < 3) return false;
    const std::string bytes = value(o[2], "unsigned");
    return out_ += "kwemu_cp_async(" + address(o[0], true) + ", " + address(o[1], false) + ", " + bytes + ", " +
                   (o.size() > 3 && o[3][0] != '[' ? value(o[3], "unsigned") : bytes) + "); ",
           true;
  }
  if (op == "ldmatrix") {
    Words e = split(o[0][0] == '{' ? o[0].substr(1, o[0].size() - 2) : o[0], ',');
    out_ += "{ unsigned v[4]; kwemu_ldmatrix(" + address(o[1], true) + ", " + std::to_string(e.size()) + ", " +
            (has(p, "trans") ? "true" : "false") + ", v); ";
    for (size_t i = 0; i < e.size(); i++) put(e[i], "unsigned", "v[" + std::to_string(i) + "]");
    return has(p, "b16") && e.size() <= 4 ? (out_ += "} ", true) : false;
  }
  if (op == "mma") return matrix_product(p, o);
  return false;
}
bool Translator::atomic(const Words& p, const Words& o, const std::string& type, bool shared) {
  static const std::map<std::string, const char*> kinds = {
      {"u32", "unsigned"},           {"b32", "unsigned"},  {"s32", "int"},   {"u64", "unsigned long long"},
      {"b64", "unsigned long long"}, {"s64", "long long"}, {"f32", "float"}, {"f64", "double"}};
  static const std::map<std::string, const char*> names = {
      {"add", "atomicAdd"}, {"min", "atomicMin"}, {"max", "atomicMax"}, {"exch", "atomicExch"}, {"and", "atomicAnd"},
      {"or", "atomicOr"},   {"xor", "atomicXor"}, {"inc", "atomicInc"}, {"dec", "atomicDec"},   {"cas", "atomicCAS"}};
  const char* name = nullptr;
  for (size_t i = 1; i < p.size(); i++)
    if (auto n = names.find(p[i]); n != names.end()) name = n->second;
  if (!name || !kinds.count(p.back()) || has(p, "v2") || has(p, "v4")) return false;
  const size_t at = p[0] == "atom";
  std::string call = std::string(name) + "((" + type + "*)" + address(o[at], shared);
  for (size_t i = at + 1; i < o.size(); i++) call += ", " + value(o[i], type);
  if (has(p, "release") || has(p, "acq_rel")) out_ += "kwemu_fence(); ";
  if (at)
    put(o[0], type, call + ")");
  else
    out_ += call + "); ";
  if (has(p, "acquire") || has(p, "acq_rel")) out_ += "kwemu_fence(); ";
  return true;
}
bool Translator::matrix_product(const Words& p, const Words& o) {  // mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  if (p.size() < 10 || o.size() != 4 || p[4] != "row" || p[5] != "col") return false;
  const std::string &shape = p[3], &d = p[6], &a = p[7], &b = p[8], &c = p[9];
  const bool half = (shape == "m16n8k16" || shape == "m16n8k8") && a == b && (a == "f16" || a == "bf16") && d == c &&
                    (d == "f32" || (d == "f16" && a == "f16"));
  const bool tf32 = (shape == "m16n8k8" || shape == "m16n8k4") && a == "tf32" && b == "tf32" && d == "f32" && c == "f32";
  if (!half && !tf32) return false;
  out_ += "{ ";
  const char* names[] = {"d", "a", "b", "c"};
  Words elements[4];
  for (int i = 0; i < 4; i++) elements[i] = split(o[i].substr(1, o[i].size() - 2), ',');
  for (int i = 1; i < 4; i++) {
    out_ += std::string("unsigned ") + names[i] + "[] = {";
    for (size_t k = 0; k < elements[i].size(); k++) out_ += (k ? ", " : "") + value(elements[i][k], "unsigned");
    out_ += "}; ";
  }
  const std::string k = shape.substr(shape.find('k') + 1);
  out_ += "unsigned d[4]; kwemu_mma(" + k + ", " +
          (a == "f16"    ? "0"
           : a == "bf16" ? "1"
                         : "2") +
          ", " + (d == "f32" ? "true" : "false") + ", a, b, c, d); ";
  for (size_t i = 0; i < elements[0].size(); i++) put(elements[0][i], "unsigned", "d[" + std::to_string(i) + "]");
  return out_ += "} ", true;
}
}  // namespace kwemu::ptx
