#include "src/execute/shared_state.h"

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "prefetch/block_sizes.h"

namespace spillway {

using prefetch::StatePlaces;
using um::Bytes;

std::vector<StatePlaces> share_state(std::span<const prefetch::TaskGraph* const> graphs,
                                     Bytes page) {
  std::vector<StatePlaces> places;
  std::unordered_map<std::string_view, Bytes> by_name;
  Bytes extent;
  for (const prefetch::TaskGraph* const graph : graphs) {
    const prefetch::BlockSizes block_sizes{*graph, page};
    StatePlaces& own = places.emplace_back();
    own.offsets.resize(graph->data.size());
    for (std::size_t i = 0; i < graph->data.size(); ++i) {
      const prefetch::DataBlock& block = graph->data[i];
      const Bytes size = block_sizes.size(prefetch::DataId(i));
      if (block.kind != prefetch::DataKind::kState || size == Bytes{}) continue;
      const auto [place, is_new] = by_name.emplace(block.name, extent);
      if (is_new) extent += size;
      own.offsets[i] = place->second;
    }
  }
  for (StatePlaces& own : places) own.extent = extent;
  return places;
}

}  // namespace spillway
