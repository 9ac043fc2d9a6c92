// Uses a shared CUDA runtime: each argument is a call, each result a line.
//
//   malloc:BYTES async:BYTES:STREAM ptsz:BYTES:STREAM   takes and fills a block
//   free free_async:STREAM free_ptsz:STREAM             gives back the oldest
//   again                                               frees what was freed last
//   device:N   inside (frees the second byte of the oldest)   null   leave (frees it at exit)
//   threads                                             eight threads take and free 50 blocks each
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): the CUDA runtime's.
extern "C" {
int cudaMalloc(void** address, std::size_t bytes);
int cudaFree(void* address);
int cudaMallocAsync(void** address, std::size_t bytes, void* stream);
int cudaMallocAsync_ptsz(void** address, std::size_t bytes, void* stream);
int cudaFreeAsync(void* address, void* stream);
int cudaFreeAsync_ptsz(void* address, void* stream);
int cudaSetDevice(int device);
}
// NOLINTEND(readability-identifier-naming)

namespace {

struct FreedAtExit {
  FreedAtExit() = default;
  FreedAtExit(const FreedAtExit&) = delete;
  FreedAtExit& operator=(const FreedAtExit&) = delete;
  ~FreedAtExit() {
    if (block != nullptr) std::printf("at exit -> %d\n", cudaFree(block));
  }
  void* block = nullptr;
};
FreedAtExit left;

/// A parsed argument: "async:4096:7".
struct Call {
  std::string name;
  std::size_t bytes = 0;
  std::uintptr_t stream = 0;
};

void* handle(std::uintptr_t number) { return std::bit_cast<void*>(number); }

Call read(const std::string& text) {
  std::vector<std::string> parts{""};
  for (const char letter : text) {
    if (letter == ':') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  parts.resize(3);
  return {.name = parts[0],
          .bytes = std::strtoull(parts[1].c_str(), nullptr, 10),
          .stream = std::strtoull(parts[2].c_str(), nullptr, 10)};
}

int take(const Call& call, void** block) {
  int status = -1;
  if (call.name == "malloc") status = cudaMalloc(block, call.bytes);
  if (call.name == "async") status = cudaMallocAsync(block, call.bytes, handle(call.stream));
  if (call.name == "ptsz") status = cudaMallocAsync_ptsz(block, call.bytes, handle(call.stream));
  if (status == 0) std::memset(*block, 1, call.bytes);
  return status;
}

int give_back(const Call& call, void* block) {
  void* const stream = handle(call.bytes);  // the call's only number
  if (call.name == "free_async") return cudaFreeAsync(block, stream);
  if (call.name == "free_ptsz") return cudaFreeAsync_ptsz(block, stream);
  return cudaFree(block);
}

int take_and_free_in_threads() {
  std::vector<std::thread> threads;
  std::vector<int> failures(8);
  threads.reserve(failures.size());
  for (int& failure : failures) {
    threads.emplace_back([&failure] {
      for (int round = 0; round < 50; ++round) {
        void* block = nullptr;
        failure += cudaMalloc(&block, std::size_t{1} << 20U);
        std::memset(block, 1, 1000);
        failure += cudaFree(block);
      }
    });
  }
  int sum = 0;
  for (std::thread& each : threads) each.join();
  for (const int each : failures) sum += each;
  return sum;
}

class Blocks {
 public:
  int act(const Call& call) {
    if (call.name == "device") return cudaSetDevice(static_cast<int>(call.bytes));
    if (call.name == "null") return cudaFree(nullptr);
    if (call.name == "again") return cudaFree(freed_);
    if (call.name == "inside") return cudaFree(static_cast<char*>(blocks_.front()) + 1);
    if (call.name == "threads") return take_and_free_in_threads();
    if (call.name.starts_with("free") || call.name == "leave") {
      freed_ = blocks_.front();
      blocks_.pop_front();
      if (call.name != "leave") return give_back(call, freed_);
      left.block = freed_;
      return 0;
    }
    void* block = nullptr;
    const int status = take(call, &block);
    if (status == 0) blocks_.push_back(block);
    return status;
  }

 private:
  std::deque<void*> blocks_;
  void* freed_ = nullptr;
};

}  // namespace

extern "C" [[gnu::visibility("default")]] void act(int count, char** arguments) {
  Blocks blocks;
  for (int i = 1; i < count; ++i) {
    const int status = blocks.act(read(arguments[i]));
    std::printf("%s -> %d\n", arguments[i], status);
  }
}
