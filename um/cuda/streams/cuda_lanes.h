#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>

#include "um/cuda/driver/api.h"
#include "um/stream.h"

namespace spillway::um {

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
