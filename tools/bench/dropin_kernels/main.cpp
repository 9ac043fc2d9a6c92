// Runs one kernel in one memory, and prints its figures as one JSON object.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/bench/dropin_kernels/kernel.h"

namespace spillway::bench {
namespace {

struct Request {
  std::string kernel;
  std::size_t bytes = 0;
  int warm_up = 0;
  int iterations = 0;
  KernelMemoryOptions memory;
};

Request parse(const std::vector<std::string>& words) {
  if (words.size() != 8) {
    throw std::runtime_error{
        "usage: dropin_bench sort|stencil|matmul plain|faults|learned BYTES NEAR_BYTES PAGE_BYTES "
        "LINK_BYTES_PER_SECOND WARM_UP ITERATIONS; 0 for the library's choice of page and link"};
  }
  const auto size = [&](std::size_t i) { return static_cast<std::size_t>(std::stoull(words[i])); };
  Request request{.kernel = words[0],
                  .bytes = size(2),
                  .warm_up = std::stoi(words[6]),
                  .iterations = std::stoi(words[7]),
                  .memory = {.near = size(3),
                             .capacity = size(2) + size(2) / 8,
                             .page = size(4),
                             .link = std::stod(words[5])}};
  if (words[1] == "plain") return request;
  if (words[1] != "faults" && words[1] != "learned") {
    throw std::runtime_error{"there is no way " + words[1]};
  }
  request.memory.way = words[1] == "faults" ? Way::kFaults : Way::kLearned;
  return request;
}

std::unique_ptr<Kernel> make(const Request& request, Memory& memory) {
  if (request.kernel == "sort") return make_sort(memory, request.bytes);
  if (request.kernel == "stencil") return make_stencil(memory, request.bytes);
  if (request.kernel == "matmul") return make_matmul(memory, request.bytes);
  throw std::runtime_error{"there is no kernel " + request.kernel};
}

/// Seconds of each iteration.
std::vector<double> iterate(Kernel& kernel, Memory& memory, int iterations, bool settles) {
  std::vector<double> seconds;
  for (int i = 0; i < iterations; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    kernel.iterate();
    memory.mark();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (settles) memory.settle();
  }
  return seconds;
}

void run(const Request& request) {
  Memory memory{request.memory};
  const auto kernel = make(request, memory);
  memory.mark();
  iterate(*kernel, memory, request.warm_up, true);
  const auto before = memory.counters();
  const auto learned_before = memory.learned();
  const std::vector<double> seconds = iterate(*kernel, memory, request.iterations, false);
  const auto after = memory.counters();
  const auto learned = memory.learned();
  const auto of_one = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from) / request.iterations;
  };
  std::printf("{\"seconds\":[");
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::printf("%s%.6f", i == 0 ? "" : ",", seconds[i]);
  }
  std::printf(R"(],"faults":%.1f,"bytes_in":%.0f,"bytes_out":%.0f,)",
              of_one(before.faults, after.faults),
              of_one(before.bytes_prefetched, after.bytes_prefetched),
              of_one(before.bytes_offloaded, after.bytes_offloaded));
  std::printf(
      R"("touches":%.1f,"hits":%.1f,"misses":%.1f,"late":%.1f,"followed":%.2f,)",
      of_one(learned_before.touches, learned.touches), of_one(learned_before.hits, learned.hits),
      of_one(learned_before.misses, learned.misses), of_one(learned_before.late, learned.late),
      of_one(learned_before.followed, learned.followed));
  std::printf("\"status\":\"%s\",\"near_peak_bytes\":%llu,\"checksum\":\"%016llx\"}\n",
              memory.status().c_str(), static_cast<unsigned long long>(after.near_peak_bytes),
              static_cast<unsigned long long>(kernel->checksum()));
}

}  // namespace
}  // namespace spillway::bench

int main(int count, char** words) {
  try {
    spillway::bench::run(spillway::bench::parse({words + 1, words + count}));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "dropin_bench: %s\n", failure.what());
    return 1;
  }
}
