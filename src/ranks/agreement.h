#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// Something that must be the same on all ranks, as text: {"flags", "--net lenet --batch 64"}.
struct NamedText {
  std::string name;
  std::string text;
  std::string advice = {};  ///< what to do where it differs, where the text does not say it
};

/// Returns where all ranks call this with the same texts. Else all of them throw the same
/// um::Error: what differs, with the text of each rank, shortened, and the advice. Requires: at
/// least one text.
void expect_agreement(Communicator& communicator, std::span<const NamedText> texts);

/// All ranks' texts, by rank, on every rank.
[[nodiscard]] std::vector<std::string> gather_texts(Communicator& communicator,
                                                    std::string_view text);

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
