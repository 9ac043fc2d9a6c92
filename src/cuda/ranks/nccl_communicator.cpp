#include "src/cuda/ranks/nccl_communicator.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include "src/cuda/ranks/device_communicator.h"
#include "src/ranks/agreement.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr int kOldest = NCCL_VERSION(2, 20, 0);  // shipped with the oldest CUDA that builds this
constexpr const char* kAdvice =
    "install NCCL 2.20 or newer (libnccl2, or pip's nvidia-nccl-cu13), put its folder in "
    "LD_LIBRARY_PATH, or use --device host";

std::string version_text(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return;
  throw um::Error{fmt::format("the NCCL that was found has no {}; {}", name, kAdvice)};
}

constexpr std::chrono::seconds kLeaving{10};  // time for other ranks to leave, too

// Returns a place with rank zero's id on all ranks.
NcclComm::Place place_of(Communicator& ranks, const NcclFunctions& nccl) {
  const std::array texts{NamedText{.name = "version of NCCL", .text = nccl.version}};
  expect_agreement(ranks, texts);
  NcclComm::Place place{
      .id = {}, .ranks = static_cast<int>(ranks.size()), .rank = static_cast<int>(ranks.rank())};
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

NcclFunctions load_nccl(const std::string& library) {
  void* const nccl = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nccl == nullptr) {
    throw um::Error{
        fmt::format("ranks on several GPUs speak over NCCL, which cannot be loaded ({}); {}",
                    dlerror(), kAdvice)};
  }
  NcclFunctions all;
  find(nccl, "ncclGetVersion", all.get_version);
  int version = 0;
  if (all.get_version(&version) != ncclSuccess || version < kOldest) {
    throw um::Error{
        fmt::format("NCCL {} is too old for ranks; {}", version_text(version), kAdvice)};
  }
  all.version = version_text(version);
  find(nccl, "ncclGetUniqueId", all.get_unique_id);
  find(nccl, "ncclCommInitRankConfig", all.comm_init_rank_config);
  find(nccl, "ncclCommGetAsyncError", all.comm_get_async_error);
  find(nccl, "ncclCommFinalize", all.comm_finalize);
  find(nccl, "ncclCommDestroy", all.comm_destroy);
  find(nccl, "ncclCommAbort", all.comm_abort);
  find(nccl, "ncclGetErrorString", all.get_error_string);
  find(nccl, "ncclGetLastError", all.get_last_error);
  find(nccl, "ncclGroupStart", all.group_start);
  find(nccl, "ncclGroupEnd", all.group_end);
  find(nccl, "ncclSend", all.send);
  find(nccl, "ncclRecv", all.recv);
  find(nccl, "ncclAllReduce", all.all_reduce);
  return all;
}

NcclComm::NcclComm(const NcclFunctions& nccl, const Place& place)
    : nccl_{nccl}, exceptions_{std::uncaught_exceptions()} {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(nccl_.comm_init_rank_config(&comm_, place.ranks, place.id, place.rank, &config));
}

NcclComm::~NcclComm() {
  if (comm_ != nullptr && std::uncaught_exceptions() == exceptions_) leave();
  abort();
}

void NcclComm::leave() noexcept {
  try {
    check(nccl_.comm_finalize(comm_));
    if (settle(kLeaving)) nccl_.comm_destroy(std::exchange(comm_, nullptr));
  } catch (const um::Error&) {  // all exchanges have been waited for
  }
}

void NcclComm::group(const std::function<void()>& calls) {
  check(nccl_.group_start());
  try {
    calls();
  } catch (...) {
    nccl_.group_end();  // an open group would block the destructor, too
    throw;
  }
  check(nccl_.group_end());
}

bool NcclComm::settle(std::chrono::milliseconds time_limit) const {
  return poll_until(time_limit, [this] { return is_settled(); });
}

bool NcclComm::is_settled() const {
  ncclResult_t state = ncclSuccess;
  check(nccl_.comm_get_async_error(comm_, &state));
  check(state);
  return state != ncclInProgress;
}

void NcclComm::abort() noexcept {
  if (comm_ != nullptr) nccl_.comm_abort(std::exchange(comm_, nullptr));
}

void NcclComm::check(ncclResult_t result) const {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const words = nccl_.get_last_error(comm_);
  const std::string_view last = words != nullptr ? words : "";
  throw um::Error{fmt::format("NCCL: {}{}{}{}", nccl_.get_error_string(result),
                              last.empty() ? "" : " (", last, last.empty() ? "" : ")")};
}

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
      for (std::size_t r = 0; r < size(); ++r) {
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

// After one failed call, all further calls fail with the same error.
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

// NCCL must enqueue its work before anything else is enqueued.
void NcclCommunicator::settle() {
  if (!comm_.settle(time_limit())) give_up();
}

void NcclCommunicator::give_up() {
  comm_.abort();
  wait_for_all(processes());  // names the ranks that do not respond
  throw um::Error{fmt::format(
      "NCCL has not ended an exchange for {:g} s, although all ranks answer: their GPUs do not "
      "reach each other; NCCL_DEBUG=INFO has it say more",
      static_cast<double>(time_limit().count()) * 1e-3)};
}

std::unique_ptr<Communicator> join_nccl(Communicator& ranks, DeviceCommunicator::Device device,
                                        const CommunicatorOptions& options,
                                        const std::string& library) {
  return std::make_unique<NcclCommunicator>(ranks, std::move(device), options, load_nccl(library));
}

}  // namespace spillway::cuda
