#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/device.h"

namespace spillway {

/// How much a program that touches pages tells of it.
enum class PagingWay {
  kFaults,      ///< nothing
  kAdvised,     ///< beforehand, that three quarters of near memory's worth of pages stay near
  kPrefetched,  ///< asks for each page some touches ahead, and sends it away behind
  kDiscarded    ///< that all content is dead before it is written anew
};

/// As bench files call them: "faults".
[[nodiscard]] std::string to_string(PagingWay way);
/// Nothing when no way is called `name`.
[[nodiscard]] std::optional<PagingWay> find_paging_way(const std::string& name);

/// True when passes of this way overwrite each page; else they read and write a word of each 64
/// bytes.
[[nodiscard]] constexpr bool overwrites(PagingWay way) { return way == PagingWay::kDiscarded; }

/// Pages of some memory, in the order in which a pass touches them.
struct TouchedPages {
  um::Range memory;
  um::Bytes page;
  std::vector<std::size_t> order;

  [[nodiscard]] um::Range at(std::size_t position) const {
    return memory.subspan(order[position] * page.count(), page.count());
  }
};

/// Touches the pages one after the other: pass number `pass`, which is what an overwriting pass
/// writes everywhere.
void touch_plainly(const TouchedPages& pages, PagingWay way, std::uint64_t pass);

/// Passes over managed memory.
///
/// Thread safety: none; the thread has been prepared by Device::prepare_kernel_thread().
class PagingPass {
 public:
  /// `pages` are of `space`, which has near memory for `near_pages` of them. Gives advice.
  PagingPass(um::ManagedSpace& space, TouchedPages pages, std::size_t near_pages, PagingWay way);

  /// As touch_plainly(), with what the way tells. Returns when all moves it began have ended.
  /// Throws: um::Error when a move failed.
  void run(std::uint64_t pass);

 private:
  void run_with_prefetches(std::uint64_t pass);
  void touch(std::size_t position, std::uint64_t pass);
  [[nodiscard]] bool is_touched_soon(std::size_t position) const;

  um::ManagedSpace& space_;
  TouchedPages pages_;
  PagingWay way_;
  std::size_t ahead_;  // touches between a prefetch and what it is for
  bool sends_away_;
};

}  // namespace spillway
