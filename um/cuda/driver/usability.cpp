#include "um/cuda/driver/usability.h"

#include <cuda_runtime_api.h>

#include "um/cuda/driver/cuda_facts.h"

namespace spillway::um {

std::optional<std::string> why_unusable(const DriverAnswer& answer, int ordinal) {
  const std::string otherwise = ", or use --device host";
  if (answer.driver_version == 0) {
    return "there is no NVIDIA driver on this machine; install one" + otherwise;
  }
  if (answer.status == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is too old: it knows CUDA " + version_text(answer.driver_version) +
           " and this program needs " + version_text(answer.runtime_version) + "; update it" +
           otherwise;
  }
  if (answer.status == cudaErrorNoDevice || (answer.status == cudaSuccess && answer.devices == 0)) {
    return "the NVIDIA driver finds no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES" +
           otherwise;
  }
  if (answer.status != cudaSuccess) {
    return "the GPU does not answer (" + answer.status_text + "); look at nvidia-smi" + otherwise;
  }
  if (ordinal < 0 || ordinal >= answer.devices) {
    return "there is no cuda:" + std::to_string(ordinal) +
           "; the GPUs are cuda:0 to cuda:" + std::to_string(answer.devices - 1);
  }
  return std::nullopt;
}

}  // namespace spillway::um
