#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// What only the first rank does, because it is about files that all of them would write.
[[nodiscard]] inline bool is_first(const Communicator* communicator) {
  return communicator == nullptr || communicator->rank() == 0;
}

/// Throws `failure` where it is not null; on a rank where it is, um::Error with the sentence of the
/// first rank that failed, if any did. All ranks call it.
void throw_on_all(Communicator& communicator, const std::exception_ptr& failure);

/// Has the first rank do `work`, and the others, if anything, what it needs of them `meanwhile`.
/// Throws: what it throws; on the other ranks um::Error with the same sentence.
void on_first_rank(Communicator& communicator, const std::function<void()>& work,
                   const std::function<void()>& meanwhile = {});

/// The first rank's `value`, on all ranks.
template <class T>
requires std::is_trivially_copyable_v<T>
void share_first(Communicator& communicator, T& value) {
  communicator.broadcast(std::as_writable_bytes(std::span{&value, std::size_t{1}}), 0);
}

template <class T>
void share_first(Communicator& communicator, std::optional<T>& value) {
  bool is_there = value.has_value();
  T content = value.value_or(T{});
  share_first(communicator, is_there);
  share_first(communicator, content);
  value = is_there ? std::optional{content} : std::nullopt;
}

/// All ranks' lists of texts, by rank, on every rank. A byte that is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::vector<std::vector<std::string>> gather_lists(
    Communicator& communicator, const std::vector<std::string>& own);

/// What each rank computed of its shards (shards_of_rank()), to all: `all` has `each` bytes for
/// each of `shards` shards, in order, of which this rank has filled in its own. Throws: what
/// Communicator throws.
void gather_shards(Communicator& communicator, std::size_t shards, std::size_t each,
                   std::span<std::byte> all);

}  // namespace spillway
