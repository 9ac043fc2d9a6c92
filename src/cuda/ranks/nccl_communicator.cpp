#include "src/cuda/ranks/nccl_communicator.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <utility>

#include "src/ranks/agreement.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

// The first rank's id, on all of them.
NcclComm::Place place_of(Communicator& ranks, const NcclFunctions& nccl) {
  const std::array texts{NamedText{.name = "version of NCCL", .text = nccl.version}};
  expect_agreement(ranks, texts);
  NcclComm::Place place{
      .id = {}, .ranks = static_cast<int>(ranks.ranks()), .rank = static_cast<int>(ranks.rank())};
  if (ranks.rank() == 0) {
    const ncclResult_t result = nccl.get_unique_id(&place.id);
    if (result != ncclSuccess) {
      throw um::Error{fmt::format("NCCL: {}", nccl.get_error_string(result))};
    }
  }
  ranks.broadcast(std::as_writable_bytes(std::span{&place.id, std::size_t{1}}), 0);
  return place;
}

}  // namespace

NcclCommunicator::NcclCommunicator(Communicator& ranks, Device device,
                                   const CommunicatorOptions& options, NcclFunctions nccl)
    : DeviceCommunicator{ranks, std::move(device), options},
      nccl_{std::move(nccl)},
      comm_{nccl_, place_of(ranks, nccl_)} {
  unless_over([&] { settle(); });
}

void NcclCommunicator::exchange(SentPieces sends, ReceivedPieces receives) {
  unless_over([&] {
    auto* const on = stream().enter();
    copy_own(sends, receives);
    comm_.group([&] {
      for (std::size_t r = 0; r < ranks(); ++r) {
        if (r == rank()) continue;
        const auto peer = static_cast<int>(r);
        if (!sends[r].empty()) {
          comm_.check(
              nccl_.send(sends[r].data(), sends[r].size(), ncclInt8, peer, comm_.get(), on));
        }
        if (!receives[r].empty()) {
          comm_.check(
              nccl_.recv(receives[r].data(), receives[r].size(), ncclInt8, peer, comm_.get(), on));
        }
      }
    });
    settle();
  });
}

void NcclCommunicator::sum(std::span<float> numbers) {
  if (numbers.empty()) return;
  unless_over([&] {
    comm_.check(nccl_.all_reduce(numbers.data(), numbers.data(), numbers.size(), ncclFloat, ncclSum,
                                 comm_.get(), stream().enter()));
    settle();
  });
}

void NcclCommunicator::finish() {
  unless_over([&] {
    if (!stream().wait(time_limit(), [&] { comm_.look(); })) give_up();
  });
}

// What ends one call ends all.
template <class Work>
void NcclCommunicator::unless_over(const Work& work) {
  if (!over_.empty()) throw um::Error{over_};
  try {
    work();
  } catch (const std::exception& error) {
    over_ = error.what();
    comm_.abort();
    throw;
  }
}

// NCCL has to enqueue what it was given before anything else is.
void NcclCommunicator::settle() {
  if (!comm_.settle(time_limit())) give_up();
}

void NcclCommunicator::give_up() {
  comm_.abort();
  wait_for_all(processes());  // names those that do not come
  throw um::Error{fmt::format(
      "NCCL has not ended an exchange for {:g} s, although all ranks answer: their GPUs do not "
      "reach each other; NCCL_DEBUG=INFO has it say more",
      static_cast<double>(time_limit().count()) * 1e-3)};
}

}  // namespace spillway::cuda
