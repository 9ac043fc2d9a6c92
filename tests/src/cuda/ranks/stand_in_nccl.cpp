// A stand-in for NCCL; see stand_in_nccl.h.
#include "tests/src/cuda/ranks/stand_in_nccl.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>

using spillway::testing::NcclPiece;
using spillway::testing::NcclWork;
using spillway::testing::StandInNccl;

namespace {

using Message = std::vector<std::byte>;

StandInNccl& settings() {
  static StandInNccl all;
  return all;
}

// The ranks with one id.
struct World {
  std::set<int> joined;
  std::set<int> left;
  std::map<std::pair<int, int>, std::deque<Message>> sent;  // by sender and receiver
  std::map<std::uint64_t, std::map<int, Message>> summed;   // by number of the sum, then by rank
};

std::map<std::uint64_t, World>& worlds() {
  static std::map<std::uint64_t, World> all;
  return all;
}

// The group of the calling thread; `depth` counts its nested calls.
struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  NcclWork work;
};
thread_local Group group;

}  // namespace

struct ncclComm {
  World* world = nullptr;
  int ranks = 1;
  int rank = 0;
  bool leaves = false;
  std::uint64_t sums = 0;
  NcclWork pending;        // without pieces: no work in progress
  bool is_posted = false;  // whether other ranks can see its data
};

namespace {

bool is_sum(const NcclWork& work) { return work.pieces.front().kind == NcclPiece::Kind::kSum; }

void post(ncclComm& comm) {
  if (std::exchange(comm.is_posted, true)) return;
  for (const NcclPiece& piece : comm.pending.pieces) {
    const Message message{piece.bytes.begin(), piece.bytes.end()};
    if (piece.kind == NcclPiece::Kind::kSum) {
      comm.world->summed[comm.sums][comm.rank] = message;
    } else if (piece.kind == NcclPiece::Kind::kSend) {
      comm.world->sent[{comm.rank, piece.peer}].push_back(message);
    }
  }
}

bool has_all(ncclComm& comm) {
  if (is_sum(comm.pending)) {
    return comm.world->summed[comm.sums].size() == static_cast<std::size_t>(comm.ranks);
  }
  return std::ranges::all_of(comm.pending.pieces, [&](const NcclPiece& piece) {
    return piece.kind == NcclPiece::Kind::kSend ||
           !comm.world->sent[{piece.peer, comm.rank}].empty();
  });
}

// Sums in the order of ranks.
Message sum_of(const std::map<int, Message>& parts) {
  Message total = parts.begin()->second;
  for (auto part = std::next(parts.begin()); part != parts.end(); ++part) {
    for (std::size_t at = 0; at < total.size(); at += sizeof(float)) {
      float sum = 0;
      float other = 0;
      std::memcpy(&sum, total.data() + at, sizeof(float));
      std::memcpy(&other, part->second.data() + at, sizeof(float));
      sum += other;
      std::memcpy(total.data() + at, &sum, sizeof(float));
    }
  }
  return total;
}

// Returns the results and their destinations.
std::vector<std::pair<std::byte*, Message>> take(ncclComm& comm) {
  std::vector<std::pair<std::byte*, Message>> taken;
  for (const NcclPiece& piece : comm.pending.pieces) {
    if (piece.kind == NcclPiece::Kind::kSum) {
      taken.emplace_back(piece.bytes.data(), sum_of(comm.world->summed[comm.sums]));
    } else if (piece.kind == NcclPiece::Kind::kReceive) {
      auto& from = comm.world->sent[{piece.peer, comm.rank}];
      taken.emplace_back(piece.bytes.data(), std::move(from.front()));
      from.pop_front();
    }
  }
  if (is_sum(comm.pending)) ++comm.sums;
  return taken;
}

ncclResult_t state_of(ncclComm& comm) {
  StandInNccl& all = settings();
  NcclWork ready;
  {
    const std::lock_guard lock{all.mutex};
    const auto failure = all.failures.find(comm.rank);
    if (failure != all.failures.end()) return failure->second;
    if (comm.world->joined.size() < static_cast<std::size_t>(comm.ranks)) return ncclInProgress;
    if (comm.leaves) {
      return comm.world->left.size() < static_cast<std::size_t>(comm.ranks) ? ncclInProgress
                                                                            : ncclSuccess;
    }
    if (comm.pending.pieces.empty()) return ncclSuccess;
    post(comm);
    if (!has_all(comm)) return ncclInProgress;
    auto taken = std::make_shared<std::vector<std::pair<std::byte*, Message>>>(take(comm));
    ready = std::exchange(comm.pending, {});
    comm.is_posted = false;
    ready.act = [taken] {
      for (const auto& [to, message] : *taken) std::ranges::copy(message, to);
    };
  }
  all.give(ready);
  return ncclSuccess;
}

ncclResult_t add(NcclPiece piece, ncclComm_t comm, cudaStream_t stream) {
  group.comm = comm;
  group.work.rank = comm->rank;
  group.work.stream = stream;
  group.work.pieces.push_back(piece);
  if (group.depth > 0) return ncclSuccess;
  ++group.depth;
  return ncclGroupEnd();
}

std::span<std::byte> span_of(const void* data, std::size_t size) {
  return {static_cast<std::byte*>(const_cast<void*>(data)), size};
}

}  // namespace

extern "C" {

StandInNccl* stand_in_nccl() { return &settings(); }

ncclResult_t ncclGetVersion(int* version) {
  *version = settings().version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock{settings().mutex};
  const std::uint64_t number = worlds().size() + 1;
  worlds()[number];
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id, &number, sizeof(number));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;
  const std::lock_guard lock{settings().mutex};
  std::uint64_t number = 0;
  std::memcpy(&number, &id, sizeof(number));
  World& world = worlds().at(number);
  world.joined.insert(rank);
  *comm = new ncclComm{.world = &world, .ranks = ranks, .rank = rank};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = state_of(*comm);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock{settings().mutex};
  comm->leaves = true;
  comm->world->left.insert(comm->rank);
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ++settings().destroyed;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ++settings().aborted;
  delete comm;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "another failure";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) { return settings().last_error.c_str(); }

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0 || group.comm == nullptr) return ncclSuccess;
  settings().ask(group.work);
  const std::lock_guard lock{settings().mutex};
  ncclComm& comm = *std::exchange(group.comm, nullptr);
  if (!comm.pending.pieces.empty()) return ncclInvalidUsage;  // not waited for
  comm.pending = std::exchange(group.work, {});
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclInt8) return ncclInvalidArgument;
  return add({NcclPiece::Kind::kSend, span_of(data, count), peer}, comm, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (type != ncclInt8) return ncclInvalidArgument;
  return add({NcclPiece::Kind::kReceive, span_of(data, count), peer}, comm, stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (from != to || type != ncclFloat || operation != ncclSum) return ncclInvalidArgument;
  return add({NcclPiece::Kind::kSum, span_of(to, count * sizeof(float)), comm->rank}, comm, stream);
}

}  // extern "C"
