#include "src/host/host_backend.h"

#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates.h"
#include "src/host/layout/layout.h"
#include "src/host/layout/parameter_layout.h"
#include "um/error.h"

namespace spillway::host {
namespace {

constexpr std::string_view kDirect = "direct";
constexpr std::string_view kWinograd = "winograd";
constexpr std::string_view kDefault = "default";

template <class Op>
constexpr bool kIsLinear =
    std::is_same_v<Op, LinearForward> || std::is_same_v<Op, LinearBackwardData> ||
    std::is_same_v<Op, LinearBackwardWeights>;

// Operations that may use the direct or Winograd's algorithm. Attention and linear layers have only
// one algorithm.
template <class Op>
constexpr bool kIsConvolution =
    Op::kRow.has_algorithms && !kIsLinear<Op> && !std::is_same_v<Op, AttentionForward> &&
    !std::is_same_v<Op, AttentionBackward>;

dnnl::algorithm algorithm_named(std::string_view name) {
  um::expects(name == kDirect || name == kWinograd, "convolutions are direct or winograd");
  return name == kWinograd ? dnnl::algorithm::convolution_winograd
                           : dnnl::algorithm::convolution_direct;
}

template <class Op>
std::vector<AlgorithmInfo> convolution_algorithms(const Machine& machine, const Op& op) {
  std::vector<AlgorithmInfo> algorithms;
  for (const std::string_view name : {kDirect, kWinograd}) {
    const auto weighted = make_primitive(machine, op, algorithm_named(name));
    if (!weighted) continue;
    algorithms.push_back(
        {.name = std::string{name}, .workspace = workspace_of(machine, op, *weighted)});
  }
  return algorithms;
}

std::vector<float*> floats_of(std::span<std::byte* const> parts) {
  std::vector<float*> all;
  for (std::byte* const part : parts) all.push_back(floats(part));
  return all;
}

template <class Op>
um::Bytes default_workspace(const Machine& machine, const Op& op) {
  if constexpr (std::is_same_v<Op, LinearBackwardWeights>) {
    return workspace_of(machine, op, make_primitive(machine, op));
  } else if constexpr (kIsLinear<Op>) {
    return workspace_of(machine, make_primitive(machine, op));
  } else if constexpr (Op::kRow.workspace == Workspace::kHost ||
                       Op::kRow.workspace == Workspace::kBoth) {
    return workspace_of(machine, op);
  } else {
    return {};
  }
}

// Throws: um::Error where a limit of addresses leaves no room for a kernel's code. oneDNN's
// generator would end the program with SIGSEGV.
void expect_room_for_code() {
  constexpr std::size_t kRoom = 16U << 20U;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  void* const room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          /*fd=*/-1, /*offset=*/0);
  if (room == MAP_FAILED) {
    throw um::Error{"the limit of addresses of " + um::to_string(um::Bytes{limit.rlim_cur}) +
                    " (ulimit -v) leaves no room for the code of kernels; raise it"};
  }
  munmap(room, kRoom);
}

}  // namespace

HostBackend::HostBackend(std::size_t threads, Precision precision)
    : machine_{.engine = dnnl::engine(dnnl::engine::kind::cpu, 0),
               .layout = Layout::of_this_machine(precision),
               .threads = threads} {
  um::expects(threads > 0, "kernels need a thread");
  if (static_cast<std::size_t>(omp_get_thread_limit()) < threads) {
    throw um::Error{"OpenMP may use " + std::to_string(omp_get_thread_limit()) + " of the " +
                    std::to_string(threads) +
                    " threads asked for: unset OMP_THREAD_LIMIT, or ask for fewer threads"};
  }
  if (precision == Precision::kBf16 && bf16_support() == Bf16Support::kNone) {
    throw um::Error{
        "the host's kernels have bf16 on processors with AVX-512 alone; use "
        "--precision fp32"};
  }
}

void HostBackend::start_threads(const std::function<void()>& prepare) const {
  start_team(machine_.threads, prepare);
}

um::Bytes HostBackend::tensor_bytes(const TensorShape& shape) const {
  return machine_.layout.tensor_bytes(shape);
}

um::Bytes HostBackend::parameter_bytes(const ParameterSpec& spec) const {
  return float_bytes(parts_of(machine_.layout, spec).total);
}

std::size_t HostBackend::parameter_parts(const ParameterSpec& spec, um::Bytes most) const {
  return cuts_of(machine_.layout, spec).parts(most);
}

