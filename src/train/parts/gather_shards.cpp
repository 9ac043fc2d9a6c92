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
  std::vector<std::span<std::byte>> pieces;
  pieces.reserve(communicator.ranks());
  for (std::size_t rank = 0; rank < communicator.ranks(); ++rank) pieces.push_back(of_rank(rank));
  all_gather(communicator, pieces);
}

}  // namespace spillway
