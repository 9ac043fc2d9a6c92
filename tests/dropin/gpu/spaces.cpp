// Uses the C functions over GPUs as a CUDA program does, with NVIDIA's headers and shared runtime.
// Arguments: what to do, and the device. Prints what went wrong, and then fails.
#include <cuda_runtime_api.h>
#include <um/dropin/spillway_um.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMiB = 1U << 20U;
constexpr std::size_t kNear = 16 * kMiB;
constexpr std::size_t kBlock = 24 * kMiB;  // more than near memory

void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "not so: %s; %s\n", what, spillway_um_last_error());
  std::exit(1);
}
void must(spillway_um_status status, const char* what) { expect(status == SPILLWAY_UM_OK, what); }
void must(cudaError_t status, const char* what) { expect(status == cudaSuccess, what); }

spillway_um_space make_space(const std::string& device, std::size_t capacity,
                             bool oversubscribe = false) {
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.device = device.c_str();
  options.near_bytes = kNear;
  options.capacity_bytes = capacity;
  options.oversubscribe = oversubscribe ? 1 : 0;
  spillway_um_space space;
  must(spillway_um_create(&options, &space), "a space");
  return space;
}

std::byte* allocate(spillway_um_space space, std::size_t bytes) {
  void* address = nullptr;
  must(spillway_um_allocate(space, bytes, 0, &address), "an allocation");
  return static_cast<std::byte*>(address);
}

std::uint64_t near_bytes(spillway_um_space space, const void* address, std::size_t bytes) {
  std::uint64_t near = 0;
  must(spillway_um_near_bytes(space, address, bytes, &near), "near bytes");
  return near;
}

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  return stream;
}

int ordinal_of(spillway_um_space space) {
  std::int32_t ordinal = -1;
  must(spillway_um_device(space, &ordinal), "the device of a space");
  return ordinal;
}

