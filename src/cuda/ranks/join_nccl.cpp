#include "src/cuda/ranks/join_nccl.h"

#include <utility>

#include "src/cuda/ranks/nccl_communicator.h"

namespace spillway::cuda {

std::unique_ptr<Communicator> join_nccl(Communicator& ranks, DeviceCommunicator::Device device,
                                        const CommunicatorOptions& options,
                                        const std::string& library) {
  return std::make_unique<NcclCommunicator>(ranks, std::move(device), options, load_nccl(library));
}

}  // namespace spillway::cuda
