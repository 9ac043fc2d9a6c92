#include <algorithm>
#include <cstddef>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

dnnl::algorithm algorithm_of(const nets::Pool& pool) {
  if (pool.kind == nets::PoolKind::kMax) return dnnl::algorithm::pooling_max;
  return pool.counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                             : dnnl::algorithm::pooling_avg_exclude_padding;
}

// Returns the padding after the image: at least the padding before it, and enough for a last window
// that extends beyond the image.
std::size_t padding_behind(std::size_t x, std::size_t y, std::size_t kernel, std::size_t stride,
                           std::size_t padding) {
  const std::size_t end = (y - 1) * stride + kernel;
  return std::max(padding, end - std::min(end, x + padding));
}

template <class PoolOperation>
PoolDescs describe_pool(const Layout& layout, const PoolOperation& op) {
  const nets::Pool& pool = op.pool;
  const nets::Shape& x = op.x.image;
  const nets::Shape& y = op.y.image;
  return {.algorithm = algorithm_of(pool),
          .x = layout.desc(op.x),
          .y = layout.desc(op.y),
          .strides = dims({pool.stride.height, pool.stride.width}),
          .kernel = dims({pool.kernel.height, pool.kernel.width}),
          .padding = dims({pool.padding.height, pool.padding.width}),
          .padding_behind = dims({padding_behind(x.height, y.height, pool.kernel.height,
                                                 pool.stride.height, pool.padding.height),
                                  padding_behind(x.width, y.width, pool.kernel.width,
                                                 pool.stride.width, pool.padding.width)})};
}

dnnl::pooling_forward::primitive_desc describe(const Machine& machine, const PoolForward& op) {
  return pool_forward(machine.engine, describe_pool(machine.layout, op));
}

dnnl::pooling_backward::primitive_desc describe(const Machine& machine, const PoolBackward& op) {
  const PoolDescs descs = describe_pool(machine.layout, op);
  return pool_backward(machine.engine, descs, pool_forward(machine.engine, descs));
}

}  // namespace

// Average pooling has no index.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolForward& op) {
  const auto pd = describe(machine, op);
  Call call{machine.engine,
            dnnl::pooling_forward(pd),
            {{DNNL_ARG_SRC, pd.src_desc()},
             {DNNL_ARG_DST, pd.dst_desc()},
             {DNNL_ARG_WORKSPACE, pd.workspace_desc()},
             {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}}};
  const auto pool = [call](const auto& operands, const auto& arguments) mutable {
    call.run({{DNNL_ARG_SRC, operands.in.x},
              {DNNL_ARG_DST, operands.out.y},
              {DNNL_ARG_WORKSPACE, operands.out.index},
              {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
  };
  return kernel_of(machine, op, pool);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolBackward& op) {
  const auto pd = describe(machine, op);
  Call call{machine.engine,
            dnnl::pooling_backward(pd),
            {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
             {DNNL_ARG_WORKSPACE, pd.workspace_desc()},
             {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
             {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}}};
  const auto pool = [call](const auto& operands, const auto& arguments) mutable {
    call.run({{DNNL_ARG_DIFF_DST, operands.in.dy},
              {DNNL_ARG_WORKSPACE, operands.in.index},
              {DNNL_ARG_DIFF_SRC, operands.out.dx},
              {DNNL_ARG_SCRATCHPAD, arguments.workspace}});
  };
  return kernel_of(machine, op, pool);
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
