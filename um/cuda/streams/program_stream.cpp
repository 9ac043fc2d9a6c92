#include "um/cuda/streams/program_stream.h"

#include <functional>

#include "um/error.h"

namespace spillway::um {

class ProgramStreams::CudaProgramStream final : public ProgramStream {
 public:
  CudaProgramStream(ProgramStreams& all, cudaStream_t stream) : all_{all}, stream_{stream} {}

  [[nodiscard]] bool can_discard() const override { return all_.has_discard_; }

  [[nodiscard]] std::unique_ptr<const Event> record(Range dead) override {
    if (all_.api_.is_captured(stream_)) {
      throw Error{
          "the stream is being captured into a graph, whose work is done later, once or often; "
          "free its memory when the graph is not used any more"};
    }
    auto event = std::make_unique<CudaEvent>(all_.api_);
    if (dead.empty()) {
      event->record(stream_);
      return event;
    }
    // The driver takes no discard on the legacy stream, and the program's work need not wait for
    // it.
    CudaEvent reached{all_.api_};
    reached.record(stream_);
    auto* const dropping = all_.dropping();
    reached.make_wait(dropping);
    all_.api_.discard({&dead, 1}, dropping);
    event->record(dropping);
    return event;
  }

  // A graph must not wait for events from outside.
  void join(const std::function<void()>& call) override {
    if (all_.api_.is_captured(stream_)) return;
    const std::lock_guard lock{all_.joining_};
    all_.waiting_.add(stream_);
    try {
      call();
    } catch (...) {
      all_.waiting_.remove(stream_);
      throw;
    }
    all_.waiting_.remove(stream_);
  }

 private:
  ProgramStreams& all_;
  cudaStream_t stream_;
};

std::unique_ptr<ProgramStream> ProgramStreams::of(cudaStream_t stream) {
  return std::make_unique<CudaProgramStream>(*this, stream);
}

// Makes the stream when it is first needed, since trainings have no streams of other programs.
cudaStream_t ProgramStreams::dropping() {
  const std::lock_guard lock{mutex_};
  if (!dropping_) dropping_.emplace(api_, "um dead");
  return dropping_->get();
}

}  // namespace spillway::um
