#pragma once

#include <nccl.h>

#include <string>

namespace spillway::cuda {

/// The functions of NCCL that exchanges call, from a library that is loaded when ranks on several
/// GPUs want it: the program starts where there is none.
struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  std::string version;  ///< "2.28.9"
};

/// Loads it, for the rest of the process. Throws: um::Error, one sentence that says what to do,
/// where it is not there, cannot be loaded, or is older than 2.20.
[[nodiscard]] NcclFunctions load_nccl(const std::string& library);

}  // namespace spillway::cuda
