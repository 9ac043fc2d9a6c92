// A CUDA program without Spillway. It prints the same with and without the preloaded library, and
// on standard error how many of its blocks are unified memory.
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// For programs with a default stream for each thread.
extern "C" {
cudaError_t cudaMallocAsync_ptsz(void** address, std::size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void* address, cudaStream_t stream);
}

namespace {

constexpr std::size_t kMiB = 1U << 20U;
constexpr std::size_t kSize = 2 * kMiB;

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(status));
  std::exit(1);
}

struct FreedAtExit {
  FreedAtExit() = default;
  FreedAtExit(const FreedAtExit&) = delete;
  FreedAtExit& operator=(const FreedAtExit&) = delete;
  ~FreedAtExit() { must(cudaFree(block), "a free at the end"); }
  void* block = nullptr;
};
FreedAtExit last;

int unified_blocks = 0;

void* counted(void* block) {
  cudaPointerAttributes attributes{};
  must(cudaPointerGetAttributes(&attributes, block), "attributes");
  unified_blocks += attributes.type == cudaMemoryTypeManaged ? 1 : 0;
  return block;
}

void* allocate(std::size_t bytes) {
  void* block = nullptr;
  must(cudaMalloc(&block, bytes), "cudaMalloc");
  return counted(block);
}

// FNV-1a.
std::uint64_t digest(const unsigned char* bytes, std::size_t count) {
  std::uint64_t hash = 1469598103934665603U;
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 1099511628211U;
  return hash;
}

std::uint64_t digest_of(const void* block, std::size_t bytes, cudaStream_t stream) {
  std::vector<unsigned char> copy(bytes);
  must(cudaMemcpyAsync(copy.data(), block, bytes, cudaMemcpyDeviceToHost, stream), "a copy");
  must(cudaStreamSynchronize(stream), "its end");
  return digest(copy.data(), bytes);
}

void print(const char* what, std::uint64_t number) {
  std::printf("%s %016llx\n", what, static_cast<unsigned long long>(number));
}

void use_blocks(int device) {
  must(cudaSetDevice(device), "the device");
  std::vector<unsigned char> numbers(kSize);
  for (std::size_t i = 0; i < kSize; ++i) numbers[i] = static_cast<unsigned char>(i * i >> 9U);
  void* const large = allocate(kSize);
  void* const other = allocate(kSize);
  void* const small = allocate(4096);
  must(cudaMemcpy(large, numbers.data(), kSize, cudaMemcpyHostToDevice), "a copy");
  must(cudaMemcpy(other, large, kSize, cudaMemcpyDeviceToDevice), "a copy");
  must(cudaMemset(other, 3, kSize / 2), "a fill");
  must(cudaMemcpy(small, other, 4096, cudaMemcpyDeviceToDevice), "a copy");
  print("blocks", digest_of(other, kSize, nullptr) + digest_of(small, 4096, nullptr));
  for (void* const block : {large, other, small}) must(cudaFree(block), "cudaFree");
}

// Frees each piece while the GPU still works with it.
void use_streams() {
  constexpr int kPieces = 8;
  std::array<cudaStream_t, 2> streams{};
  for (cudaStream_t& stream : streams) must(cudaStreamCreate(&stream), "a stream");
  void* pinned = nullptr;
  must(cudaMallocHost(&pinned, kPieces * kSize), "pinned memory");
  auto* const results = static_cast<unsigned char*>(pinned);
  for (int i = 0; i < kPieces; ++i) {
    cudaStream_t stream = streams.at(static_cast<std::size_t>(i) % 2);
    void* piece = nullptr;
    must(cudaMallocAsync(&piece, kSize, stream), "cudaMallocAsync");
    must(cudaMemsetAsync(counted(piece), i, kSize, stream), "a fill");
    must(cudaMemcpyAsync(results + static_cast<std::size_t>(i) * kSize, piece, kSize,
                         cudaMemcpyDeviceToHost, stream),
         "a copy");
    must(cudaFreeAsync(piece, stream), "cudaFreeAsync");
  }
  must(cudaDeviceSynchronize(), "the end of all work");
  print("streams", digest(results, kPieces * kSize));

  void* piece = nullptr;
  must(cudaMallocAsync_ptsz(&piece, kSize, nullptr), "cudaMallocAsync_ptsz");
  must(cudaMemsetAsync(counted(piece), 5, kSize, cudaStreamPerThread), "a fill");
  print("thread's stream", digest_of(piece, kSize, cudaStreamPerThread));
  must(cudaFreeAsync_ptsz(piece, nullptr), "cudaFreeAsync_ptsz");

  // A graph's memory is the runtime's.
  must(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed), "a capture");
  const cudaError_t captured = cudaMallocAsync(&piece, kSize, streams[0]);
  if (captured == cudaSuccess) counted(piece);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(streams[0], &graph), "the end of the capture");
  must(cudaGraphDestroy(graph), "the end of the graph");
  print("captured", static_cast<std::uint64_t>(captured));
  for (cudaStream_t stream : streams) must(cudaStreamDestroy(stream), "the end of a stream");
  must(cudaFreeHost(pinned), "the end of pinned memory");
}

}  // namespace

int main() {
  use_blocks(0);
  use_streams();
  last.block = allocate(kSize);
  int devices = 0;
  must(cudaGetDeviceCount(&devices), "the devices");
  for (int device = 1; device < devices; ++device) use_blocks(device);
  std::fprintf(stderr, "%d unified blocks\n", unified_blocks);
  return 0;
}
