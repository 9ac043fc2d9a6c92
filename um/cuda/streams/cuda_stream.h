#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "um/cuda/driver/api.h"
#include "um/stream.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// All streams of a device that run kernels, to make them wait together.
///
/// Thread safety: several threads may call it concurrently.
class ComputeStreams {
 public:
  explicit ComputeStreams(CudaApi& api) : api_{api} {}

  void add(cudaStream_t stream) {
    const std::lock_guard lock{mutex_};
    streams_.push_back(stream);
  }
  void remove(cudaStream_t stream) {
    const std::lock_guard lock{mutex_};
    std::erase(streams_, stream);
  }
  /// Delays later work of all streams until `event` has fired.
  void wait(cudaEvent_t event) {
    const std::lock_guard lock{mutex_};
    for (auto* const stream : streams_) api_.wait(stream, event);
  }

 private:
  CudaApi& api_;
  std::mutex mutex_;
  std::vector<cudaStream_t> streams_;
};

/// A GPU stream. One thread runs the enqueued work, which launches kernels on native(). A second
/// thread waits for the GPU and calls the notices. The destructor waits for all work.
class CudaStream final : public Stream {
 public:
  /// `api` and `siblings` outlive this object. `name` names the thread: at most 15 characters.
  CudaStream(CudaApi& api, ComputeStreams& siblings, const std::string& name);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  /// The stream for kernel launches, never the legacy stream.
  [[nodiscard]] cudaStream_t native() const { return stream_.get(); }

  void enqueue(std::function<void()> work) override;
  [[nodiscard]] std::shared_ptr<const Event> record() override;
  void wait(std::shared_ptr<const Event> event) override;
  void synchronize() override;
  void notify(Notice then) override;
  [[nodiscard]] std::unique_ptr<Lanes> make_lanes() override;
  void read(std::span<const std::byte> near, std::span<std::byte> into) override;
  void write(std::span<const std::byte> from, std::span<std::byte> near) override;
  void label(std::string_view name) override;

 private:
  using Clock = std::chrono::steady_clock;

  template <class Work>
  void do_or_fail(const Work& work) noexcept;
  void do_unless_failed(const std::function<void()>& work);
  void fail(std::exception_ptr failure) noexcept;
  void ask_for_notice(const Notice& then) noexcept;
  void give_notice(cudaEvent_t event, const Notice& then) noexcept;
  [[nodiscard]] cudaEvent_t take_event();
  void finish();
  void set_clock();

  CudaApi& api_;
  ComputeStreams& siblings_;
  StreamHandle stream_;
  // The stream's clock: the GPU passed `origin_` at `origin_time_`. It is set while no notice is in
  // flight.
  EventHandle origin_;
  Clock::time_point origin_time_;
  bool is_labelled_ = false;  // used by the working thread only

  std::mutex mutex_;            // guards the members below
  std::exception_ptr failure_;  // the first one since the last synchronize()
  std::vector<EventHandle> events_;
  std::vector<cudaEvent_t> free_events_;

  Engine watching_;  // last: the engines' jobs use the other members
  Engine working_;   // its jobs use `watching_`, too
};

/// An event that the stream's thread records and the GPU fires later. If recording fails, the event
/// counts as fired, since record() has waited for earlier work. If the driver fails, the event
/// never fires and wait() returns; the stream's synchronize() reports the failure.
class CudaEvent final : public Event {
 public:
  explicit CudaEvent(CudaApi& api) : api_{&api}, event_{api} {}

  /// Requires: called once, by the stream's thread. Throws: CudaError.
  void record(cudaStream_t stream);
  /// Delays later work of `stream` until the event fires; blocks the caller until the event is
  /// recorded. Throws: CudaError.
  void make_wait(cudaStream_t stream) const;

  [[nodiscard]] bool has_fired() const override;
  void wait() const override;

 private:
  enum class State { kAhead, kRecorded, kFailed };

  State wait_until_recorded() const;

  CudaApi* api_;
  EventHandle event_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::kAhead;
};

/// A GPU stream with one more stream per copy direction. The destructor waits for all copies.
class CudaLanes final : public Lanes {
 public:
  /// The arguments outlive this object. Throws: CudaError.
  CudaLanes(CudaApi& api, cudaStream_t compute);
  CudaLanes(const CudaLanes&) = delete;
  CudaLanes& operator=(const CudaLanes&) = delete;
  ~CudaLanes() override;

  void run(const std::function<void()>& give) override;
  void keep(const std::function<void()>& give) override;
  [[nodiscard]] bool has_kept() const override { return kept_.has_value(); }
  void run_kept() override;

  void copy(Lane lane, std::span<const std::byte> from, std::byte* to) override;
  [[nodiscard]] Mark mark(Lane lane) override;
  void wait(Lane lane, Mark mark) override;
  [[nodiscard]] Nanoseconds time(Mark mark) override;

 private:
  void fork_and_join(const std::function<void()>& give);
  void drain_all() noexcept;
  [[nodiscard]] cudaStream_t stream(Lane lane) const;

  CudaApi& api_;
  cudaStream_t compute_;
  StreamHandle in_;
  StreamHandle out_;
  std::deque<EventHandle> events_;  // one per mark, reused by each run
  Mark marks_ = 0;
  std::optional<GraphHandle> kept_;
};

}  // namespace spillway::um
