#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/ranks/communicator.h"

// Collective calls: all ranks call the same ones in the same order. Each throws what Communicator
// throws.

namespace spillway {

/// Returns the texts of all ranks, by rank, on every rank.
[[nodiscard]] std::vector<std::string> all_gather_texts(Communicator& communicator,
                                                        std::string_view text);

/// Returns the lists of all ranks, by rank, on every rank. Requires: no text holds a null byte.
[[nodiscard]] std::vector<std::vector<std::string>> all_gather_lists(
    Communicator& communicator, const std::vector<std::string>& own);

/// Returns the values of all ranks, by rank, on every rank.
template <typename Value>
requires std::is_trivially_copyable_v<Value>
[[nodiscard]] std::vector<Value> all_gather_values(Communicator& communicator, const Value& own) {
  std::vector<Value> values(communicator.size());
  values[communicator.rank()] = own;
  std::vector<std::span<std::byte>> pieces;
  pieces.reserve(values.size());
  for (Value& value : values) pieces.emplace_back(std::as_writable_bytes(std::span{&value, 1}));
  all_gather(communicator, pieces);
  return values;
}

/// Gives all ranks the results of all micro-batches: `all` has `each` bytes for each of
/// `micro_batches` micro-batches, in order. Each rank has filled in those of its own,
/// micro_batches_of_rank().
void all_gather_micro_batches(Communicator& communicator, std::size_t micro_batches,
                              std::size_t each, std::span<std::byte> all);

/// Returns on every rank whether `own` is true on any rank.
[[nodiscard]] inline bool any_rank(Communicator& communicator, bool own) {
  return std::ranges::any_of(all_gather_values(communicator, std::uint8_t{own}),
                             [](std::uint8_t each) { return each != 0; });
}

/// Copies the value of rank zero to all ranks.
template <typename Value>
requires std::is_trivially_copyable_v<Value>
void broadcast(Communicator& communicator, Value& value) {
  communicator.broadcast(std::as_writable_bytes(std::span{&value, std::size_t{1}}), 0);
}
template <typename Value>
void broadcast(Communicator& communicator, std::optional<Value>& value) {
  bool is_there = value.has_value();
  Value content = value.value_or(Value{});
  broadcast(communicator, is_there);
  broadcast(communicator, content);
  value = is_there ? std::optional{content} : std::nullopt;
}
void broadcast(Communicator& communicator, std::string& text);
/// Requires: no text holds a null byte.
void broadcast(Communicator& communicator, std::vector<std::string>& texts);

/// Throws `failure` if it is not null. If it is null, but not on another rank, throws um::Error
/// with the sentence of the lowest rank that failed.
void throw_on_all(Communicator& communicator, const std::exception_ptr& failure);

/// Calls `work` on rank zero and `meanwhile`, unless it is empty, on the others. Throws: what
/// `work` throws; on the other ranks um::Error with the same sentence.
void on_rank_zero(Communicator& communicator, const std::function<void()>& work,
                  const std::function<void()>& meanwhile = {});

}  // namespace spillway
