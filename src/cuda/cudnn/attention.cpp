#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "src/cuda/cudnn/attention_engines.h"
#include "src/cuda/kernels/kernels.h"
#include "src/ops/backend.h"

namespace spillway::cuda {
namespace {

constexpr std::string_view kOwnAttention = "default";
constexpr std::size_t kElementBytes = 2;

template <class Op>
std::vector<AlgorithmInfo> attention_algorithms(const Machine& machine, const Op& op) {
  std::vector<AlgorithmInfo> all{
      {.name = std::string{kOwnAttention}, .workspace = workspace_of(machine, op)}};
  if (machine.attention == nullptr || !may_be_cudnns(machine.precision, op.geometry)) return all;
  for (const AttentionEngine& engine : machine.attention->offered(problem_of(op))) {
    all.push_back({.name = engine.name(), .workspace = engine.workspace()});
  }
  return all;
}

// The parts of x or dx, each starting at the first token's row.
struct HeadParts {
  std::byte* queries;
  std::byte* keys;
  std::byte* values;
};

// A cuDNN engine prepared to run an attention.
class AttentionRun {
 public:
  template <class Op>
  AttentionRun(const Machine& machine, const Op& op, std::string_view algorithm)
      : cudnn_{machine.cudnn},
        problem_{problem_of(op)},
        engine_{&machine.attention->named(problem_, algorithm)},
        scale_{1.F / std::sqrt(static_cast<float>(op.geometry.heads.width(op.geometry.x)))} {}

  [[nodiscard]] HeadParts parts(std::byte* rows) const {
    const std::size_t head = problem_.heads.width(problem_.x) * kElementBytes;
    std::byte* const keys = rows + problem_.heads.heads * head;
    return {.queries = rows, .keys = keys, .values = keys + problem_.heads.kv_heads * head};
  }

  // `tensors` are all tensors except the scalars.
  void execute(std::vector<TensorAddress> tensors, std::byte* workspace) const {
    float scale = scale_;
    float masked = -std::numeric_limits<float>::infinity();
    float one = 1.F;
    tensors.push_back({kTensorScale, &scale});
    if (problem_.is_causal) tensors.push_back({kTensorMasked, &masked});
    if (problem_.pass == AttentionPass::kBackward) tensors.push_back({kTensorOne, &one});
    naming([&] { return describe(problem_); },
           [&] {
             engine_->plan().execute(cudnn_, tensors,
                                     workspace + attention_scratch(problem_).count());
           });
  }

 private:
  cudnnHandle_t cudnn_;
  AttentionProblem problem_;
  const AttentionEngine* engine_;  // owned by the machine's engines
  float scale_;
};

}  // namespace

std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const AttentionForward& op) {
  return attention_algorithms(machine, op);
}

std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const AttentionBackward& op) {
  return attention_algorithms(machine, op);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionForward& op,
                                    std::string_view algorithm) {
  if (algorithm == kOwnAttention) return make_kernel(machine, op);
  const AttentionRun run{machine, op, algorithm};
  return kernel_of(op, [run](const auto& operands, const auto& arguments) {
    const HeadParts in = run.parts(operands.in.x);
    run.execute({{kTensorQueries, in.queries},
                 {kTensorKeys, in.keys},
                 {kTensorValues, in.values},
                 {kTensorResult, operands.out.y},
                 {kTensorStatistics, operands.out.saved}},
                arguments.workspace);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionBackward& op,
                                    std::string_view algorithm) {
  if (algorithm == kOwnAttention) return make_kernel(machine, op);
  const AttentionRun run{machine, op, algorithm};
  return kernel_of(op, [run](const auto& operands, const auto& arguments) {
    const HeadParts in = run.parts(operands.in.x);
    const HeadParts out = run.parts(operands.out.dx);
    run.execute({{kTensorQueries, in.queries},
                 {kTensorKeys, in.keys},
                 {kTensorValues, in.values},
                 {kTensorResult, operands.in.y},
                 {kTensorResultGradient, operands.in.dy},
                 {kTensorStatistics, operands.in.saved},
                 {kTensorQueryGradients, out.queries},
                 {kTensorKeyGradients, out.keys},
                 {kTensorValueGradients, out.values},
                 {kTensorMeans, arguments.workspace}},
                arguments.workspace);
  });
}

}  // namespace spillway::cuda
