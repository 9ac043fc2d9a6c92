#include "src/cuda/ranks/nccl_comm.h"

#include <fmt/format.h>

#include <exception>
#include <string_view>
#include <utility>

#include "src/cuda/ranks/exchange_stream.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr std::chrono::seconds kLeaving{10};  // what other ranks may take to leave, too

}  // namespace

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
  } catch (const um::Error&) {  // what was exchanged has been waited for
  }
}

void NcclComm::group(const std::function<void()>& calls) {
  check(nccl_.group_start());
  try {
    calls();
  } catch (...) {
    nccl_.group_end();  // a group that stays open would keep the end, too
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

}  // namespace spillway::cuda
