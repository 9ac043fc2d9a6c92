#pragma once

#include <memory>
#include <span>
#include <string>

#include "src/cuda/ranks/device_communicator.h"
#include "src/ranks/communicator.h"
#include "um/cuda/driver/api.h"

namespace spillway::cuda {

/// Name that the system's library search resolves.
inline constexpr const char* kNcclLibrary = "libnccl.so.2";

/// Returns a communicator for the near memory of ranks; `api` is this rank's device. Collective
/// over `ranks`. Requires: `api` and `ranks` outlive it. All ranks have exchanged data on return,
/// so that NCCL has allocated its device memory. Throws: um::Error, one sentence that says what to
/// do, if two ranks use the same GPU, NCCL is not in `library`, or GPUs do not reach each other.
[[nodiscard]] std::unique_ptr<Communicator> join_devices(um::CudaApi& api, Communicator& ranks,
                                                         const CommunicatorOptions& options,
                                                         const std::string& library = kNcclLibrary);

/// Throws: um::Error that names them, if two ranks of one node use the same GPU. `gpus` are PCI bus
/// addresses, by rank.
void expect_gpu_each(std::span<const std::string> nodes, std::span<const std::string> gpus);

/// Joins the devices of several ranks with NCCL from `library`; collective over `ranks`. Throws:
/// um::Error, one sentence that says what to do, if NCCL is missing or this build is without it.
[[nodiscard]] std::unique_ptr<Communicator> join_nccl(Communicator& ranks,
                                                      DeviceCommunicator::Device device,
                                                      const CommunicatorOptions& options,
                                                      const std::string& library);

}  // namespace spillway::cuda
