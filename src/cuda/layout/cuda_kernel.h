#pragma once

#include <cstddef>

#include "src/cuda/layout/kernel_context.h"
#include "src/ops/backend.h"
#include "um/error.h"

namespace spillway::cuda {

/// A kernel that enqueues its work on the machine's stream and returns.
class CudaKernel : public Kernel {
 public:
  void run(const KernelArguments& arguments) final {
    um::expects(arguments.operands.size() == operands_, "as many operands as the operation lists");
    enqueue(arguments);
  }

 protected:
  CudaKernel(const Machine& machine, std::size_t operands)
      : machine_{machine}, operands_{operands} {}

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] cudaStream_t stream() const { return machine_.stream; }

 private:
  virtual void enqueue(const KernelArguments& arguments) = 0;

  Machine machine_;
  std::size_t operands_;
};

}  // namespace spillway::cuda
