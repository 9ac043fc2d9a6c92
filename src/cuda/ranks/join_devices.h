#pragma once

#include <memory>
#include <span>
#include <string>

#include "src/ranks/communicator.h"
#include "um/cuda/driver/api.h"

namespace spillway::cuda {

/// What exchanges the near memory of ranks, of which this one's is that of `api`'s device. All of
/// `ranks` call it; both outlive it. Throws: um::Error, one sentence that says what to do, where two
/// ranks have one GPU, or NCCL cannot be used.
[[nodiscard]] std::unique_ptr<Communicator> join_devices(um::CudaApi& api, Communicator& ranks,
                                                         const CommunicatorOptions& options);

/// Throws: um::Error that names them, where two ranks of one node have the same GPU. `gpus` are
/// their places on the PCI bus, by rank.
void expect_gpu_each(std::span<const std::string> nodes, std::span<const std::string> gpus);

}  // namespace spillway::cuda
