// The part of a call that chooses its kernels, as a key.
#pragma once
#include <cstring>

#include "kw/core/bind.h"
#include "kw/core/error.h"

namespace kw {

// Word 0: op, which float attributes are not zero, present inputs. Word 1: device, present results, strided or not, alignment. Then
// dimensions, type variables (8 a word), int, bool and enumeration attributes. A variadic dimension reads -1: the number of rows may not
// choose.
struct ProblemKey {
  static constexpr int capacity = 2 + KW_MAX_SYMBOLS + KW_MAX_SYMBOLS / 8 + KW_MAX_ARGUMENTS;
  int32_t words = 0;
  uint64_t word[capacity];

  bool operator==(const ProblemKey& other) const {
    return words == other.words && std::memcmp(word, other.word, static_cast<size_t>(words) * sizeof word[0]) == 0;
  }
  uint64_t hash() const {
    uint64_t h = static_cast<uint64_t>(words);
    for (int32_t i = 0; i < words; i++) h = (h ^ word[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 32;
    return h;
  }
};

ProblemKey problem_key(const Bound& bound, int32_t device, int32_t alignment);

// Asks the room. Throws its error, with the op's name in front.
kw_choice choose_kernels(const Bound& bound, int32_t alignment, const kw_device_facts& gpu);
void fill_launches(const Bound& bound, const kw_device_facts& gpu, const kw_choice& choice, kw_plan& plan);

// True when there is nothing to compute: no output, saved result or written input has an element.
bool is_empty(const Bound& bound);

// Runs `body`; an error that it throws says which op it is about.
template <class F>
decltype(auto) named_after(const Op& op, F&& body) {
  try {
    return body();
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with(op.contract.name)) throw;
    throw Error(e.status(), op.contract.name + ": " + e.what());
  }
}

[[noreturn]] void throw_room_error(const Op& op, int32_t status, const kw_message& message);

}  // namespace kw
