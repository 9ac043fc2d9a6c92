#include "prefetch/placement.h"

#include <algorithm>

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Something that needs `size` addresses from run `begin` to run `last`.
struct Tenant {
  Bytes size;
  Position begin;
  Position last;
  Bytes* offset;  // where its place is noted
};

bool share_time(const Tenant& a, const Tenant& b) { return a.begin <= b.last && b.begin <= a.last; }

// The lowest offset at which `tenant` overlaps none of `placed`, which is in order of offset.
Bytes lowest_gap(const Tenant& tenant, const std::vector<Tenant>& placed) {
  Bytes offset;
  for (const Tenant& other : placed) {
    if (!share_time(tenant, other)) continue;
    if (offset + tenant.size <= *other.offset) break;
    offset = std::max(offset, *other.offset + other.size);
  }
  return offset;
}

}  // namespace

Placement place(const TaskGraph& graph, const Occupancy& occupancy, std::span<const TaskRun> runs,
                std::span<const Life> lives) {
  Placement placement{.blocks = std::vector<Bytes>(graph.data.size()),
                      .workspaces = std::vector<Bytes>(runs.size()),
                      .extent = {}};
  std::vector<Tenant> blocks(graph.data.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = {.size = {}, .begin = 0, .last = 0, .offset = &placement.blocks[i]};
  }
  for (const Life& life : lives) {
    Tenant& tenant = blocks[static_cast<std::size_t>(life.data)];
    if (tenant.size == Bytes{}) tenant.begin = life.begin();
    tenant.size = occupancy.size(life.data);
    tenant.last = std::max(tenant.last, life.last());
  }
  std::vector<Tenant> tenants = std::move(blocks);
  for (Position p = 0; p < runs.size(); ++p) {
    const Bytes workspace = graph[runs[p].task].algorithms[runs[p].algorithm].workspace;
    tenants.push_back({.size = occupancy.workspace_size(workspace),
                       .begin = p,
                       .last = p,
                       .offset = &placement.workspaces[p]});
  }
  std::erase_if(tenants, [](const Tenant& tenant) { return tenant.size == Bytes{}; });
  std::ranges::stable_sort(tenants, std::ranges::greater{}, &Tenant::size);

  std::vector<Tenant> placed;  // in order of offset
  for (const Tenant& tenant : tenants) {
    *tenant.offset = lowest_gap(tenant, placed);
    placement.extent = std::max(placement.extent, *tenant.offset + tenant.size);
    const auto after = [&](const Tenant& other) { return *other.offset <= *tenant.offset; };
    placed.insert(std::ranges::partition_point(placed, after), tenant);
  }
  return placement;
}

}  // namespace spillway::prefetch
