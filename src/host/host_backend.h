#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/host/layout/host_kernel.h"
#include "src/host/layout/threads.h"
#include "src/ops/backend.h"
#include "um/device.h"

namespace spillway::host {

/// A backend for the CPU, with kernels of oneDNN primitives and OpenMP loops.
class HostBackend final : public Backend {
 public:
  /// Kernels run on `threads` threads; results depend on that number, bit by bit. Throws: um::Error
  /// if OpenMP grants fewer threads, or if the kernels do not support `precision`.
  explicit HostBackend(std::size_t threads = usable_cpus(), Precision precision = Precision::kFp32);

  /// Starts the calling thread's team, binds its threads to CPUs, and calls `prepare` on each. Call
  /// it once, on the thread that will run the kernels, before any kernel. Throws: um::Error if
  /// OpenMP grants fewer threads; whatever `prepare` throws.
  void start_threads(const std::function<void()>& prepare) const;

  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const override;
  [[nodiscard]] um::Bytes parameter_bytes(const ParameterSpec& spec) const override;
  [[nodiscard]] std::size_t parameter_parts(const ParameterSpec& spec,
                                            um::Bytes most) const override;
  [[nodiscard]] um::Bytes parameter_part_bytes(const ParameterSpec& spec,
                                               const ParameterPart& part) const override;
  [[nodiscard]] um::Bytes saved_bytes(const Operation& operation) const override;
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override;
  [[nodiscard]] um::Bytes traffic(const Operation& operation) const override;
  [[nodiscard]] FarUpdateSupport far_update_support() const override {
    return FarUpdateSupport::kAutomatic;
  }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare(const Operation& operation,
                                                std::string_view algorithm) const override;
  [[nodiscard]] std::unique_ptr<FarKernel> prepare_far(
      const UpdateParameters& update) const override;
  void clear(um::Range block) const override;
  void import_parameters(const ParameterSpec& spec, std::span<const float> values,
                         std::span<std::byte* const> parts) const override;
  void export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                         std::span<float> values) const override;

  [[nodiscard]] const Layout& layout() const { return machine_.layout; }

 private:
  Machine machine_;
};

/// How oneDNN multiplies bfloat16 on this CPU.
enum class Bf16Support : std::uint8_t { kNone, kEmulated, kNative };
[[nodiscard]] Bf16Support bf16_support();

/// Returns the kernels' library and its version: "oneDNN 2.6.3".
[[nodiscard]] std::string kernel_library();

/// Opens a CPU with oneDNN kernels, its stream, and a started team of threads. The context only
/// records `deterministic`, since host kernels always are. Throws: um::Error if there are not
/// enough threads, or if the kernels do not support `precision`.
[[nodiscard]] ExecutionContext open_context(std::unique_ptr<um::Device> device,
                                            std::size_t threads = usable_cpus(),
                                            bool deterministic = false,
                                            Precision precision = Precision::kFp32);

}  // namespace spillway::host
