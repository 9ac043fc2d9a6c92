#include "src/cuda/ranks/exchange_stream.h"

#include <algorithm>
#include <thread>

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

}  // namespace spillway::cuda
