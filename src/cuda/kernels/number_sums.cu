#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/number_sums.h"

namespace spillway::cuda {
namespace {

__global__ void add_all(float* to, const float* numbers, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) to[i] += numbers[i];
}

__global__ void divide_all(float* numbers, float by, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) numbers[i] /= by;
}

__global__ void fill_all(float* numbers, float value, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) numbers[i] = value;
}

}  // namespace

void add_numbers(cudaStream_t stream, float* to, const float* numbers, std::size_t count) {
  launch(stream, count, add_all, to, numbers, count);
}

void divide_numbers(cudaStream_t stream, float* numbers, float by, std::size_t count) {
  launch(stream, count, divide_all, numbers, by, count);
}

void fill_numbers(cudaStream_t stream, float* numbers, float value, std::size_t count) {
  launch(stream, count, fill_all, numbers, value, count);
}

}  // namespace spillway::cuda
