#pragma once

// A CUDA device made of this processor: a test double with which the unmodified plug-in is linked.
// This header is what the stand-ins of CUDA's libraries share.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct CUstream_st;

namespace spillway::emulated {

/// A range of memory that a piece of work reads or writes.
struct Access {
  const void* begin = nullptr;
  std::size_t size = 0;
  bool writes = false;
};

/// Work for a stream, as a kernel or a function of a library enqueues it.
struct Work {
  std::string name;               ///< for counts and mistakes
  std::vector<Access> accesses;   ///< known in advance; none for kernels, which report theirs
  std::function<void()> compute;  ///< runs when the stream comes to it
  const void* kernel = nullptr;   ///< code of a kernel of ours, which mistakes name
};

/// Returns the name of work for mistakes.
[[nodiscard]] std::string work_name(const Work& work);

/// Enqueues work of a kernel or a library. Returns a cudaError_t.
///
/// Thread safety: several threads may call it concurrently, as all functions of this header.
[[nodiscard]] int enqueue(CUstream_st* stream, Work work);

/// Counts a call of the function `name` of CUDA's libraries. Returns 0, or the cudaError_t with
/// which this call must fail because the test asks for it. The device may be lost: then every call
/// fails. Every function begins with it.
[[nodiscard]] int begin_call(const char* name);

/// Reports an error of the caller that a real device would punish: wrong results, a crash, or a
/// sticky error. Ends the process unless the settings say to count mistakes only.
void report_mistake(const std::string& sentence);

/// Returns true if the bytes lie in one live block of device or managed memory of the current
/// process. Bytes freed already are not in a block.
[[nodiscard]] bool is_device_memory(const void* begin, std::size_t size);

/// Fills memory with NaNs (bytes 0xFF): content that must not be read.
void poison(void* begin, std::size_t size);

/// Returns true if work is enqueued and counted but not computed.
[[nodiscard]] bool is_dry();

/// Adds to the count `name` of the report that is written at the end of the process.
void count(const std::string& name, std::uint64_t more = 1);

// Arithmetic shared by the stand-ins of libraries.

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}
/// Rounds to nearest, ties to even; keeps NaN.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}
/// Adds the product of dense row-major matrices to `c`: c (rows x columns) += a (rows x inner) b.
void add_product(std::size_t rows, std::size_t columns, std::size_t inner, const float* a,
                 const float* b, float* c);

}  // namespace spillway::emulated
