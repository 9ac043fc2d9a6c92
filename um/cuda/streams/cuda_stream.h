#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "um/cuda/driver/handles.h"
#include "um/cuda/streams/compute_streams.h"
#include "um/stream.h"
#include "um/threads/engine.h"

namespace spillway::um {

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

}  // namespace spillway::um