um::Bytes HostBackend::parameter_part_bytes(const ParameterSpec& spec,
                                            const ParameterPart& part) const {
  return float_bytes(cuts_of(machine_.layout, spec).range(part).count());
}

um::Bytes HostBackend::saved_bytes(const Operation& operation) const {
  const TeamSize team{machine_.threads};
  return std::visit(
      [&](const auto& op) -> um::Bytes {
        if constexpr (std::decay_t<decltype(op)>::kRow.saves) {
          return host::saved_bytes(machine_, op);
        }
        return {};
      },
      operation);
}

std::vector<AlgorithmInfo> HostBackend::algorithms(const Operation& operation) const {
  const TeamSize team{machine_.threads};
  return std::visit(
      [&](const auto& op) -> std::vector<AlgorithmInfo> {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (kIsConvolution<Op>) {
          return convolution_algorithms(machine_, op);
        } else {
          return {{.name = std::string{kDefault}, .workspace = default_workspace(machine_, op)}};
        }
      },
      operation);
}

um::Bytes HostBackend::traffic(const Operation& operation) const {
  const um::Bytes floats = SizeModel::traffic(operation);
  const bool is_halved = machine_.layout.is_bf16() && !is_of_parameters(operation);
  return is_halved ? um::Bytes{floats.count() / 2} : floats;
}

std::string HostBackend::description() const {
  return onednn_version() + ", " + instruction_set() + ", " +
         (machine_.layout.is_bf16() ? "bf16, " : "") + std::to_string(machine_.threads) +
         (machine_.threads == 1 ? " thread" : " threads");
}

std::unique_ptr<FarKernel> HostBackend::prepare_far(const UpdateParameters& update) const {
  const UpdateRange range =
      UpdateRange::of(machine_.layout, update.parameters, update.part, decays_all(update.options));
  return make_far_kernel(update, {.begin = range.first, .end = range.first + range.count},
                         range.decayed);
}

std::unique_ptr<Kernel> HostBackend::prepare(const Operation& operation,
                                             std::string_view algorithm) const {
  expect_room_for_code();
  const TeamSize team{machine_.threads};
  return std::visit(
      [&](const auto& op) -> std::unique_ptr<Kernel> {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (kIsConvolution<Op>) {
          const auto weighted = make_primitive(machine_, op, algorithm_named(algorithm));
          um::expects(weighted.has_value(), "the algorithm is one of algorithms(operation)");
          return make_kernel(machine_, op, *weighted);
        } else {
          um::expects(algorithm == kDefault, "the algorithm is one of algorithms(operation)");
          if constexpr (std::is_same_v<Op, LinearBackwardWeights>) {
            return make_kernel(machine_, op, make_primitive(machine_, op));
          } else if constexpr (kIsLinear<Op>) {
            return make_kernel(machine_, make_primitive(machine_, op));
          } else {
            return make_kernel(machine_, op);
          }
        }
      },
      operation);
}

void HostBackend::clear(um::Range block) const { clear_memory(block); }

void HostBackend::import_parameters(const ParameterSpec& spec, std::span<const float> values,
                                    std::span<std::byte* const> parts) const {
  import_block(machine_.layout, spec, values, floats_of(parts));
}

void HostBackend::export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                                    std::span<float> values) const {
  export_block(machine_.layout, spec, floats_of(parts), values);
}

Bf16Support bf16_support() {
  if (has_instructions(dnnl::cpu_isa::avx512_core_bf16)) return Bf16Support::kNative;
  return has_instructions(dnnl::cpu_isa::avx512_core) ? Bf16Support::kEmulated : Bf16Support::kNone;
}

std::string kernel_library() { return onednn_version(); }

ExecutionContext open_context(std::unique_ptr<um::Device> device, std::size_t threads,
                              bool deterministic, Precision precision) {
  ExecutionContext context;
  context.threads = threads;
  context.deterministic = deterministic;
  context.precision = precision;
  context.device = std::move(device);
  auto backend = std::make_unique<HostBackend>(threads, precision);
  context.compute = context.device->make_stream("compute");
  context.compute->enqueue(
      [&] { backend->start_threads([&] { context.device->prepare_kernel_thread(); }); });
  context.compute->synchronize();
  context.backend = std::move(backend);
  return context;
}

}  // namespace spillway::host
