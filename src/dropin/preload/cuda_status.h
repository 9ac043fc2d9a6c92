#pragma once

namespace spillway::dropin {

/// cudaError_t, cudaStream_t and cudaStreamCaptureStatus as the CUDA runtime's functions pass them:
/// this library is built where there is no CUDA.
using CudaStatus = int;
using CudaStream = void*;
using CudaCapture = int;

inline constexpr CudaStatus kCudaSuccess = 0;
inline constexpr CudaStatus kCudaInvalidValue = 1;
inline constexpr CudaStatus kCudaNoSuchFunction = 302;  // cudaErrorSharedObjectSymbolNotFound
inline constexpr CudaStatus kCudaUnknown = 999;
inline constexpr CudaCapture kCudaCapturesNothing = 0;

}  // namespace spillway::dropin
