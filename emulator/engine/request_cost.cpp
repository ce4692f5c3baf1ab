#include "emulator/engine/request_cost.h"

#include <algorithm>

namespace kwemu {
namespace {
constexpr u64 kSector = 32, kWord = 4, kBanks = 32;
}

Cost global_cost(std::vector<Lane>& lanes) {
  std::sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) { return a.address < b.address; });
  Cost cost{};
  u64 end = 0, next_sector = 0;  // what lies below has been counted
  for (const Lane& l : lanes) {
    const u64 from = std::max(l.address, end), to = l.address + l.bytes;
    if (to <= from) continue;
    cost.bytes += to - from;
    end = to;
    const u64 first = std::max(from / kSector, next_sector), last = (to - 1) / kSector;
    if (last + 1 > first) cost.pieces += last + 1 - first;
    next_sector = std::max(next_sector, last + 1);
  }
  cost.least = (cost.bytes + kSector - 1) / kSector;
  return cost;
}

Cost shared_cost(const std::vector<Lane>& lanes, const std::vector<u32>& numbers) {
  Cost cost{};
  std::vector<u64> words;
  const u64 bytes = lanes.empty() ? 0 : lanes[0].bytes;
  bool pairs = bytes > 4;  // of neighbours at one address
  for (size_t i = 1; i < lanes.size(); i++)
    if (numbers[i] == (numbers[i - 1] | 1) && lanes[i].address != lanes[i - 1].address) pairs = false;
  const u32 group = (bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8) * (pairs ? 2 : 1);
  for (u32 first = 0; first < 32; first += group) {
    words.clear();
    for (size_t i = 0; i < lanes.size(); i++)
      if (numbers[i] / group == first / group)
        for (u64 w = lanes[i].address / kWord; w <= (lanes[i].address + lanes[i].bytes - 1) / kWord; w++) words.push_back(w);
    if (words.empty()) continue;
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    u64 in_bank[kBanks] = {}, busiest = 0;
    for (u64 w : words) busiest = std::max(busiest, ++in_bank[w % kBanks]);
    cost.pieces += busiest;
    cost.least += (bytes + kBanks * kWord - 1) / (kBanks * kWord);  // 1, but for a copy of many bytes
    cost.bytes += words.size() * kWord;
  }
  return cost;
}
}  // namespace kwemu
