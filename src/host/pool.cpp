#include "src/host/kernels.h"

namespace spillway::host {
namespace {

template <class PoolOperation>
PoolDescs describe_pool(const Layout& layout, const PoolOperation& op) {
  const nets::Pool& pool = op.pool;
  return {.algorithm = pool.kind == nets::PoolKind::kMax
                           ? dnnl::algorithm::pooling_max
                           : dnnl::algorithm::pooling_avg_exclude_padding,
          .x = layout.desc(op.x),
          .y = layout.desc(op.y),
          .strides = dims({pool.stride.height, pool.stride.width}),
          .kernel = dims({pool.kernel.height, pool.kernel.width}),
          .padding = dims({pool.padding.height, pool.padding.width})};
}

dnnl::pooling_forward::primitive_desc describe(const Machine& machine, const PoolForward& op) {
  return pool_forward(machine.engine, describe_pool(machine.layout, op));
}

dnnl::pooling_backward::primitive_desc describe(const Machine& machine, const PoolBackward& op) {
  const PoolDescs descs = describe_pool(machine.layout, op);
  return pool_backward(machine.engine, descs, pool_forward(machine.engine, descs));
}

// x -> y, index forward; dy, index -> dx backward. Average pooling has no index.
class PoolForwardKernel final : public HostKernel {
 public:
  PoolForwardKernel(const Machine& machine, const PoolForward& op)
      : HostKernel{machine, op.pool.kind == nets::PoolKind::kMax ? 3U : 2U},
        call_{make_call(machine, op)} {}

 private:
  static Call make_call(const Machine& machine, const PoolForward& op) {
    const auto pd = describe(machine, op);
    return {machine.engine,
            dnnl::pooling_forward(pd),
            {{DNNL_ARG_SRC, pd.src_desc()},
             {DNNL_ARG_DST, pd.dst_desc()},
             {DNNL_ARG_WORKSPACE, pd.workspace_desc()},
             {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}}};
  }

  void compute(const KernelArguments& arguments) override {
    const auto& operands = arguments.operands;
    call_.run({{DNNL_ARG_SRC, operands[0]},
               {DNNL_ARG_DST, operands[1]},
               {DNNL_ARG_WORKSPACE, operands.back()},
               {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
  }

  Call call_;
};

class PoolBackwardKernel final : public HostKernel {
 public:
  PoolBackwardKernel(const Machine& machine, const PoolBackward& op)
      : HostKernel{machine, op.pool.kind == nets::PoolKind::kMax ? 3U : 2U},
        call_{make_call(machine, op)} {}

 private:
  static Call make_call(const Machine& machine, const PoolBackward& op) {
    const auto pd = describe(machine, op);
    return {machine.engine,
            dnnl::pooling_backward(pd),
            {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
             {DNNL_ARG_WORKSPACE, pd.workspace_desc()},
             {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
             {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}}};
  }

  void compute(const KernelArguments& arguments) override {
    const auto& operands = arguments.operands;
    call_.run({{DNNL_ARG_DIFF_DST, operands[0]},
               {DNNL_ARG_WORKSPACE, operands[1]},
               {DNNL_ARG_DIFF_SRC, operands.back()},
               {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
  }

  Call call_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolForward& op) {
  return std::make_unique<PoolForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolBackward& op) {
  return std::make_unique<PoolBackwardKernel>(machine, op);
}

um::Bytes workspace_of(const Machine& machine, const PoolForward& op) {
  return scratchpad_bytes(describe(machine, op));
}
um::Bytes workspace_of(const Machine& machine, const PoolBackward& op) {
  return scratchpad_bytes(describe(machine, op));
}

um::Bytes saved_bytes(const Machine& machine, const PoolForward& op) {
  return um::Bytes{describe(machine, op).workspace_desc().get_size()};
}

}  // namespace spillway::host
