#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/flags/cli11.h"
#include "src/host/host_backend.h"
#include "src/ops/backend.h"
#include "src/ops/cuda_plugin.h"
#include "src/ops/tensor.h"
#include "src/ranks/agreement.h"
#include "src/ranks/communicator.h"
#include "um/error.h"

namespace spillway::cli {

/// True where an NVIDIA driver is installed; says nothing about a GPU.
[[nodiscard]] bool has_nvidia_driver();

/// Returns true for "host", and for "auto" on a machine without a usable GPU.
[[nodiscard]] bool is_host(const std::string& device);

/// Loads the CUDA side, libspillway_cuda.so, from beside the program, from where it is installed,
/// or from where the system looks for libraries; it stays loaded to the end of the process. Throws:
/// um::Error, one sentence that says what to do, when it is not there, cannot be loaded, or is of
/// another build.
[[nodiscard]] const CudaPlugin& load_cuda_side();

/// Runs `work`, which needs CUDA, and returns its result. Throws: um::Error that says that CUDA is
/// wanted, then the reason.
template <typename Work>
auto use_cuda(const Work& work) {
  try {
    return work();
  } catch (const um::Error& error) {
    throw um::Error{std::string{"CUDA cannot be used: "} + error.what()};
  }
}

/// The flags that say on what to run: --device, --threads, and how it computes.
struct DeviceFlags {
  std::string device = "auto";
  int threads = 0;  ///< 0: one for each processor this process may use
  std::string precision = "fp32";
  bool emulates_bf16 = false;
  bool deterministic = false;
  bool counts_faults = false;
  std::vector<std::string> managed_limits;  ///< of unified memory: bytes, or parts of what is free

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
  void add_managed_limit_to(CLI::App& app);
  void expect_host_precision() const;
  void expect_bf16_instructions() const;
  void warn_of_too_many_threads() const;
  [[nodiscard]] ExecutionContext open_host() const;
  [[nodiscard]] ExecutionContext open_cuda() const;
  [[nodiscard]] std::size_t thread_count() const;
};

/// The device of one of several ranks, or of the only one, as --device says it: "host", or
/// "cuda:2", which no other rank of its node has. auto is a GPU where each rank of the node can
/// have one. Throws: um::Error, one sentence for the user, where there are too few.
[[nodiscard]] std::string device_of_rank(const std::string& device, const Communicator& ranks);

/// Which of a node's `gpus` a rank trains on. A rank that sees one only has been given it by its
/// launcher, so that it is another one than its neighbours'. Throws: um::Error, likewise.
[[nodiscard]] std::size_t gpu_of_rank(std::size_t gpus, std::size_t rank_on_node,
                                      std::size_t ranks_on_node);

/// Returns the function that joins the GPUs of all ranks, CudaPlugin::join_ranks(), or an empty one
/// if `device`, from device_of_rank(), is the host. `ranks` must outlive the communicators made.
[[nodiscard]] std::function<std::unique_ptr<Communicator>(ExecutionContext&)> joining_of(
    const std::string& device, Communicator& ranks, const CommunicatorOptions& options);

/// In what all ranks of a command must agree (expect_agreement()): the program, its command line,
/// `arguments`, and whether `device`, of device_of_rank(), is a GPU.
[[nodiscard]] std::vector<NamedText> agreement_of_ranks(const std::string& arguments,
                                                        const std::string& device);

}  // namespace spillway::cli
