#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// All ranks' values, by rank, on every rank.
template <typename Value>
requires std::is_trivially_copyable_v<Value>
[[nodiscard]] std::vector<Value> gather_values(Communicator& communicator, const Value& own) {
  std::vector<Value> values(communicator.ranks());
  values[communicator.rank()] = own;
  std::vector<std::span<std::byte>> pieces;
  pieces.reserve(values.size());
  for (Value& value : values) pieces.emplace_back(std::as_writable_bytes(std::span{&value, 1}));
  all_gather(communicator, pieces);
  return values;
}

/// Whether something holds on any rank, on every rank.
[[nodiscard]] inline bool any_rank(Communicator& communicator, bool own) {
  return std::ranges::any_of(gather_values(communicator, std::uint8_t{own}),
                             [](std::uint8_t each) { return each != 0; });
}

}  // namespace spillway
