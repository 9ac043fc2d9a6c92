#include "tests/src/cuda/emulated_gpu/card_races.h"

#include <algorithm>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {

std::uint32_t CardRaces::number(const Work& work) {
  const auto next = static_cast<std::uint32_t>(works_.size());
  const auto [at, is_new] = numbers_.emplace(std::pair{work.name, work.kernel}, next);
  if (is_new)
    works_.push_back({.name = work.name, .accesses = {}, .compute = {}, .kernel = work.kernel});
  return at->second;
}

bool CardRaces::is_before(const Moment& moment, const WorkNode& node) {
  return moment.time == 0 ||
         (moment.lane < node.clock.size() && moment.time <= node.clock[moment.lane]);
}

std::string CardRaces::note(const WorkNode& node, const void* begin, std::size_t size,
                            bool writes) {
  const Moment now{.lane = static_cast<std::uint32_t>(node.lane),
                   .time = node.clock[node.lane],
                   .work = number(*node.work)};
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  for (std::uintptr_t at = first / kRaceBytes; at <= (first + size - 1) / kRaceBytes; ++at) {
    Piece& piece = pieces_[at];
    if (!is_before(piece.write, node)) return work_name(works_[piece.write.work]) + " writes";
    if (writes) {
      for (const Moment& read : piece.reads) {
        if (!is_before(read, node)) return work_name(works_[read.work]) + " reads";
      }
      piece.write = now;
      piece.reads.clear();
      continue;
    }
    const auto same = std::ranges::find(piece.reads, now.lane, &Moment::lane);
    if (same == piece.reads.end()) {
      piece.reads.push_back(now);
    } else {
      *same = now;
    }
  }
  return {};
}

void CardRaces::forget(const void* begin, std::size_t size) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  for (std::uintptr_t at = first / kRaceBytes; at <= (first + size) / kRaceBytes; ++at) {
    pieces_.erase(at);
  }
}

}  // namespace spillway::emulated
