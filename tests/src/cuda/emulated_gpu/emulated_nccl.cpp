// NCCL between emulated GPUs of several processes, which give each other files in one folder.
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace emulated = spillway::emulated;
namespace files = std::filesystem;

/// A rank among those that were given one id.
struct ncclComm {
  files::path folder;
  int ranks = 1;
  int rank = 0;
  bool leaves = false;
  ncclResult_t state = ncclSuccess;                       // the first failure of its work
  std::map<std::pair<int, int>, std::uint64_t> messages;  // by sender and receiver
};

namespace {

using Message = std::vector<char>;
constexpr std::chrono::seconds kPatience{100};
constexpr const char* kAborted = "aborted";

enum class PieceKind { kSend, kReceive, kSum };

/// A part of a group of calls.
struct Piece {
  PieceKind kind = PieceKind::kSend;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t size = 0;  // in bytes
  int peer = 0;
};

/// The group that the calling thread has begun; `depth` counts its nested calls.
struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Piece> pieces;
};
thread_local Group group;

bool exists(const ncclComm& comm, const std::string& name) {
  std::error_code ignored;
  return files::exists(comm.folder / name, ignored);
}

// Makes a file that others see when it is whole.
void put(const ncclComm& comm, const std::string& name, const char* data, std::size_t size) {
  const files::path unfinished = comm.folder / (name + ".part");
  std::ofstream{unfinished, std::ios::binary}.write(data, static_cast<std::streamsize>(size));
  std::error_code ignored;  // the folder is gone: the others have left
  files::rename(unfinished, comm.folder / name, ignored);
}

std::string next_name(ncclComm& comm, int sender, int receiver) {
  return std::to_string(sender) + "." + std::to_string(receiver) + "." +
         std::to_string(comm.messages[{sender, receiver}]++);
}

void send(ncclComm& comm, int peer, const void* data, std::size_t size) {
  put(comm, next_name(comm, comm.rank, peer), static_cast<const char*>(data), size);
}

// Returns nothing, and notes a failure, if the peer sends nothing.
Message receive(ncclComm& comm, int peer, std::size_t size) {
  const std::string name = next_name(comm, peer, comm.rank);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!exists(comm, name)) {
    if (exists(comm, kAborted) || std::chrono::steady_clock::now() > end) {
      comm.state = ncclRemoteError;
      return {};
    }
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  Message message(files::file_size(comm.folder / name));
  std::ifstream{comm.folder / name, std::ios::binary}.read(
      message.data(), static_cast<std::streamsize>(message.size()));
  files::remove(comm.folder / name);
  if (message.size() == size) return message;
  emulated::report_mistake("NCCL: a message has " + std::to_string(message.size()) +
                           " bytes, and its receiver expects " + std::to_string(size));
  return {};
}

// Adds in the order of ranks.
void sum(ncclComm& comm, const Piece& piece) {
  std::vector<float> total;
  std::vector<float> part(piece.size / sizeof(float));
  for (int rank = 0; rank < comm.ranks; ++rank) {
    if (rank == comm.rank) {
      std::memcpy(part.data(), piece.from, piece.size);
    } else {
      const Message message = receive(comm, rank, piece.size);
      if (message.empty()) return;
      std::memcpy(part.data(), message.data(), piece.size);
    }
    if (total.empty()) {
      total = part;
    } else {
      std::ranges::transform(total, part, total.begin(), std::plus<>{});
    }
  }
  std::memcpy(piece.to, total.data(), piece.size);
}

// All is sent before anything is awaited, so that no two ranks wait for each other.
void exchange(ncclComm& comm, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (piece.kind == PieceKind::kReceive) continue;
    for (int peer = 0; peer < comm.ranks; ++peer) {
      const bool is_for_it = piece.kind == PieceKind::kSum ? peer != comm.rank : peer == piece.peer;
      if (is_for_it) send(comm, peer, piece.from, piece.size);
    }
  }
  for (const Piece& piece : pieces) {
    if (piece.kind == PieceKind::kSum) sum(comm, piece);
    if (piece.kind != PieceKind::kReceive) continue;
    const Message message = receive(comm, piece.peer, piece.size);
    std::ranges::copy(message, static_cast<char*>(piece.to));
  }
}

ncclResult_t give(Group given) {
  emulated::Work work{.name = "NCCL exchange"};
  for (const Piece& piece : given.pieces) {
    if (piece.from != nullptr) work.accesses.push_back({piece.from, piece.size, false});
    if (piece.to != nullptr) work.accesses.push_back({piece.to, piece.size, true});
  }
  work.compute = [comm = given.comm, pieces = std::move(given.pieces)] { exchange(*comm, pieces); };
  return emulated::enqueue(given.stream, std::move(work)) == 0 ? ncclSuccess
                                                               : ncclUnhandledCudaError;
}

ncclResult_t add(const char* name, const Piece& piece, ncclComm_t comm, cudaStream_t stream) {
  if (emulated::begin_call(name) != 0) return ncclUnhandledCudaError;
  group.comm = comm;
  group.stream = stream;
  group.pieces.push_back(piece);
  if (group.depth > 0) return ncclSuccess;
  return give(std::exchange(group, {}));
}

// Returns whether all ranks have come to a place that each of them marks with a file.
bool are_all_at(const ncclComm& comm, const std::string& place) {
  for (int rank = 0; rank < comm.ranks; ++rank) {
    if (!exists(comm, place + std::to_string(rank))) return false;
  }
  return true;
}

void mark(const ncclComm& comm, const std::string& place) {
  put(comm, place + std::to_string(comm.rank), "", 0);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::string folder = files::temp_directory_path() / "emulated-nccl-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr || folder.size() >= sizeof id->internal) {
    return ncclSystemError;
  }
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, folder.data(), folder.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (emulated::begin_call("ncclCommInitRankConfig") != 0) return ncclUnhandledCudaError;
  if (config->blocking != 0) return ncclInvalidUsage;
  auto made = std::make_unique<ncclComm>();
  made->folder = id.internal;
  made->ranks = ranks;
  made->rank = rank;
  mark(*made, "joined");
  *comm = made.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const bool is_there = are_all_at(*comm, comm->leaves ? "left" : "joined");
  *state = comm->state != ncclSuccess ? comm->state : is_there ? ncclSuccess : ncclInProgress;
  if (exists(*comm, kAborted)) *state = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->leaves = true;
  mark(*comm, "left");
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::unique_ptr<ncclComm> ended{comm};
  mark(*ended, "gone");
  std::error_code ignored;
  if (are_all_at(*ended, "gone")) files::remove_all(ended->folder, ignored);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::unique_ptr<ncclComm> ended{comm};
  put(*ended, kAborted, "", 0);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled cuda error";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) { return ""; }

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0 || group.comm == nullptr) return ncclSuccess;
  return give(std::exchange(group, {}));
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclInt8) return ncclInvalidArgument;
  return add("ncclSend", {PieceKind::kSend, data, nullptr, count, peer}, comm, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (type != ncclInt8) return ncclInvalidArgument;
  return add("ncclRecv", {PieceKind::kReceive, nullptr, data, count, peer}, comm, stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat || operation != ncclSum) return ncclInvalidArgument;
  return add("ncclAllReduce", {PieceKind::kSum, from, to, count * sizeof(float), comm->rank}, comm,
             stream);
}

}  // extern "C"