// Copies numbers to a block of a space, lets the GPU overwrite the first third, and compares what
// comes back.
class Work {
 public:
  explicit Work(std::byte* block) : block_{block}, numbers_(kBlock), stream_{make_stream()} {
    for (std::size_t i = 0; i < kBlock; ++i) numbers_[i] = static_cast<unsigned char>(i * i >> 7U);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() { must(cudaStreamDestroy(stream_), "the end of the stream"); }

  void send() {
    must(cudaMemcpyAsync(block_, numbers_.data(), kBlock, cudaMemcpyDefault, stream_), "a copy");
    must(cudaStreamSynchronize(stream_), "its end");
  }
  void overwrite() {
    must(cudaMemsetAsync(block_, 7, kBlock / 3, stream_), "a fill");
    must(cudaStreamSynchronize(stream_), "its end");
    std::memset(numbers_.data(), 7, kBlock / 3);
  }
  void expect_numbers() {
    std::vector<unsigned char> back(kBlock);
    must(cudaMemcpyAsync(back.data(), block_, kBlock, cudaMemcpyDefault, stream_), "a copy back");
    must(cudaStreamSynchronize(stream_), "its end");
    expect(back == numbers_, "the numbers came back");
  }

 private:
  std::byte* block_;
  std::vector<unsigned char> numbers_;
  cudaStream_t stream_;
};

// Without hints: the fill finds its pages far.
void use_faults(const std::string& device) {
  const spillway_um_space space = make_space(device, 4 * kNear);
  must(cudaSetDevice(ordinal_of(space)), "the device");
  std::byte* const block = allocate(space, kBlock);
  {
    Work work{block};
    work.send();
    work.overwrite();
    work.expect_numbers();
  }
  must(spillway_um_free(space, block), "a free");
  must(spillway_um_destroy(space), "the end of the space");
}

void use_hints(const std::string& device) {
  const spillway_um_space space = make_space(device, 4 * kNear);
  must(cudaSetDevice(ordinal_of(space)), "the device");
  std::byte* const block = allocate(space, kBlock);
  {
    Work work{block};
    work.send();
    must(spillway_um_advise(space, block, kBlock, SPILLWAY_UM_ADVICE_PREFER_NEAR), "advice");
    must(spillway_um_prefetch(space, block, kBlock), "a prefetch");
    must(spillway_um_synchronize(space), "its end");
    expect(near_bytes(space, block, kBlock) == kNear, "as much is near as the budget lets");
    work.overwrite();
    must(spillway_um_offload(space, block, kNear), "an offload");
    must(spillway_um_synchronize(space), "its end");
    expect(near_bytes(space, block, kBlock) == 0, "nothing is near");
    must(spillway_um_prefetch(space, block, kNear), "a prefetch");
    must(spillway_um_synchronize(space), "its end");
    must(spillway_um_touch(space, block, kNear, SPILLWAY_UM_READ), "a touch");
    work.expect_numbers();
  }
  must(spillway_um_discard(space, block, kBlock), "a discard");
  spillway_um_counters counters{};
  counters.version = SPILLWAY_UM_COUNTERS_VERSION;
  must(spillway_um_get_counters(space, &counters), "counters");
  expect(counters.bytes_prefetched == 2 * kNear && counters.bytes_offloaded == kNear &&
             counters.near_peak_bytes == kNear && counters.refused_hints == 4,
         "the counters say what moved");
  must(spillway_um_free(space, block), "a free");
  expect(spillway_um_free(space, block) == SPILLWAY_UM_NOT_ALLOCATED, "it is freed once");
  must(spillway_um_destroy(space), "the end of the space");
}

// A pipeline of blocks that are freed while the GPU still fills them: two streams, and room for two
// blocks at a time, so memory is reused as soon as a stream allows.
void use_streams(const std::string& device) {
  constexpr std::size_t kPiece = 2 * kMiB;
  constexpr int kPieces = 12;
  const spillway_um_space space = make_space(device, 2 * kPiece);
  must(cudaSetDevice(ordinal_of(space)), "the device");
  std::array<cudaStream_t, 2> streams{make_stream(), make_stream()};
  void* results = nullptr;
  must(cudaMallocHost(&results, kPieces * kPiece), "pinned memory");
  auto* const bytes = static_cast<std::byte*>(results);
  for (int i = 0; i < kPieces; ++i) {
    cudaStream_t stream = streams.at(static_cast<std::size_t>(i) % 2);
    void* piece = nullptr;
    must(spillway_um_allocate_async(space, kPiece, 256, stream, &piece), "a piece");
    must(cudaMemsetAsync(piece, i, kPiece, stream), "a fill");
    must(cudaMemcpyAsync(bytes + static_cast<std::size_t>(i) * kPiece, piece, kPiece,
                         cudaMemcpyDefault, stream),
         "a copy");
    must(spillway_um_free_async(space, piece, stream), "a free on the stream");
    expect(spillway_um_free_async(space, piece, stream) == SPILLWAY_UM_NOT_ALLOCATED,
           "for the program it is freed now");
  }
  for (cudaStream_t stream : streams) must(cudaStreamSynchronize(stream), "the streams' end");
  for (std::size_t i = 0; i < kPieces * kPiece; ++i) {
    expect(bytes[i] == static_cast<std::byte>(i / kPiece), "every piece has its number");
  }

  void* piece = nullptr;
  must(spillway_um_allocate_async(space, kPiece, 256, streams[0], &piece), "a piece");
  must(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed), "a capture");
  expect(spillway_um_free_async(space, piece, streams[0]) == SPILLWAY_UM_FAILED,
         "a captured stream frees nothing");
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(streams[0], &graph), "the end of the capture");
  must(cudaGraphDestroy(graph), "the end of the graph");
  must(spillway_um_free_async(space, piece, nullptr), "a free on the default stream");
  for (cudaStream_t stream : streams) must(cudaStreamDestroy(stream), "the end of a stream");
  must(cudaFreeHost(results), "the end of pinned memory");
  must(spillway_um_destroy(space), "the end of the space");
}

