#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Neighbouring pages [begin, end) of a block.
struct PageRange {
  DataId data{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Learned prefetch's model of each movable page: far, near, or moving. A page counts as near from
/// the issue of its prefetch until its offload has ended, or until shrink(): the memory's own
/// evictions are estimated.
class NearPages {
 public:
  NearPages(const TaskGraph& graph, const BlockSizes& block_sizes);

  /// Returns the bytes that count as near.
  [[nodiscard]] um::Bytes near() const { return near_ * page_; }
  /// False for blocks that are not allocated, freed or never touched; these are not moved.
  [[nodiscard]] bool has_content(DataId data) const { return at(data).has_content; }
  /// A number that changes when the block is released, or used while it moves: ends of moves from
  /// an earlier life are ignored.
  [[nodiscard]] std::uint32_t life(DataId data) const { return at(data).life; }

  /// Notes that the program uses the block: far pages come by page faults. Returns false if the
  /// block had content that was not all near.
  bool touch(DataId data);
  /// Estimates evictions after page faults brought more than `max` near: the least recently used or
  /// arrived blocks have left, except `kept`. Complexity: O(blocks) per evicted block.
  void shrink(um::Bytes max, DataId kept);
  /// Notes that the block was freed.
  void release(DataId data);

  /// True when pages of the range are leaving.
  [[nodiscard]] bool are_leaving(const PageRange& range) const;
  /// Returns the bytes that a prefetch of the range would add to near().
  [[nodiscard]] um::Bytes far(const PageRange& range) const;
  /// Notes that a prefetch of the range is issued. Returns the part from its first to its last far
  /// page; nullopt when all are near.
  std::optional<PageRange> bring(const PageRange& range);
  /// Notes that an offload of the range is issued. Returns the part from its first to its last near
  /// or arriving page; nullopt when there is none.
  std::optional<PageRange> send(const PageRange& range);
  /// Notes that a prefetch or an offload of the range has ended.
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
