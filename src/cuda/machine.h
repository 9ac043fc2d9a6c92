#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "um/bytes.h"

namespace spillway::cuda {

/// How activations and gradients are stored and multiplied. Parameters, their gradients, statistics
/// and sums are float in all of them.
enum class Precision {
  kFp32,  ///< float, multiplied as float
  kTf32,  ///< float, multiplied as TF32
  kBf16   ///< bfloat16 activations and gradients; kernels read a bfloat16 copy of the weights
};

class ConvolutionEngines;

/// What kernels are made for. All that it points to outlives all kernels.
struct Machine {
  cudaStream_t stream = nullptr;  ///< where kernels enqueue their work
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  Precision precision = Precision::kFp32;
  bool deterministic = false;             ///< only engines that give the same bits each time
  um::Bytes most_workspace;               ///< algorithms that need more are not offered
  ConvolutionEngines* engines = nullptr;  ///< what cuDNN offers for `precision`
};

}  // namespace spillway::cuda
