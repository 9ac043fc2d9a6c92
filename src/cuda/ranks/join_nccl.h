#pragma once

#include <memory>
#include <string>

#include "src/cuda/ranks/device_communicator.h"

namespace spillway::cuda {

/// Joins the devices of several ranks by NCCL, which is in `library`. All of `ranks` call it.
/// Throws: um::Error, one sentence that says what to do, where there is no NCCL, or this was built
/// without.
[[nodiscard]] std::unique_ptr<Communicator> join_nccl(Communicator& ranks,
                                                      DeviceCommunicator::Device device,
                                                      const CommunicatorOptions& options,
                                                      const std::string& library);

}  // namespace spillway::cuda
