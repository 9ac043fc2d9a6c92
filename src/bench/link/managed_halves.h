#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "src/bench/link/transfer.h"
#include "um/memory.h"

namespace spillway {

/// Two equal parts of one managed space, at least two pages each, whose content is put where a
/// measurement wants it.
///
/// Thread safety: none.
class ManagedHalves {
 public:
  /// Halves of at least `size`, and near memory for as many of them. Throws: um::Error.
  ManagedHalves(um::Device& device, um::Bytes size, std::size_t near_halves,
                um::ManagedOptions options);

  /// The first `size` bytes of a half, 0 or 1.
  [[nodiscard]] um::Range part(std::size_t half) const;
  [[nodiscard]] um::Bytes page() const { return page_; }
  [[nodiscard]] um::Hints& hints() const { return space_->hints(); }
  [[nodiscard]] std::string description() const { return space_->description(); }

  /// Has content in far memory only, from now on. Free of charge when it is clean.
  void put_far(std::size_t half);
  /// Has content in near memory only. Requires: room for it.
  void put_near(std::size_t half);
  /// Has no content.
  void drop(std::size_t half);

 private:
  // All of a half, which is larger than its part where that is less than two pages.
  [[nodiscard]] um::Range whole(std::size_t half) const;
  void move(std::size_t half, um::MemoryTier tier);

  um::Bytes size_;
  um::Bytes page_;
  um::Bytes half_;
  um::Ledger ledger_;
  std::unique_ptr<um::ManagedSpace> space_;
  std::unique_ptr<um::Stream> stream_;  // without work
  std::array<bool, 2> has_content_{};
};

}  // namespace spillway
