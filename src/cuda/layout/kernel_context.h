#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "src/ops/precision.h"
#include "um/bytes.h"

namespace spillway::cuda {

class AttentionEngines;
class ConvolutionEngines;
class StepNumbers;

/// What kernels are made for. All that it points to outlives all kernels.
struct Machine {
  cudaStream_t stream = nullptr;  ///< where kernels enqueue their work
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  Precision precision = Precision::kFp32;
  bool deterministic = false;             ///< only engines that give the same bits each time
  um::Bytes max_workspace;                ///< algorithms that need more are not offered
  ConvolutionEngines* engines = nullptr;  ///< what cuDNN offers for `precision`
  AttentionEngines* attention = nullptr;  ///< null: attention is of our kernels alone
  StepNumbers* numbers = nullptr;         ///< what differs from step to step
};

}  // namespace spillway::cuda
