#include "prefetch/moves/room.h"

#include <algorithm>
#include <bit>

namespace spillway::prefetch {

Room::Room(std::span<const um::Bytes> near)
    : leaves_{std::bit_ceil(std::max<Position>(1, static_cast<Position>(near.size())))},
      nodes_(2 * static_cast<std::size_t>(leaves_)) {
  for (std::size_t i = 0; i < near.size(); ++i) {
    nodes_[leaves_ + i].most = static_cast<Signed>(near[i].count());
  }
  for (std::size_t i = leaves_ - 1; i > 0; --i) {
    nodes_[i].most = std::max(nodes_[2 * i].most, nodes_[2 * i + 1].most);
  }
}

bool Room::has(um::Bytes size, um::Bytes pool, Position begin, Position end) const {
  return is_within(static_cast<Signed>(pool.count()) - static_cast<Signed>(size.count()), begin,
                   end, whole());
}

void Room::take(um::Bytes size, Position begin, Position end) {
  add(static_cast<Signed>(size.count()), begin, end, whole());
}

void Room::give(um::Bytes size, Position begin, Position end) {
  add(-static_cast<Signed>(size.count()), begin, end, whole());
}

void Room::add(Signed size, Position begin, Position end, const Span& at) {
  if (end <= at.begin || at.end <= begin) return;
  Node& node = nodes_[at.node];
  if (begin <= at.begin && at.end <= end) {
    node.most += size;
    node.all += size;
    return;
  }
  const Position middle = at.begin + (at.end - at.begin) / 2;
  add(size, begin, end, {.node = 2 * at.node, .begin = at.begin, .end = middle});
  add(size, begin, end, {.node = 2 * at.node + 1, .begin = middle, .end = at.end});
  node.most = node.all + std::max(nodes_[2 * at.node].most, nodes_[2 * at.node + 1].most);
}

bool Room::is_within(Signed limit, Position begin, Position end, const Span& at) const {
  const Node& node = nodes_[at.node];
  if (end <= at.begin || at.end <= begin || node.most <= limit) return true;
  if (begin <= at.begin && at.end <= end) return false;
  const Position middle = at.begin + (at.end - at.begin) / 2;
  limit -= node.all;
  return is_within(limit, begin, end, {.node = 2 * at.node, .begin = at.begin, .end = middle}) &&
         is_within(limit, begin, end, {.node = 2 * at.node + 1, .begin = middle, .end = at.end});
}

std::vector<FarInterval> needed_of(std::span<const FarInterval> far_intervals, um::Bytes pool,
                                   Room& room) {
  std::vector<FarInterval> result{far_intervals.begin(), far_intervals.end()};
  std::ranges::stable_sort(result, {}, &FarInterval::next);
  std::erase_if(result, [&](const FarInterval& each) {
    if (each.starts_far || each.to_end || each.is_wanted || each.is_renewal) return false;
    if (!room.has(each.size, pool, each.needed, each.next)) return false;
    room.take(each.size, each.needed, each.next);
    return true;
  });
  return result;
}

}  // namespace spillway::prefetch
