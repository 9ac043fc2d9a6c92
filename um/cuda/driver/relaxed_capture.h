#pragma once

#include <cuda_runtime_api.h>

namespace spillway::um {

/// While it lives, the calling thread may ask about events though some thread of the program is
/// capturing a stream: the driver would else refuse, and spoil the capture. What is asked about is
/// never part of a capture.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then what it was before
};

}  // namespace spillway::um
