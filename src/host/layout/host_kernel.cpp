#include "src/host/layout/host_kernel.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace spillway::host {
namespace {

using dnnl::query;

constexpr um::Bytes kWeightAlignment{64};

// Describes the weights as the primitive reads or writes them.
Desc own_weights(const WeightedPrimitive& weighted) {
  return weighted.primitive.query_md(weighted.direction == Direction::kBackwardWeights
                                         ? query::diff_weights_md
                                         : query::weights_md,
                                     0);
}

bool needs_reorder(const WeightedPrimitive& weighted) {
  return own_weights(weighted) != weighted.block_weights;
}

dnnl::reorder::primitive_desc reorder_of(const dnnl::engine& engine,
                                         const WeightedPrimitive& weighted) {
  const Desc own = own_weights(weighted);
  return weighted.direction == Direction::kBackwardWeights
             ? reorder(engine, own, weighted.block_weights)
             : reorder(engine, weighted.block_weights, own);
}

// Returns the bytes of the reordered weights at the start of the workspace.
um::Bytes reordered_bytes(const WeightedPrimitive& weighted) {
  if (!needs_reorder(weighted)) return {};
  return um::round_up(um::Bytes{own_weights(weighted).get_size()}, kWeightAlignment);
}

Call make_call(const dnnl::engine& engine, const WeightedPrimitive& weighted) {
  const dnnl::primitive_desc& pd = weighted.primitive;
  const dnnl::primitive primitive(pd);
  const Desc own = own_weights(weighted);
  const Desc scratchpad = pd.scratchpad_desc();
  switch (weighted.direction) {
    case Direction::kForward:
      return {engine,
              primitive,
              {{DNNL_ARG_SRC, pd.query_md(query::src_md, 0)},
               {DNNL_ARG_WEIGHTS, own},
               {DNNL_ARG_BIAS, pd.query_md(query::weights_md, 1)},
               {DNNL_ARG_DST, pd.query_md(query::dst_md, 0)},
               {DNNL_ARG_SCRATCHPAD, scratchpad}}};
    case Direction::kBackwardData:
      return {engine,
              primitive,
              {{DNNL_ARG_DIFF_DST, pd.query_md(query::diff_dst_md, 0)},
               {DNNL_ARG_WEIGHTS, own},
               {DNNL_ARG_DIFF_SRC, pd.query_md(query::diff_src_md, 0)},
               {DNNL_ARG_SCRATCHPAD, scratchpad}}};
    case Direction::kBackwardWeights:
      break;
  }
  return {engine,
          primitive,
          {{DNNL_ARG_SRC, pd.query_md(query::src_md, 0)},
           {DNNL_ARG_DIFF_DST, pd.query_md(query::diff_dst_md, 0)},
           {DNNL_ARG_DIFF_WEIGHTS, own},
           {DNNL_ARG_DIFF_BIAS, pd.query_md(query::diff_weights_md, 1)},
           {DNNL_ARG_SCRATCHPAD, scratchpad}}};
}

class WeightedKernel final : public HostKernel {
 public:
  WeightedKernel(const Machine& machine, const WeightedPrimitive& weighted)
      : HostKernel{machine, 3},
        direction_{weighted.direction},
        parts_{weighted.parts},
        reordered_bytes_{reordered_bytes(weighted)},
        call_{make_call(machine.engine, weighted)} {
    if (!needs_reorder(weighted)) return;
    const dnnl::reorder::primitive_desc pd = reorder_of(machine.engine, weighted);
    reorder_.emplace(
        machine.engine, dnnl::reorder(pd),
        std::initializer_list<std::pair<int, Desc>>{{DNNL_ARG_FROM, pd.src_desc()},
                                                    {DNNL_ARG_TO, pd.dst_desc()},
                                                    {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  }

 private:
  void compute(const KernelArguments& arguments) override {
    std::byte* const scratchpad = arguments.workspace + reordered_bytes_.count();
    if (direction_ == Direction::kBackwardWeights) {
      const auto operands = operands_of<LinearBackwardWeights>(arguments.operands);
      compute_weights(operands.in.x, operands.in.dy, operands.out.dparameters, arguments.workspace,
                      scratchpad);
    } else if (direction_ == Direction::kForward) {
      const auto operands = operands_of<LinearForward>(arguments.operands);
      std::byte* const block = operands.in.parameters;
      call_.run({{DNNL_ARG_SRC, operands.in.x},
                 {DNNL_ARG_WEIGHTS, own_weights_of(block, arguments.workspace, scratchpad)},
                 {DNNL_ARG_BIAS, bias_of(block)},
                 {DNNL_ARG_DST, operands.out.y},
                 {DNNL_ARG_SCRATCHPAD, scratchpad}});
    } else {
      const auto operands = operands_of<LinearBackwardData>(arguments.operands);
      std::byte* const block = operands.in.parameters;
      call_.run({{DNNL_ARG_DIFF_DST, operands.in.dy},
                 {DNNL_ARG_WEIGHTS, own_weights_of(block, arguments.workspace, scratchpad)},
                 {DNNL_ARG_DIFF_SRC, operands.out.dx},
                 {DNNL_ARG_SCRATCHPAD, scratchpad}});
    }
  }

  // Returns the weights in the primitive's own format.
  std::byte* own_weights_of(std::byte* block, std::byte* reordered, std::byte* scratchpad) {
    if (!reorder_) return block;
    reorder_->run(
        {{DNNL_ARG_FROM, block}, {DNNL_ARG_TO, reordered}, {DNNL_ARG_SCRATCHPAD, scratchpad}});
    return reordered;
  }

  void compute_weights(std::byte* x, std::byte* dy, std::byte* block, std::byte* reordered,
                       std::byte* scratchpad) {
    zero_gaps(parts_, reinterpret_cast<float*>(block));
    call_.run({{DNNL_ARG_SRC, x},
               {DNNL_ARG_DIFF_DST, dy},
               {DNNL_ARG_DIFF_WEIGHTS, reorder_ ? reordered : block},
               {DNNL_ARG_DIFF_BIAS, bias_of(block)},
               {DNNL_ARG_SCRATCHPAD, scratchpad}});
    if (reorder_) {
      reorder_->run(
          {{DNNL_ARG_FROM, reordered}, {DNNL_ARG_TO, block}, {DNNL_ARG_SCRATCHPAD, scratchpad}});
    }
  }

  [[nodiscard]] std::byte* bias_of(std::byte* block) const {
    return block + float_bytes(parts_.second_begin).count();
  }

  Direction direction_;
  ParameterParts parts_;
  um::Bytes reordered_bytes_;
  Call call_;
  std::optional<Call> reorder_;
};

}  // namespace

bool is_reference(const WeightedPrimitive& weighted) {
  return std::string_view{weighted.primitive.impl_info_str()}.starts_with("ref");
}

um::Bytes workspace_of(const Machine& machine, const WeightedPrimitive& weighted) {
  um::Bytes scratchpad = scratchpad_bytes(weighted.primitive);
  if (needs_reorder(weighted)) {
    scratchpad = std::max(scratchpad, scratchpad_bytes(reorder_of(machine.engine, weighted)));
  }
  return reordered_bytes(weighted) + scratchpad;
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const WeightedPrimitive& weighted) {
  return std::make_unique<WeightedKernel>(machine, weighted);
}

}  // namespace spillway::host
