#include "src/cuda/ranks/device_communicator.h"
#include "um/error.h"

namespace spillway::cuda {

std::unique_ptr<Communicator> join_nccl(Communicator& /*ranks*/,
                                        DeviceCommunicator::Device /*device*/,
                                        const CommunicatorOptions& /*options*/,
                                        const std::string& /*library*/) {
  throw um::Error{
      "this build has no NCCL, by which ranks on several GPUs speak; build it where nccl.h is, or "
      "use --device host"};
}

}  // namespace spillway::cuda
