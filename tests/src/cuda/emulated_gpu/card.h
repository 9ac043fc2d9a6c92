#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card_memory.h"
#include "tests/src/cuda/emulated_gpu/card_races.h"
#include "tests/src/cuda/emulated_gpu/card_settings.h"
#include "tests/src/cuda/emulated_gpu/card_work.h"

namespace spillway::emulated {

/// All state of the emulated GPUs of this process. One mutex guards it; work is computed under it,
/// so that one piece of work runs at a time.
struct Card {
  Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  /// Writes the report. Reports what was never released as mistakes, unless the process may keep
  /// it.
  void end();

  std::recursive_mutex mutex;
  const CardSettings settings;
  CardMemory memory;
  CardRaces races;
  WorkQueue queue;
  WorkNode* running = nullptr;                       ///< the work that is being computed
  std::vector<std::unique_ptr<CUstream_st>> legacy;  ///< the default stream of each device
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<CUgraph_st*> graphs;
  std::set<CUgraphExec_st*> executables;
  std::set<int> contexts;       ///< devices on which a context was made
  std::multiset<int> retained;  ///< a device for each call that retained its context
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t mistakes = 0;
  std::string first_mistake;
  bool is_lost = false;
  std::uint64_t calls_after_loss = 0;

  /// A place of the product that calls a function of CUDA, by return addresses.
  struct CallSite {
    std::string function;
    std::uint64_t calls = 0;
  };
  std::map<std::string, CallSite> sites;
  std::map<std::string, std::uint64_t> calls;  ///< by function
  std::mt19937 failures;
};

/// Returns the card of this process, made at the first call and never destroyed: threads and the
/// destructors of other libraries call until the process is gone.
[[nodiscard]] Card& card();

/// The calling thread's device, and the error that cudaGetLastError() returns.
struct CardThread {
  int device = 0;
  cudaError_t last = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  std::vector<int> before;  ///< the devices that popped contexts make current again
};
[[nodiscard]] CardThread& card_thread();

/// Makes a context on the calling thread's device, as most functions do.
void make_context();
/// Returns the driver's function for contexts of this name; nullptr if there is none.
[[nodiscard]] void* find_context_function(const std::string& name);
/// Computes a node: checks its accesses, then runs its work.
void compute_node(WorkNode& node);
/// Notes an access of the running work: bounds, races, page faults.
void note_device_access(const void* begin, std::size_t size, bool writes);
/// Notes an access that a kernel makes, unless it is of a stack or of a block's shared memory.
void note_kernel_access(const void* begin, std::size_t size, bool writes);
/// Enqueues work after the checks that all enqueuing functions make.
[[nodiscard]] cudaError_t submit(cudaStream_t stream, WorkKind kind, Work work);
/// Returns the stream behind a handle, the legacy stream for null; nullptr if there is none.
[[nodiscard]] CUstream_st* find_stream(cudaStream_t handle);
/// Returns whether the stream is part of a capture that was invalidated.
[[nodiscard]] bool is_invalidated(const CUstream_st& stream);
/// Returns the capture in progress that the calling thread began; nullptr if there is none.
[[nodiscard]] Capture* own_capture();
/// Records the error for cudaGetLastError() and returns it. The capture of the thread, if there is
/// one, has failed then.
cudaError_t failed(cudaError_t error);

}  // namespace spillway::emulated
