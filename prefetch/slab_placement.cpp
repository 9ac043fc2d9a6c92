#include "prefetch/slab_placement.h"

#include <algorithm>

namespace spillway::prefetch {
namespace {

using um::Bytes;

struct Interval {
  Position begin;
  Position last;
};

// A block or workspace that needs `size` addresses during some intervals of runs (sorted).
struct Tenant {
  Bytes size;
  std::vector<Interval> times;
  Bytes* offset;  // receives its place
};

bool share_time(const Tenant& a, const Tenant& b) {
  auto of_a = a.times.begin();
  auto of_b = b.times.begin();
  while (of_a != a.times.end() && of_b != b.times.end()) {
    if (of_a->last < of_b->begin) {
      ++of_a;
    } else if (of_b->last < of_a->begin) {
      ++of_b;
    } else {
      return true;
    }
  }
  return false;
}

// Returns the lowest offset from `offset` on at which `tenant` overlaps none of `placed`, which is
// sorted by offset.
Bytes lowest_gap(Bytes offset, const Tenant& tenant, const std::vector<Tenant>& placed) {
  for (const Tenant& other : placed) {
    if (!share_time(tenant, other)) continue;
    if (offset + tenant.size <= *other.offset) break;
    offset = std::max(offset, *other.offset + other.size);
  }
  return offset;
}

}  // namespace

Placement place(const TaskGraph& graph, const BlockSizes& block_sizes,
                std::span<const TaskRun> runs, std::span<const Life> lives,
                const StatePlaces& state) {
  Placement placement{.blocks = state.offsets,
                      .workspaces = std::vector<Bytes>(runs.size()),
                      .extent = state.extent};
  std::vector<Tenant> tenants(graph.data.size());
  for (const Life& life : lives) {
    if (life.outlives_step()) continue;
    const auto block = static_cast<std::size_t>(life.data);
    Tenant& tenant = tenants[block];
    tenant.size = block_sizes.size(life.data);
    tenant.times.push_back({.begin = life.begin(), .last = life.last()});
    tenant.offset = &placement.blocks[block];
  }
  for (Position p = 0; p < runs.size(); ++p) {
    const Bytes workspace = graph[runs[p].task].algorithms[runs[p].algorithm].workspace;
    tenants.push_back({.size = block_sizes.workspace_size(workspace),
                       .times = {{.begin = p, .last = p}},
                       .offset = &placement.workspaces[p]});
  }
  std::erase_if(tenants, [](const Tenant& tenant) { return tenant.size == Bytes{}; });
  std::ranges::stable_sort(tenants, std::ranges::greater{}, &Tenant::size);

  std::vector<Tenant> placed;  // in order of offset
  for (const Tenant& tenant : tenants) {
    *tenant.offset = lowest_gap(state.extent, tenant, placed);
    placement.extent = std::max(placement.extent, *tenant.offset + tenant.size);
    const auto after = [&](const Tenant& other) { return *other.offset <= *tenant.offset; };
    placed.insert(std::ranges::partition_point(placed, after), tenant);
  }
  return placement;
}

}  // namespace spillway::prefetch
