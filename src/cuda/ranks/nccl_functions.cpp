#include "src/cuda/ranks/nccl_functions.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr int kOldest = NCCL_VERSION(2, 20, 0);  // that came with the oldest CUDA that builds this
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

}  // namespace spillway::cuda
