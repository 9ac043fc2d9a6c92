#pragma once

#include <memory>
#include <span>
#include <string>

#include "src/cuda/ranks/device_communicator.h"
#include "src/ranks/communicator.h"
#include "um/cuda/driver/api.h"

namespace spillway::cuda {

/// Where the system looks for libraries.
inline constexpr const char* kNcclLibrary = "libnccl.so.2";

/// What exchanges the near memory of ranks, of which this one's is that of `api`'s device. All of
/// `ranks` call it; both outlive it. Each rank has heard of each when it returns, so that NCCL has
/// the memory that it takes of the device. Throws: um::Error, one sentence that says what to do,
/// where two ranks have one GPU, NCCL is not in `library`, or GPUs do not reach each other.
[[nodiscard]] std::unique_ptr<Communicator> join_devices(um::CudaApi& api, Communicator& ranks,
                                                         const CommunicatorOptions& options,
                                                         const std::string& library = kNcclLibrary);

/// Throws: um::Error that names them, where two ranks of one node have the same GPU. `gpus` are
/// their places on the PCI bus, by rank.
void expect_gpu_each(std::span<const std::string> nodes, std::span<const std::string> gpus);

/// Joins the devices of several ranks by NCCL, which is in `library`. All of `ranks` call it.
/// Throws: um::Error, one sentence that says what to do, where there is no NCCL, or this was built
/// without.
[[nodiscard]] std::unique_ptr<Communicator> join_nccl(Communicator& ranks,
                                                      DeviceCommunicator::Device device,
                                                      const CommunicatorOptions& options,
                                                      const std::string& library);

}  // namespace spillway::cuda
