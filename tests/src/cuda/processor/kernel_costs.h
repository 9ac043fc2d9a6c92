#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/cuda/kernels/sequences/vocabulary_rows.h"
#include "src/ops/operation.h"
#include "src/ops/tensor.h"

namespace spillway::cuda {

/// The work of a launch, as a function of the shapes. The tests count the blocks and bytes of real
/// launches, and expect these numbers.
struct LaunchCost {
  std::size_t blocks;
  std::size_t threads;  ///< per block
  double read;          ///< distinct bytes
  double written;       ///< distinct bytes
  double ahead;         ///< bytes that a thread has requested before it waits for them
  // The rest is from reading the kernels; the tests do not count it.
  double again = 0;             ///< bytes read again after the caches have lost them
  double instructions = 0;      ///< of all threads, where arithmetic may limit the kernel
  std::size_t resident = 2048;  ///< most threads per multiprocessor
};

/// The launches of one kernel, or of a group of kernels that together do one thing.
struct KernelWork {
  std::string kind;
  std::vector<LaunchCost> launches;
  double least;  ///< bytes that any kernel must move for this, if nothing stays in caches
  double flops = 0;
};

/// A product or convolution of a library.
struct ProductWork {
  std::string kind;
  double flops;
  double bytes;  ///< the least: each operand is moved once
};

struct OperationWork {
  std::vector<KernelWork> kernels;
  std::vector<ProductWork> products;
};

/// Returns the work of an operation of GPT-2's or ResNet-50's training step. Throws: um::Error for
/// other operations.
[[nodiscard]] OperationWork work_of(Precision precision, const Operation& operation);

/// Returns the work of updates that run together, as CudaBackend::prepare_updates() has them.
[[nodiscard]] std::vector<OperationWork> together(const std::vector<OperationWork>& updates);

/// The rates of a GPU, and the shares of them that the model takes kernels to reach.
struct GpuRates {
  double peak_bandwidth;  ///< bytes per second
  double memory_share;
  double peak_flops;  ///< per second, in bfloat16
  double product_share;
  std::size_t processors;
  double lanes;  ///< instructions of threads per processor and cycle
  double clock;  ///< cycles per second
  double instruction_share;
  double latency;  ///< seconds from a load to its bytes
  double launch;   ///< seconds between kernels
  double cache;    ///< bytes

  [[nodiscard]] double bandwidth() const { return memory_share * peak_bandwidth; }
  [[nodiscard]] double flops() const { return product_share * peak_flops; }
  [[nodiscard]] double instructions() const {
    return instruction_share * static_cast<double>(processors) * lanes * clock;
  }
};

/// Returns the rates of an H100 SXM5 with 80 GB.
[[nodiscard]] GpuRates h100();

[[nodiscard]] double bytes_of(const LaunchCost& cost);
[[nodiscard]] double seconds_of(const GpuRates& gpu, const LaunchCost& cost);
[[nodiscard]] double seconds_of(const GpuRates& gpu, const ProductWork& product);

/// Returns the costs of the functions in vocabulary_rows.h.
[[nodiscard]] LaunchCost share_cost(std::size_t count);
[[nodiscard]] LaunchCost judge_cost(Precision precision, std::size_t rows, std::size_t vocabulary);
[[nodiscard]] LaunchCost result_cost(std::size_t count);

}  // namespace spillway::cuda
