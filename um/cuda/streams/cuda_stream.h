#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "um/cuda/driver/api.h"
#include "um/stream.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// The streams of a device that kernels run on, for what all of them have to wait for.
///
/// Thread safety: safe to call from several threads at once.
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
  /// What they are given from now on starts only after `event` has fired.
  void wait(cudaEvent_t event) {
    const std::lock_guard lock{mutex_};
    for (auto* const stream : streams_) api_.wait(stream, event);
  }

 private:
  CudaApi& api_;
  std::mutex mutex_;
  std::vector<cudaStream_t> streams_;
};

/// A stream of the GPU: one thread does the work enqueued, which launches kernels on native(), and
/// a second one waits for the GPU and gives the notices. Its end waits for all work.
class CudaStream final : public Stream {
 public:
  /// Both arguments outlive it. `name` is the thread's: at most 15 characters.
  CudaStream(CudaApi& api, ComputeStreams& siblings, const std::string& name);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  /// What kernels are launched on. Never the legacy stream.
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
  // The stream's clock: when the GPU passed `origin_`, it was `origin_time_`. Set while no notice
  // is under way.
  EventHandle origin_;
  Clock::time_point origin_time_;
  bool is_labelled_ = false;  // the working thread's

  std::mutex mutex_;            // guards what follows
  std::exception_ptr failure_;  // the first since the last synchronize()
  std::vector<EventHandle> events_;
  std::vector<cudaEvent_t> free_events_;

  Engine watching_;  // the engines last: their jobs use the others
  Engine working_;   // and its jobs the one before
};

/// An event that the GPU fires: first the stream's thread records it, later the GPU gets there.
/// One whose recording failed has fired: record() has waited for what was before it. When the
/// driver fails, nobody can tell: it has not fired then, and wait() returns; the stream's
/// synchronize() tells why.
class CudaEvent final : public Event {
 public:
  explicit CudaEvent(CudaApi& api) : api_{&api}, event_{api} {}

  /// Called once, by the stream's thread. Throws: CudaError.
  void record(cudaStream_t stream);
  /// Lets later work of `stream` wait; the caller waits until this has been recorded.
  /// Throws: CudaError.
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

}  // namespace spillway::um
