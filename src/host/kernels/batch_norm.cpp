#include <algorithm>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

dnnl::batch_normalization_forward::primitive_desc describe(const Machine& machine,
                                                           const BatchNormForward& op) {
  return batch_norm_forward(machine.engine, NormMode::kTraining, machine.layout.desc(op.x),
                            op.epsilon, op.relu);
}

dnnl::batch_normalization_forward::primitive_desc describe(const Machine& machine,
                                                           const BatchNormInference& op) {
  return batch_norm_forward(machine.engine, NormMode::kInference, machine.layout.desc(op.x),
                            op.epsilon, op.relu);
}

dnnl::batch_normalization_backward::primitive_desc describe(const Machine& machine,
                                                            const BatchNormBackward& op) {
  const Desc x = machine.layout.desc(op.x);
  return batch_norm_backward(
      machine.engine, x, op.epsilon, op.relu,
      batch_norm_forward(machine.engine, NormMode::kTraining, x, op.epsilon, op.relu));
}

ParameterParts parts_of_norm(const Machine& machine, const TensorShape& x) {
  return parts_of(machine.layout, BatchNormParameters{.channels = x.image.channels});
}

// For BatchNormForward and BatchNormInference. The latter has no workspace, and Call omits it.
template <class Op>
Call forward_call(const Machine& machine, const Op& op) {
  const auto pd = describe(machine, op);
  const Desc vector = vector_desc(machine.layout, op.x.image.channels);
  return {machine.engine,
          dnnl::batch_normalization_forward(pd),
          {{DNNL_ARG_SRC, pd.src_desc()},
           {DNNL_ARG_DST, pd.dst_desc()},
           {DNNL_ARG_SCALE, vector},
           {DNNL_ARG_SHIFT, vector},
           {DNNL_ARG_MEAN, vector},
           {DNNL_ARG_VARIANCE, vector},
           {DNNL_ARG_WORKSPACE, pd.workspace_desc()},
           {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}}};
}

// Moves `running` towards `saved`. The unbiased variance of a single value per channel does not
// exist; the biased one, zero, is used instead.
void update(const BatchNormForward& op, const ParameterParts& parts, const float* saved,
            float* running) {
  const std::size_t values = op.x.batch * op.x.image.height * op.x.image.width;
  const float unbiased =
      static_cast<float>(values) / static_cast<float>(std::max<std::size_t>(values - 1, 1));
  const float keep = 1.F - op.momentum;
  for (std::size_t c = 0; c < parts.first; ++c) {
    const std::size_t v = parts.second_begin + c;
    running[c] = keep * running[c] + op.momentum * saved[c];
    running[v] = keep * running[v] + op.momentum * unbiased * saved[v];
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormForward& op) {
  const ParameterParts parts = parts_of_norm(machine, op.x);
  const auto train = [op, parts, call = forward_call(machine, op)](const auto& operands,
                                                                   const auto& arguments) mutable {
    const std::size_t second = float_bytes(parts.second_begin).count();
    call.run({{DNNL_ARG_SRC, operands.in.x},
              {DNNL_ARG_SCALE, operands.in.parameters},
              {DNNL_ARG_SHIFT, operands.in.parameters + second},
              {DNNL_ARG_DST, operands.out.y},
              {DNNL_ARG_MEAN, operands.out.saved},
              {DNNL_ARG_VARIANCE, operands.out.saved + second},
              {DNNL_ARG_WORKSPACE, operands.out.mask},
              {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
    float* const saved = floats(operands.out.saved);
    zero_gaps(parts, saved);
    if (!arguments.is_recomputation) update(op, parts, saved, floats(operands.out.running));
  };
  return kernel_of(machine, op, train);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormInference& op) {
  const std::size_t second = float_bytes(parts_of_norm(machine, op.x).second_begin).count();
  const auto normalise = [second, call = forward_call(machine, op)](const auto& operands,
                                                                    const auto& arguments) mutable {
    call.run({{DNNL_ARG_SRC, operands.in.x},
              {DNNL_ARG_SCALE, operands.in.parameters},
              {DNNL_ARG_SHIFT, operands.in.parameters + second},
              {DNNL_ARG_MEAN, operands.in.running},
              {DNNL_ARG_VARIANCE, operands.in.running + second},
              {DNNL_ARG_DST, operands.out.y},
              {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
  };
  return kernel_of(machine, op, normalise);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormBackward& op) {
  const auto pd = describe(machine, op);
  const Desc vector = vector_desc(machine.layout, op.x.image.channels);
  const Call of_op{machine.engine,
                   dnnl::batch_normalization_backward(pd),
                   {{DNNL_ARG_SRC, pd.src_desc()},
                    {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                    {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
                    {DNNL_ARG_SCALE, vector},
                    {DNNL_ARG_SHIFT, vector},
                    {DNNL_ARG_DIFF_SCALE, vector},
                    {DNNL_ARG_DIFF_SHIFT, vector},
                    {DNNL_ARG_MEAN, vector},
                    {DNNL_ARG_VARIANCE, vector},
                    {DNNL_ARG_WORKSPACE, pd.workspace_desc()},
                    {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}}};
  const ParameterParts parts = parts_of_norm(machine, op.x);
  const auto differentiate = [call = of_op, parts](const auto& operands,
                                                   const auto& arguments) mutable {
    const std::size_t second = float_bytes(parts.second_begin).count();
    zero_gaps(parts, floats(operands.out.dparameters));
    call.run({{DNNL_ARG_SRC, operands.in.x},
              {DNNL_ARG_DIFF_DST, operands.in.dy},
              {DNNL_ARG_SCALE, operands.in.parameters},
              {DNNL_ARG_SHIFT, operands.in.parameters + second},
              {DNNL_ARG_MEAN, operands.in.saved},
              {DNNL_ARG_VARIANCE, operands.in.saved + second},
              {DNNL_ARG_WORKSPACE, operands.in.mask},
              {DNNL_ARG_DIFF_SRC, operands.out.dx},
              {DNNL_ARG_DIFF_SCALE, operands.out.dparameters},
              {DNNL_ARG_DIFF_SHIFT, operands.out.dparameters + second},
              {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
  };
  return kernel_of(machine, op, differentiate);
}

um::Bytes workspace_of(const Machine& machine, const BatchNormForward& op) {
  return scratchpad_bytes(describe(machine, op));
}
um::Bytes workspace_of(const Machine& machine, const BatchNormInference& op) {
  return scratchpad_bytes(describe(machine, op));
}
um::Bytes workspace_of(const Machine& machine, const BatchNormBackward& op) {
  return scratchpad_bytes(describe(machine, op));
}

um::Bytes saved_bytes(const Machine& machine, const BatchNormForward& op) {
  return um::Bytes{describe(machine, op).workspace_desc().get_size()};
}

}  // namespace spillway::host
