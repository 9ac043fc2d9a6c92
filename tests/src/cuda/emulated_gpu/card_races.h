#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card_work.h"

namespace spillway::emulated {

/// Finds accesses of the same bytes, at least one of them a write, that neither streams nor events
/// nor waits of the host order: by vector clocks, whatever order the work was computed in.
///
/// Bytes are told apart in pieces of kRaceBytes. Accesses of the host are not seen.
class CardRaces {
 public:
  static constexpr std::size_t kRaceBytes = 64;

  /// Notes an access of the running work. Returns the name of unordered work, or an empty string.
  [[nodiscard]] std::string note(const WorkNode& node, const void* begin, std::size_t size,
                                 bool writes);
  /// Forgets the accesses of a block that is freed.
  void forget(const void* begin, std::size_t size);

 private:
  struct Moment {
    std::uint32_t lane = 0;
    std::uint32_t time = 0;  // 0: never
    std::uint32_t work = 0;  // in works_
  };
  struct Piece {
    Moment write;
    std::vector<Moment> reads;  // since the write; one for each lane
  };

  [[nodiscard]] std::uint32_t number(const Work& work);
  [[nodiscard]] static bool is_before(const Moment& moment, const WorkNode& node);

  std::unordered_map<std::uintptr_t, Piece> pieces_;  // by address / kRaceBytes
  std::vector<Work> works_;                           // a name or a kernel each
  std::map<std::pair<std::string, const void*>, std::uint32_t> numbers_;
};

}  // namespace spillway::emulated
