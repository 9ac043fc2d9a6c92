#include "prefetch/planners/chain/chain_cuts.h"

#include <algorithm>
#include <cstddef>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Finds after which forward tasks the graph is a chain's.
class CutFinder {
 public:
  CutFinder(const std::vector<ForwardLife>& lives, Position forward_end)
      : lives_{lives}, crossing_(forward_end + 1), refusing_(forward_end + 1) {
    find_last_reads();
    for (const ForwardLife& life : lives_) {
      if (life.size > Bytes{}) add(crossing_, life.begin, life.last_forward);
      add(refusing_, life.begin, life.last_forward_write);
      if (life.size > Bytes{}) refuse_early_reads(life);
    }
  }

  // The stages, as the ends of their forward tasks.
  [[nodiscard]] std::vector<Position> ends() const {
    std::vector<Position> result;
    int crossing = 0;
    int refusing = 0;
    const auto forward_end = static_cast<Position>(crossing_.size() - 1);
    for (Position p = 0; p + 1 < forward_end; ++p) {
      crossing += crossing_[p];
      refusing += refusing_[p];
      if (crossing == 1 && refusing == 0) result.push_back(p + 1);
    }
    result.push_back(forward_end);
    return result;
  }

 private:
  // Counts one more for each cut from the one after `begin` up to, without, the one after `end`.
  static void add(std::vector<int>& steps, Position begin, Position end) {
    if (begin >= end) return;
    ++steps[begin];
    --steps[end];
  }

  // last_read_[p]: the last run that uses what was made after p. It falls with p.
  void find_last_reads() {
    last_read_.assign(crossing_.size(), 0);
    for (const ForwardLife& life : lives_) {
      if (life.begin == 0) continue;
      Position& last = last_read_[life.begin - 1];
      last = std::max(last, life.last);
    }
    for (std::size_t p = last_read_.size() - 1; p > 0; --p) {
      last_read_[p - 1] = std::max(last_read_[p - 1], last_read_[p]);
    }
  }

  // A block that is not a cut's output must not be read until all made after the cut has been.
  void refuse_early_reads(const ForwardLife& life) {
    const auto later =
        std::partition_point(last_read_.begin(), last_read_.end(),
                             [&](Position last) { return last >= life.first_backward; });
    add(refusing_, std::max(life.begin, life.last_forward),
        std::min(static_cast<Position>(later - last_read_.begin()),
                 static_cast<Position>(refusing_.size() - 1)));
  }

  const std::vector<ForwardLife>& lives_;
  std::vector<int> crossing_;  // by forward task: change of the tensors that live on after it
  std::vector<int> refusing_;  // likewise, of the reasons not to cut
  std::vector<Position> last_read_;
};

}  // namespace

std::vector<ForwardLife> find_forward_lives(const BlockSizes& block_sizes, Position forward_end,
                                            Position runs, const std::vector<Life>& lives) {
  std::vector<ForwardLife> result;
  for (const Life& life : lives) {
    if (life.begin() >= forward_end) continue;
    ForwardLife use{.size = block_sizes.size(life.data),
                    .begin = life.begin(),
                    .first_backward = runs,
                    .last = life.last()};
    for (const BlockAccess& access : life.accesses) {
      if (access.position >= forward_end) {
        use.first_backward = access.position;
        break;
      }
      use.last_forward = access.position;
      if (access.writes) use.last_forward_write = access.position;
    }
    result.push_back(use);
  }
  return result;
}

std::vector<Position> find_chain_cuts(const std::vector<ForwardLife>& lives, Position forward_end) {
  return CutFinder{lives, forward_end}.ends();
}

}  // namespace spillway::prefetch
