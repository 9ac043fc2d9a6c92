#include "src/train/parts/gather_shards.h"

#include <vector>

#include "src/ranks/shard_tree.h"
#include "um/error.h"

namespace spillway {

void gather_shards(Communicator& communicator, std::size_t shards, std::size_t each,
                   std::span<std::byte> all) {
  um::expects(all.size() == shards * each, "room for what all shards give");
  const auto of_rank = [&](std::size_t rank) {
    const ShardRange range = shards_of_rank(shards, communicator.ranks(), rank);
    return all.subspan(range.first * each, range.count() * each);
  };
  const std::size_t ranks = communicator.ranks();
  std::vector<std::span<const std::byte>> sends(ranks, of_rank(communicator.rank()));
  std::vector<std::span<std::byte>> receives;
  receives.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) receives.push_back(of_rank(rank));
  sends[communicator.rank()] = {};  // it is there
  receives[communicator.rank()] = {};
  communicator.exchange(sends, receives);
}

}  // namespace spillway
