#include "src/cuda/ranks/device_communicator.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "um/error.h"

namespace spillway::cuda {

DeviceCommunicator::DeviceCommunicator(Communicator& ranks, Device device,
                                       const CommunicatorOptions& options)
    : Communicator{ranks.nodes(), ranks.rank()},
      ranks_{ranks},
      device_{std::move(device)},
      time_limit_{options.time_limit} {}

void DeviceCommunicator::exchange(SentPieces sends, ReceivedPieces receives) {
  um::expects(ranks() == 1, "a library that reaches other devices");
  copy_own(sends, receives);
}

void DeviceCommunicator::sum(std::span<float> /*numbers*/) {
  um::expects(ranks() == 1, "a library that reaches other devices");
}

void DeviceCommunicator::finish() {
  if (stream().wait(time_limit_, [] {})) return;
  throw um::Error{fmt::format(
      "the GPU has not finished what ranks exchange for {:g} s; give a longer --rank-timeout, or "
      "see with NCCL_DEBUG=INFO what it waits for",
      static_cast<double>(time_limit_.count()) * 1e-3)};
}

void DeviceCommunicator::abort(std::string_view sentence) {
  ranks_.abort(sentence);
  throw um::Error{std::string{sentence}};  // GCC 12 does not see that the call does not return
}

void DeviceCommunicator::copy_own(SentPieces sends, ReceivedPieces receives) const {
  um::expects(sends.size() == ranks() && receives.size() == ranks(), "a piece for each rank");
  um::expects(sends[rank()].size() == receives[rank()].size(), "what it sends to itself fits");
  stream().copy(sends[rank()], receives[rank()].data());
}

}  // namespace spillway::cuda
