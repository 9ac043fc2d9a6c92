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

/// A setting that must be equal on all ranks, as text: {"flags", "--net lenet --batch 64"}.
struct NamedText {
  std::string name;
  std::string text;
  std::string advice = {};  ///< what to do where it differs, if the text does not say so
};

/// Compares `texts` across ranks. If any differs, all ranks throw the same um::Error: what differs,
/// each rank's text, shortened, and the advice. Requires: at least one text; all ranks call it.
void expect_agreement(Communicator& communicator, std::span<const NamedText> texts);

/// Returns the texts of all ranks, by rank, on every rank (all-gather).
[[nodiscard]] std::vector<std::string> gather_texts(Communicator& communicator,
                                                    std::string_view text);

/// Returns the values of all ranks, by rank, on every rank (all-gather).
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

/// Returns on every rank whether `own` is true on any rank.
[[nodiscard]] inline bool any_rank(Communicator& communicator, bool own) {
  return std::ranges::any_of(gather_values(communicator, std::uint8_t{own}),
                             [](std::uint8_t each) { return each != 0; });
}

}  // namespace spillway
