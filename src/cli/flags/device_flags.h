#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/host/host_backend.h"
#include "src/ops/backend.h"
#include "src/ops/tensor.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags that say on what to run: --device, --threads, and how it computes.
struct DeviceFlags {
  std::string device = "auto";
  int threads = 0;  ///< 0: one for each processor this process may use
  std::string precision = "fp32";
  bool emulates_bf16 = false;
  bool deterministic = false;
  bool counts_faults = false;
  bool shares_gpu = false;

  void add_to(CLI::App& app);
  /// Where to run and how to compute, without what only a training reports.
  void add_running_to(CLI::App& app);
  /// Only what sizes depend on, on the host unless --device says otherwise.
  void add_sizes_to(CLI::App& app);
  /// Only what says whose memory, for what runs no kernels.
  void add_memory_to(CLI::App& app);
  /// --precision alone.
  void add_precision_to(CLI::App& app);
  /// --threads alone: what sizes on the host depend on.
  void add_threads_to(CLI::App& app);

  /// Requires: `precision` has been checked.
  [[nodiscard]] Precision chosen_precision() const;

  /// Throws: um::Error when the device is not there, or not with so many threads.
  [[nodiscard]] ExecutionContext open() const;
  /// The sizes of tensors and the algorithms there; shared, as a GPU's need its context as long
  /// as they are used, the host's no device. Throws as open().
  [[nodiscard]] std::shared_ptr<const SizeModel> open_size_model() const;
  /// The host's kernels alone. Throws: um::Error when OpenMP will not give so many threads, or the
  /// processor does not compute in the precision.
  [[nodiscard]] std::unique_ptr<host::HostBackend> make_host_backend() const;

 private:
  void add_device_to(CLI::App& app);
  void add_kernels_to(CLI::App& app);
  void add_sharing_to(CLI::App& app);
  void expect_host_precision() const;
  void expect_bf16_instructions() const;
  void warn_of_too_many_threads() const;
  [[nodiscard]] ExecutionContext open_host() const;
  [[nodiscard]] ExecutionContext open_cuda() const;
  [[nodiscard]] std::size_t thread_count() const;
};

}  // namespace spillway::cli
