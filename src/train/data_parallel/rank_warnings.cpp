#include "src/train/data_parallel/rank_warnings.h"

#include <array>
#include <cstddef>
#include <utility>

#include "src/ranks/collectives.h"
#include "src/ranks/rank_names.h"

namespace spillway {

void RankWarnings::add(const std::string& sentence) {
  if (communicator_.rank() == 0) {
    told_.insert(sentence);
  } else {
    untold_.push_back(sentence);
  }
}

std::vector<std::string> RankWarnings::gather() {
  const auto lists = all_gather_lists(communicator_, std::exchange(untold_, {}));
  std::vector<std::string> sentences;
  if (communicator_.rank() != 0) return sentences;
  for (std::size_t rank = 1; rank < lists.size(); ++rank) {
    const std::array<std::size_t, 1> who{rank};
    for (const std::string& sentence : lists[rank]) {
      if (!told_.insert(sentence).second) continue;
      sentences.push_back(rank_names(who, communicator_.nodes()) + ": " + sentence);
    }
  }
  return sentences;
}

}  // namespace spillway
