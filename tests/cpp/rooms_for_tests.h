// Rooms made of contracts alone; they live as long as the process, as the registry wants it.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "kw/core/room.h"

namespace kw::test {

struct TestRoom {
  std::string name;
  std::deque<kw_op_def> defs;
  std::vector<const kw_op_def*> ops;
  std::vector<kw_source> sources;
  kw_room room{};
};

inline void no_choice(const Problem&, const kw_device_facts&, Choice&) {}
inline void no_launch(const Call&, const kw_device_facts&, const kw_choice&, Launches&) {}
inline void no_work(const Call&) {}

template <auto cpu = no_work>
TestRoom& make_room(const std::string& name, const std::vector<const char*>& contracts, std::vector<kw_source> sources = {}) {
  static auto& rooms = *new std::deque<TestRoom>;
  TestRoom& r = rooms.emplace_back();
  r.name = name;
  for (const char* c : contracts) {
    r.defs.push_back(make_op<no_choice, no_launch, cpu, no_work>(c));
    r.ops.push_back(&r.defs.back());
  }
  r.sources = std::move(sources);
  r.sources.push_back({nullptr, nullptr});
  r.room = {sizeof(kw_room), KW_ABI_VERSION, r.name.c_str(), r.ops.data(), static_cast<int32_t>(r.ops.size()), r.sources.data()};
  return r;
}

}  // namespace kw::test
