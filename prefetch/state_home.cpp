#include "prefetch/state_home.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace spillway::prefetch {
namespace {

constexpr std::uint32_t kNotOffloaded = ~0U;

bool is_offloadable_state(const DataBlock& block) {
  return block.kind == DataKind::kState && block.is_offloadable;
}

// Calls `visit` for each existing page of state that `move` covers.
template <typename Visit>
void for_each_page(const Move& move, const TaskGraph& graph, const BlockSizes& block_sizes,
                   const Visit& visit) {
  const auto data = static_cast<std::size_t>(move.data);
  if (data >= graph.data.size() || !is_offloadable_state(graph.data[data])) return;
  const std::uint64_t count = block_sizes.size(move.data) / block_sizes.page();
  const std::uint64_t begin = move.offset / block_sizes.page();
  if (begin >= count) return;
  const std::uint64_t size = std::min(move.size / block_sizes.page(), count - begin);
  for (std::uint64_t page = begin; page < begin + size; ++page) visit(data, page);
}

}  // namespace

StateHome::StateHome(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan)
    : far_pages_(graph.data.size()), copied_pages_(graph.data.size()) {
  std::vector<std::vector<std::uint32_t>> first_offload(graph.data.size());  // by block and page
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (!is_offloadable_state(graph.data[i])) continue;
    const std::uint64_t pages = block_sizes.size(DataId(i)) / block_sizes.page();
    first_offload[i].assign(pages, kNotOffloaded);
    far_pages_[i].assign(pages, false);
    copied_pages_[i].assign(pages, false);
  }
  for (std::uint32_t o = 0; o < plan.offloads.size(); ++o) {
    for_each_page(plan.offloads[o], graph, block_sizes, [&](std::size_t data, std::uint64_t page) {
      std::uint32_t& first = first_offload[data][page];
      if (first != kNotOffloaded) return;
      first = o;
      copied_pages_[data][page] = plan.offloads[o].is_clean;
    });
  }
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (!graph.data[i].is_sent) continue;
    far_pages_[i].assign(far_pages_[i].size(), true);
    copied_pages_[i].assign(copied_pages_[i].size(), false);
  }
  std::vector<std::vector<bool>> is_moved = far_pages_;
  for (const Move& move : plan.prefetches) {
    for_each_page(move, graph, block_sizes, [&](std::size_t data, std::uint64_t page) {
      if (is_moved[data][page]) return;
      is_moved[data][page] = true;
      if (move.after.offloads > first_offload[data][page]) return;  // brings back an offloaded page
      far_pages_[data][page] = true;
      copied_pages_[data][page] = false;
      far_ += block_sizes.page();
    });
  }
}

StatePlaces place_state(const TaskGraph& graph, const BlockSizes& block_sizes) {
  StatePlaces places{.offsets = std::vector<um::Bytes>(graph.data.size()), .extent = {}};
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind != DataKind::kState) continue;
    places.offsets[i] = places.extent;
    places.extent += block_sizes.size(DataId(i));
  }
  return places;
}

}  // namespace spillway::prefetch
