#include "src/cuda/ranks/device_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/cuda/kernels/kernels.h"
#include "src/ranks/collectives.h"
#include "src/ranks/communicator.h"
#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr std::chrono::microseconds kFirstPause{5};
constexpr std::chrono::microseconds kLongestPause{50};

// NumberKernels for GPU memory, enqueued on a stream.
class CudaNumberKernels final : public NumberKernels {
 public:
  // Requires: `stream` outlives this object.
  explicit CudaNumberKernels(const ExchangeStream& stream) : stream_{stream} {}

  void add(std::span<float> to, std::span<const float> numbers) const override;
  void copy(std::span<float> to, std::span<const float> from) const override;
  void divide(std::span<float> numbers, float by) const override;
  void fill(std::span<float> numbers, float value) const override;

 private:
  const ExchangeStream& stream_;
};

void CudaNumberKernels::add(std::span<float> to, std::span<const float> numbers) const {
  add_numbers(stream_.enter(), to.data(), numbers.data(), to.size());
}

void CudaNumberKernels::copy(std::span<float> to, std::span<const float> from) const {
  stream_.copy(std::as_bytes(from), reinterpret_cast<std::byte*>(to.data()));
}

void CudaNumberKernels::divide(std::span<float> numbers, float by) const {
  divide_numbers(stream_.enter(), numbers.data(), by, numbers.size());
}

void CudaNumberKernels::fill(std::span<float> numbers, float value) const {
  fill_numbers(stream_.enter(), numbers.data(), value, numbers.size());
}

// Exchanges a number between all ranks, because NCCL connects two ranks, and allocates memory for
// that, at their first exchange.
void meet(um::CudaApi& api, Communicator& ranks) {
  const um::Bytes size{(2 * ranks.size() + 1) * sizeof(float)};
  const auto free = [&](std::byte* memory) { api.free_device(memory); };
  const std::unique_ptr<std::byte, decltype(free)> memory{api.allocate_device(size), free};
  std::vector<std::span<const std::byte>> sends;
  std::vector<std::span<std::byte>> receives;
  for (std::size_t i = 0; i < 2 * ranks.size(); i += 2) {
    sends.emplace_back(memory.get() + i * sizeof(float), sizeof(float));
    receives.emplace_back(memory.get() + (i + 1) * sizeof(float), sizeof(float));
  }
  ranks.exchange(sends, receives);
  ranks.sum({reinterpret_cast<float*>(memory.get()) + 2 * ranks.size(), 1});
  ranks.finish();
}

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
  um::expects(size() == 1, "a library that reaches other devices");
  copy_own(sends, receives);
}

void DeviceCommunicator::sum(std::span<float> /*numbers*/) {
  um::expects(size() == 1, "a library that reaches other devices");
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
  um::expects(sends.size() == size() && receives.size() == size(), "a piece for each rank");
  um::expects(sends[rank()].size() == receives[rank()].size(), "what it sends to itself fits");
  stream().copy(sends[rank()], receives[rank()].data());
}

std::unique_ptr<Communicator> join_devices(um::CudaApi& api, Communicator& ranks,
                                           const CommunicatorOptions& options,
                                           const std::string& library) {
  const um::CudaFacts facts = api.facts();
  expect_gpu_each(ranks.nodes(),
                  all_gather_texts(ranks, facts.uuid.empty() ? facts.pci_bus : facts.uuid));
  api.enter_thread();  // NCCL joins with the calling thread's device
  DeviceCommunicator::Device device;
  device.stream = std::make_unique<ExchangeStream>(api);
  device.kernels = std::make_unique<CudaNumberKernels>(*device.stream);
  if (ranks.size() == 1) {
    return std::make_unique<DeviceCommunicator>(ranks, std::move(device), options);
  }
  std::unique_ptr<Communicator> joined = join_nccl(ranks, std::move(device), options, library);
  meet(api, *joined);
  return joined;
}

void expect_gpu_each(std::span<const std::string> nodes, std::span<const std::string> gpus) {
  um::expects(nodes.size() == gpus.size(), "a GPU of each rank");
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    std::vector<std::size_t> same;
    for (std::size_t other = rank; other < nodes.size(); ++other) {
      if (nodes[other] == nodes[rank] && gpus[other] == gpus[rank]) same.push_back(other);
    }
    if (same.size() == 1) continue;
    throw um::Error{
        fmt::format("{} have one GPU, {}, together, and each rank needs one of its own; start as "
                    "many ranks as there are GPUs, or use --device host",
                    rank_names(same, nodes), gpus[rank])};
  }
}

}  // namespace spillway::cuda
