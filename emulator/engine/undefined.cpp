// The compiler's callbacks for undefined behaviour: alignment, array index, shift, overflow. A callback's data begins with its place.
#include "emulator/engine/report.h"

using namespace kwemu;
namespace {
struct Place {
  const char* file;
  u32 line, column;
};
struct TypeName {
  u16 kind, info;
  char name[1];
};
using ll = long long;
}  // namespace
#define KWEMU_UB(callback, kind, format, ...)                 \
  KWEMU_EXPORT void kwemu_ubsan_##callback {                  \
    if (current) report(kind, KWEMU_PC, format, __VA_ARGS__); \
  }

KWEMU_EXPORT void kwemu_ubsan_type_mismatch_v1(void* data, u64 address) {
  struct Data {
    Place place;
    TypeName* type;
    u8 log_alignment, kind;
  }* d = (Data*)data;
  u64 alignment = 1ull << d->log_alignment;
  if (!current || !address || address % alignment == 0) return;  // a null pointer is seen by the access itself
  report("misaligned", KWEMU_PC, "the address %p is not a multiple of %llu, as type %s needs", (void*)address,
         (unsigned long long)alignment, d->type->name);
  stop_launch();
}
KWEMU_UB(out_of_bounds(void*, u64 i), "index-oob", "array index %lld", (ll)i)
KWEMU_UB(shift_out_of_bounds(void*, u64 a, u64 b), "shift", "%lld shifted by %lld", (ll)a, (ll)b)
KWEMU_UB(mul_overflow(void*, u64 a, u64 b), "int-overflow", "%lld * %lld", (ll)a, (ll)b)
KWEMU_UB(add_overflow(void*, u64 a, u64 b), "int-overflow", "%lld + %lld", (ll)a, (ll)b)
KWEMU_UB(sub_overflow(void*, u64 a, u64 b), "int-overflow", "%lld - %lld", (ll)a, (ll)b)
KWEMU_UB(negate_overflow(void*, u64 a), "int-overflow", "-(%lld)", (ll)a)
KWEMU_EXPORT void kwemu_ubsan_divrem_overflow(void*, u64 a, u64 b) {
  if (!current) return;
  report("div-by-zero", KWEMU_PC, "%lld / %lld", (ll)a, (ll)b);
  stop_launch();
}

KWEMU_EXPORT void kwemu_assert_failed(const char* expression, const char* file, int line) {
  report("assert", KWEMU_PC, "assertion `%s` failed (%s:%d)", expression, file, line);
  stop_launch();
}
KWEMU_EXPORT void kwemu_trap() {
  report("trap", KWEMU_PC, "__trap()");
  stop_launch();
}
KWEMU_EXPORT long long kwemu_clock() { return (ll)(engine.steps + engine.switches); }
