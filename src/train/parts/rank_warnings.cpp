#include "src/train/parts/rank_warnings.h"

#include <array>
#include <utility>

#include "src/ranks/rank_names.h"
#include "src/train/parts/first_rank.h"
#include "src/train/parts/gather_lists.h"

namespace spillway {

void RankWarnings::add(const std::string& sentence) {
  if (!ranks_.are_used()) return;
  if (is_first(ranks_.communicator)) {
    told_.insert(sentence);
  } else {
    untold_.push_back(sentence);
  }
}

std::vector<std::string> RankWarnings::gather() {
  if (!ranks_.are_used()) return {};
  const Communicator& communicator = *ranks_.communicator;
  const auto lists = gather_lists(*ranks_.communicator, std::exchange(untold_, {}));
  std::vector<std::string> sentences;
  if (!is_first(&communicator)) return sentences;
  for (std::size_t rank = 1; rank < lists.size(); ++rank) {
    const std::array<std::size_t, 1> who{rank};
    for (const std::string& sentence : lists[rank]) {
      if (!told_.insert(sentence).second) continue;
      sentences.push_back(rank_names(who, communicator.nodes()) + ": " + sentence);
    }
  }
  return sentences;
}

}  // namespace spillway
