#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "um/dropin/spillway_um.h"

namespace spillway::bench {

/// Who brings what a kernel uses near.
enum class Way {
  kPlain,   ///< nobody: ordinary memory
  kFaults,  ///< page faults alone
  kLearned  ///< learned prefetch: the kernel touches and marks
};

struct KernelMemoryOptions {
  Way way = Way::kPlain;
  std::size_t near = 0;      ///< bytes
  std::size_t capacity = 0;  ///< bytes
  std::size_t page = 0;      ///< bytes; 0: the library's choice
  double link = 0;           ///< bytes a second; 0: full speed
};

/// The memory of a kernel, which says what it is about to use in every way alike.
class Memory {
 public:
  /// Throws: std::runtime_error with the library's sentence.
  explicit Memory(const KernelMemoryOptions& options);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// Zeroes, on huge pages. It lasts as long as this.
  [[nodiscard]] void* allocate(std::size_t bytes);
  template <class T>
  [[nodiscard]] T* array(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T)));
  }

  void read(const void* address, std::size_t bytes) { touch(address, bytes, SPILLWAY_UM_READ); }
  void write(const void* address, std::size_t bytes) {
    touch(address, bytes, SPILLWAY_UM_READ_WRITE);
  }
  /// An iteration ended.
  void mark();
  /// Waits for a replay plan: before what is timed.
  void settle();

  [[nodiscard]] spillway_um_counters counters() const;
  [[nodiscard]] spillway_um_learned_counters learned() const;
  [[nodiscard]] std::string status() const;

 private:
  void touch(const void* address, std::size_t bytes, int access);

  Way way_;
  spillway_um_space space_{};
};

}  // namespace spillway::bench