// More memory than the GPU has: a block that stays, and others that come and go. The driver is told
// that freed blocks are dead, which must not harm those that take their place.
void use_oversubscription(const std::string& device) {
  constexpr int kRounds = 8;
  const spillway_um_space space = make_space(device, 4 * kBlock, true);
  must(cudaSetDevice(ordinal_of(space)), "the device");
  std::array<cudaStream_t, 2> streams{make_stream(), make_stream()};
  void* lasting = nullptr;
  must(spillway_um_allocate_async(space, kBlock, 0, streams[0], &lasting), "a block");
  must(cudaMemsetAsync(lasting, 77, kBlock, streams[0]), "a fill");
  void* ends = nullptr;  // the last MiB of each block
  must(cudaMallocHost(&ends, (kRounds + 1) * kMiB), "pinned memory");
  const auto end_at = [&](int round) {
    return static_cast<std::byte*>(ends) + static_cast<std::size_t>(round) * kMiB;
  };
  const auto copy_end = [&](int round, const void* block, cudaStream_t stream) {
    must(cudaMemcpyAsync(end_at(round), static_cast<const std::byte*>(block) + kBlock - kMiB, kMiB,
                         cudaMemcpyDefault, stream),
         "a copy");
  };
  for (int round = 0; round < kRounds; ++round) {
    cudaStream_t stream = streams.at(static_cast<std::size_t>(round) % 2);
    void* block = nullptr;
    must(spillway_um_allocate_async(space, kBlock, 0, stream, &block), "a block");
    must(cudaMemsetAsync(block, round, kBlock, stream), "a fill");
    copy_end(round, block, stream);
    must(spillway_um_free_async(space, block, stream), "a free");
  }
  copy_end(kRounds, lasting, streams[0]);
  for (cudaStream_t stream : streams) must(cudaStreamSynchronize(stream), "the streams' end");
  for (int round = 0; round <= kRounds; ++round) {
    const auto number = static_cast<std::byte>(round < kRounds ? round : 77);
    expect(*end_at(round) == number && std::memcmp(end_at(round), end_at(round) + 1, kMiB - 1) == 0,
           "every block has its number");
  }
  for (cudaStream_t stream : streams) must(cudaStreamDestroy(stream), "the end of a stream");
  must(cudaFreeHost(ends), "the end of pinned memory");
  must(spillway_um_destroy(space), "the end of the space");
}

std::size_t free_bytes(int device) {
  must(cudaSetDevice(device), "the device");
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total), "its memory");
  return free;
}

// A space on each of two GPUs, used by turns.
void use_two_devices() {
  constexpr std::size_t kSize = 8 * kMiB;
  std::array<spillway_um_space, 2> spaces{make_space("cuda:0", kNear), make_space("cuda:1", kNear)};
  std::array<std::byte*, 2> blocks{};
  std::array<std::size_t, 2> before{free_bytes(0), free_bytes(1)};
  for (std::size_t i : {0U, 1U}) {
    blocks.at(i) = allocate(spaces.at(i), kSize);
    cudaPointerAttributes attributes{};
    must(cudaPointerGetAttributes(&attributes, blocks.at(i)), "attributes");
    expect(attributes.type == cudaMemoryTypeManaged, "it is unified memory");
    expect(attributes.device == static_cast<int>(i), "it is of its space's device");
  }
  for (std::size_t i : {0U, 1U}) {  // while the other device is current
    must(cudaSetDevice(1 - static_cast<int>(i)), "the other device");
    must(spillway_um_prefetch(spaces.at(i), blocks.at(i), kSize), "a prefetch");
    must(spillway_um_synchronize(spaces.at(i)), "its end");
    int current = -1;
    must(cudaGetDevice(&current), "the current device");
    expect(current == 1 - static_cast<int>(i), "the current device stays");
    for (std::size_t j : {0U, 1U}) {
      const std::size_t near = before.at(j) - free_bytes(static_cast<int>(j));
      expect(near == (j <= i ? kSize : 0), "a prefetch takes its own device's memory");
    }
  }
  for (std::size_t i : {0U, 1U}) {
    must(spillway_um_free(spaces.at(i), blocks.at(i)), "a free");
    must(spillway_um_destroy(spaces.at(i)), "the end of a space");
  }
}

// The program itself makes no context; threads that have never called CUDA do all.
void use_threads(const std::string& device) {
  spillway_um_space space{};
  std::byte* block = nullptr;
  const auto in_new_thread = [](const auto& action) { std::thread{action}.join(); };
  in_new_thread([&] { space = make_space(device, 4 * kNear); });
  in_new_thread([&] { block = allocate(space, kBlock); });
  in_new_thread([&] { must(spillway_um_prefetch(space, block, kNear), "a prefetch"); });
  in_new_thread([&] { must(spillway_um_offload(space, block, kNear), "an offload"); });
  in_new_thread([&] { must(spillway_um_synchronize(space), "their end"); });
  in_new_thread([&] { must(spillway_um_free(space, block), "a free"); });
  in_new_thread([&] { must(spillway_um_destroy(space), "the end of the space"); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string device = argc > 2 ? argv[2] : "cuda";
  if (what == "faults") {
    use_faults(device);
  } else if (what == "hints") {
    use_hints(device);
  } else if (what == "streams") {
    use_streams(device);
  } else if (what == "oversubscription") {
    use_oversubscription(device);
  } else if (what == "two-devices") {
    use_two_devices();
  } else if (what == "threads") {
    use_threads(device);
  } else {
    std::fprintf(stderr, "unknown: %s\n", what.c_str());
    return 2;
  }
  return 0;
}
