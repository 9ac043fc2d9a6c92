#include "src/cuda/ranks/device_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr std::chrono::microseconds kFirstPause{5};
constexpr std::chrono::microseconds kLongestPause{50};

}  // namespace

ExchangeStream::ExchangeStream(um::CudaApi& api)
    : api_{api}, stream_{api, "exchange"}, event_{api} {}

cudaStream_t ExchangeStream::enter() const {
  api_.enter_thread();
  um::expects(!api_.is_captured(stream_.get()), "exchanges that are part of no graph");
  return stream_.get();
}

void ExchangeStream::copy(std::span<const std::byte> from, std::byte* to) const {
  if (from.empty() || from.data() == to) return;
  api_.copy(from, to, stream_.get());
}

bool ExchangeStream::wait(std::chrono::milliseconds time_limit,
                          const std::function<void()>& look) const {
  api_.record(event_.get(), stream_.get());
  return poll_until(time_limit, [&] {
    if (api_.has_fired(event_.get())) return true;
    look();
    return false;
  });
}

bool poll_until(std::chrono::milliseconds time_limit, const std::function<bool()>& has_ended) {
  const auto end = std::chrono::steady_clock::now() + time_limit;
  for (std::chrono::microseconds pause = kFirstPause; !has_ended();
       pause = std::min(2 * pause, kLongestPause)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

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
  throw um::Error{std::string{sentence}};  // GCC 12 does not see that the call never returns
}

void DeviceCommunicator::copy_own(SentPieces sends, ReceivedPieces receives) const {
  um::expects(sends.size() == ranks() && receives.size() == ranks(), "a piece for each rank");
  um::expects(sends[rank()].size() == receives[rank()].size(), "what it sends to itself fits");
  stream().copy(sends[rank()], receives[rank()].data());
}

}  // namespace spillway::cuda
