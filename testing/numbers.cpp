#include "testing/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace kw::test {

const FloatFormat& float_format(DType dtype) {
  static const FloatFormat f16{10, -14, 65504.0}, bf16{7, -126, 0x1.fep127}, f32{23, -126, 0x1.fffffep127},
      f64{52, -1022, 0x1.fffffffffffffp1023}, e4m3{3, -6, 448.0}, e5m2{2, -14, 57344.0};
  switch (dtype) {
    case KW_F16:
      return f16;
    case KW_BF16:
      return bf16;
    case KW_F32:
      return f32;
    case KW_FP8E4M3:
      return e4m3;
    case KW_FP8E5M2:
      return e5m2;
    default:
      return f64;
  }
}

double smallest(DType dtype) {
  const FloatFormat& f = float_format(dtype);
  return std::ldexp(1.0, f.min_exponent - f.mantissa);
}

double unit_roundoff(DType dtype) { return std::ldexp(1.0, -float_format(dtype).mantissa - 1); }

double spacing(DType dtype, double value) {
  const FloatFormat& f = float_format(dtype);
  double size = std::min(std::fabs(value), f.largest);
  int exponent = size == 0 ? f.min_exponent : std::max(std::ilogb(size), f.min_exponent);
  return std::ldexp(1.0, exponent - f.mantissa);
}

double overflow_from(DType dtype) {
  const FloatFormat& f = float_format(dtype);
  double half = spacing(dtype, f.largest) / 2;
  return dtype == KW_F64 ? std::numeric_limits<double>::infinity() : f.largest + half;
}

namespace {

// The small formats share IEEE's shape: sign, exponent with bias 1 - min_exponent, mantissa.
int bits_of(DType dtype) { return dtype_bytes(dtype) * 8; }

uint32_t encode(DType dtype, double value) {
  const FloatFormat& f = float_format(dtype);
  const uint32_t sign = std::signbit(value) ? 1u << (bits_of(dtype) - 1) : 0;
  const uint32_t all = (1u << (bits_of(dtype) - 1)) - 1;  // every bit but the sign
  const uint32_t infinity = all & ~((1u << f.mantissa) - 1);
  const bool has_infinity = dtype != KW_FP8E4M3;
  if (std::isnan(value)) return has_infinity ? infinity | 1u << (f.mantissa - 1) : all;
  double size = std::fabs(value);
  if (size >= overflow_from(dtype)) return sign | (has_infinity ? infinity : all);
  const double step = spacing(dtype, size);
  const auto count = static_cast<uint32_t>(std::nearbyint(size / step));  // exact: step is a power of two
  // Counting in steps from the start of the binade, a carry moves on into the exponent by itself.
  const int exponent = std::ilogb(step) + f.mantissa - f.min_exponent;  // 0 for subnormals and the first binade
  return sign | (count + (static_cast<uint32_t>(exponent) << f.mantissa));
}

double decode(DType dtype, uint32_t bits) {
  const FloatFormat& f = float_format(dtype);
  const uint32_t mantissa = bits & ((1u << f.mantissa) - 1);
  const uint32_t all = (1u << (bits_of(dtype) - 1)) - 1;
  const int exponent = static_cast<int>((bits & all) >> f.mantissa), top = static_cast<int>(all >> f.mantissa);
  const double sign = bits >> (bits_of(dtype) - 1) ? -1 : 1;
  if (dtype == KW_FP8E4M3) {
    if ((bits & all) == all) return std::nan("");
  } else if (exponent == top) {
    return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, f.min_exponent - f.mantissa);
  return sign * std::ldexp(mantissa + (1u << f.mantissa), f.min_exponent + exponent - 1 - f.mantissa);
}

template <class T>
T get(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void put(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}
template <class T>
void put_integer(void* p, double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min()), high = static_cast<double>(std::numeric_limits<T>::max());
  double r = std::nearbyint(value);
  put<T>(p, r >= high ? std::numeric_limits<T>::max() : r <= low ? std::numeric_limits<T>::min() : r == r ? static_cast<T>(r) : T{0});
}

}  // namespace

double load_number(DType dtype, const void* p) {
  switch (dtype) {
    case KW_F32:
      return get<float>(p);
    case KW_F64:
      return get<double>(p);
    case KW_I8:
      return get<int8_t>(p);
    case KW_U8:
      return get<uint8_t>(p);
    case KW_BOOL:
      return get<uint8_t>(p) != 0;
    case KW_I32:
      return get<int32_t>(p);
    case KW_I64:
      return static_cast<double>(get<int64_t>(p));
    case KW_F16:
    case KW_BF16:
      return decode(dtype, get<uint16_t>(p));
    default:
      return decode(dtype, get<uint8_t>(p));
  }
}

void store_number(DType dtype, void* p, double value) {
  switch (dtype) {
    case KW_F32:
      return put<float>(p, static_cast<float>(value));
    case KW_F64:
      return put<double>(p, value);
    case KW_I8:
      return put_integer<int8_t>(p, value);
    case KW_U8:
      return put_integer<uint8_t>(p, value);
    case KW_BOOL:
      return put<uint8_t>(p, value != 0);
    case KW_I32:
      return put_integer<int32_t>(p, value);
    case KW_I64:
      return put_integer<int64_t>(p, value);
    case KW_F16:
    case KW_BF16:
      return put<uint16_t>(p, static_cast<uint16_t>(encode(dtype, value)));
    default:
      return put<uint8_t>(p, static_cast<uint8_t>(encode(dtype, value)));
  }
}

void store_nan(DType dtype, void* p) {
  store_number(dtype, p, is_floating(dtype) ? std::nan("") : std::numeric_limits<double>::infinity());
}

}  // namespace kw::test
