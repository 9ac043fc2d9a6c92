#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Neighbouring pages of a block: from `begin` up to, and without, `end`.
struct PageRange {
  DataId data{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What learned prefetch believes of each movable page: far, near, or on its way. A page counts as
/// near from the moment its prefetch is issued until its offload has ended, or until shrink(): the
/// memory's own evictions are guessed.
class NearPages {
 public:
  NearPages(const TaskGraph& graph, const BlockSizes& block_sizes);

  /// All that counts as near.
  [[nodiscard]] um::Bytes near() const { return near_ * page_; }
  /// Blocks without content are not moved: not allocated yet, freed, or never touched.
  [[nodiscard]] bool has_content(DataId data) const { return at(data).has_content; }
  /// Changes when the block is released, or used while it moves: the end of a move that was issued
  /// in an earlier life says nothing any more.
  [[nodiscard]] std::uint32_t life(DataId data) const { return at(data).life; }

  /// The program uses the block: its pages come by page faults where they are not near. Returns
  /// true unless they have content that was not near yet.
  bool touch(DataId data);
  /// Page faults took more than `most` near: so the memory has sent away what was used, or came,
  /// longest ago, but for `kept`. Complexity: O(blocks) for each that went.
  void shrink(um::Bytes max, DataId kept);
  /// The block was freed.
  void release(DataId data);

  /// True when pages of the range are on their way out.
  [[nodiscard]] bool are_leaving(const PageRange& range) const;
  /// What a prefetch of the range would add to near().
  [[nodiscard]] um::Bytes far(const PageRange& range) const;
  /// A prefetch of the range is issued: returns what of it is needed, from the first page that is
  /// far to the last; nothing when all are near.
  std::optional<PageRange> bring(const PageRange& range);
  /// An offload likewise; nothing when no page is near.
  std::optional<PageRange> send(const PageRange& range);
  /// A move of the range has ended.
  void arrive(const PageRange& range);
  void leave(const PageRange& range);

 private:
  enum class State : std::uint8_t { kFar, kComing, kNear, kLeaving };
  struct Block {
    std::vector<State> pages;
    bool has_content = false;
    std::uint32_t life = 0;
    std::uint64_t last_use = 0;  // touch or arrival
  };

  [[nodiscard]] const Block& at(DataId data) const {
    return blocks_[static_cast<std::size_t>(data)];
  }
  Block& at(DataId data) { return blocks_[static_cast<std::size_t>(data)]; }
  template <typename Moves>
  std::optional<PageRange> move(const PageRange& range, State to, const Moves& moves);

  um::Bytes page_;
  std::uint64_t near_ = 0;  // pages
  std::uint64_t uses_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace spillway::prefetch
