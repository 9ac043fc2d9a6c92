#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <utility>

#include "um/bytes.h"

namespace spillway::um {

/// A place to allocate from. A feature (a limit, a log) is a Memory that wraps a Memory.
///
/// Thread safety: implementations are safe to call from several threads at once.
class Memory {
 public:
  virtual ~Memory() = default;

  /// Returns `size` bytes aligned to at least 4096. Requires: `size` is not zero.
  /// Throws: OutOfMemory.
  [[nodiscard]] virtual std::byte* allocate(Bytes size) = 0;

  /// Frees the result of `allocate(size)`.
  virtual void free(std::byte* address, Bytes size) noexcept = 0;
};

/// Owns one allocation of a Memory. The Memory must outlive it.
class Block {
 public:
  Block() = default;
  /// Allocates nothing when `size` is zero. Throws: OutOfMemory.
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

/// The two memories: the fast small one next to the processor, and the large slow one.
enum class MemoryTier { kNear, kFar };

/// Counts the near bytes in use against a budget. Bytes are charged when a move or an allocation is
/// issued, and released when the memory is free again (after the event of an offload).
///
/// Thread safety: any thread and a page-fault handler may call every function; reset_peak() must
/// not run beside a charge.
class Ledger {
 public:
  explicit Ledger(Bytes limit) : limit_{limit.count()} {}

  /// Adds `size` to the bytes in use. Throws: OutOfMemory, with nothing added, when the limit would
  /// be exceeded.
  void charge(Bytes size);
  /// Like charge(), but returns false instead of throwing.
  [[nodiscard]] bool try_charge(Bytes size) noexcept;
  /// Requires: `size` is at most the bytes in use.
  void release(Bytes size) noexcept { in_use_ -= size.count(); }

  [[nodiscard]] Bytes limit() const noexcept { return Bytes{limit_}; }
  [[nodiscard]] Bytes in_use() const noexcept { return Bytes{in_use_}; }
  /// The largest in_use() since construction or the last reset_peak().
  [[nodiscard]] Bytes peak() const noexcept { return Bytes{peak_}; }
  /// Requires: no concurrent charge.
  void reset_peak() noexcept { peak_ = in_use_.load(); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> peak_{0};
};

/// A Memory that charges a ledger for each allocation, so that it never exceeds the ledger's limit.
/// `upstream` and the ledger must outlive it.
class LimitedMemory final : public Memory {
 public:
  LimitedMemory(Memory& upstream, Ledger& ledger) : upstream_{&upstream}, ledger_{&ledger} {}

  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;

 private:
  Memory* upstream_;
  Ledger* ledger_;
};

}  // namespace spillway::um
