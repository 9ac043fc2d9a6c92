#include "src/host/layout/thread_floats.h"

#include <omp.h>

namespace spillway::host {
namespace {

constexpr std::size_t kFloatsOfALine = 16;

}  // namespace

ThreadFloats::ThreadFloats(std::size_t count)
    : count_{count},
      stride_{(count / kFloatsOfALine + 2) * kFloatsOfALine},
      all_(stride_ * static_cast<std::size_t>(omp_get_max_threads())) {}

std::span<float> ThreadFloats::mine() {
  const auto thread = static_cast<std::size_t>(omp_get_thread_num());
  return std::span{all_}.subspan(thread * stride_, count_);
}

}  // namespace spillway::host
