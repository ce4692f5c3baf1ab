// SHA-256 (FIPS 180-4): names code in the caches, so two texts must never share a name.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kw {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  // Each piece is hashed with its length, so that {"ab","c"} and {"a","bc"} differ.
  Sha256& add(std::string_view text);
  Sha256& add(int64_t number);
  Digest finish();
  void update(const void* data, size_t bytes);  // the plain function

 private:
  void block(const uint8_t* data);
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t rest_[64];
  size_t rest_bytes_ = 0;
  uint64_t bytes_ = 0;
};

std::string hex(const Digest& digest);

}  // namespace kw
