#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "um/bytes.h"

namespace spillway::um {

/// A place to allocate from. Features (a limit, a log) are Memories that wrap a Memory.
///
/// Thread safety: implementations are safe to call from several threads at once.
class Memory {
 public:
  virtual ~Memory() = default;

  /// Returns `size` bytes aligned to at least 4096. Requires: `size` is not zero.
  /// Throws: OutOfMemory.
  [[nodiscard]] virtual std::byte* allocate(Bytes size) = 0;

  /// Gives back what `allocate(size)` returned.
  virtual void free(std::byte* address, Bytes size) noexcept = 0;
};

/// Owns one allocation of a Memory. The Memory must outlive it.
class Block {
 public:
  Block() = default;
  /// Throws: OutOfMemory. A zero `size` owns nothing.
  Block(Memory& memory, Bytes size)
      : memory_{&memory}, data_{size == Bytes{} ? nullptr : memory.allocate(size)}, size_{size} {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block(Block&& other) noexcept { swap(other); }
  Block& operator=(Block&& other) noexcept {
    Block moved{std::move(other)};
    swap(moved);
    return *this;
  }
  ~Block() {
    if (data_ != nullptr) memory_->free(data_, size_);
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_.count()}; }

 private:
  void swap(Block& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  Memory* memory_ = nullptr;
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace spillway::um
