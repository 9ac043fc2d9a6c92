#include "tests/src/cuda/processor/grid_run.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/src/cuda/processor/fiber.h"
#include "tests/src/cuda/processor/memory_watch.h"
#include "um/error.h"

namespace {

constexpr std::size_t kSharedBytes = 48U << 10U;  // available to every block

}  // namespace

namespace spillway::cuda {

// The memory that shared_floats() returns.
alignas(16) thread_local float launch_floats[kSharedBytes / sizeof(float)];

}  // namespace spillway::cuda

namespace spillway::processor {

Place place;

namespace {

// Returns a function, then a file and line.
std::vector<std::string> ask(const void* code) {
  Dl_info object{};  // the program, or the library that the kernels are in
  if (dladdr(code, &object) == 0) return {"?", "?"};
  std::ostringstream command;
  command << "addr2line -f -C -s -e '" << object.dli_fname << "' " << std::hex
          << static_cast<const std::byte*>(code) - static_cast<std::byte*>(object.dli_fbase)
          << " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> answer{popen(command.str().c_str(), "r"), &pclose};
  std::vector<std::string> lines;
  std::array<char, 1000> line{};
  while (answer != nullptr && fgets(line.data(), line.size(), answer.get()) != nullptr) {
    lines.emplace_back(line.data());
    if (lines.back().ends_with('\n')) lines.back().pop_back();
  }
  if (lines.size() >= 2) return lines;
  std::ostringstream address;
  address << code;
  return {address.str(), address.str()};
}

// Returns the file and line of `code`, as function_name() finds the function.
std::string source_line(const void* code) { return ask(code)[1]; }

constexpr unsigned kWarpThreads = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFF;

enum class Wait { kNot, kBlock, kWarp, kExchange };

constexpr std::uint64_t kMaxBlocks = (1U << 24U) - 1;  // largest number that fits in a Moment

// A thread of the running block.
struct Thread {
  bool has_ended = false;
  Wait wait = Wait::kNot;
  um::Caller where{};
  Fiber* fiber = nullptr;   // the fiber on which it waits
  std::uint64_t given = 0;  // sent to the other threads; `got` is what it receives
  std::uint64_t got = 0;
  unsigned distance = 0;
};

struct Run {
  std::uint32_t number = 0;  // of the launch
  std::size_t shared_bytes = 0;
  const void* kernel = nullptr;
  const std::byte* arguments = nullptr;
  std::size_t argument_bytes = 0;
  std::string fault;
  const void* fault_code = nullptr;
  Moment moment;
  std::vector<Thread> threads;
  std::vector<std::uint16_t> warp_barriers;
  Fiber* fiber = nullptr;  // the running fiber
  // Threads that go on, one after the other: the next one, and their end.
  unsigned next = 0;
  unsigned end = 0;
};
Run run;
bool only_outer_blocks = false;
std::vector<LaunchCount>* counts = nullptr;  // null: launches are not counted

void set_thread(unsigned i) {
  const dim3& size = place.block_size;
  place.thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  run.moment.thread = i & (kMaxThreads - 1);
  run.moment.warp_barriers = run.warp_barriers[i / kWarpThreads] & 0x3FFU;
}

Thread& this_thread() { return run.threads[run.moment.thread]; }

// Leaves the running thread for the next one that may go on, or for the block's run.
void go_on_elsewhere() {
  Fiber& own = *run.fiber;
  if (run.next == run.end) {
    own.pause();
    return;
  }
  const unsigned i = run.next++;
  set_thread(i);
  run.fiber = run.threads[i].fiber;
  own.pause_for(*run.fiber);
}

// Waits until all threads of the barrier have arrived.
Thread& wait(Wait kind, std::uint64_t given, unsigned distance, um::Caller where) {
  Thread& thread = this_thread();
  thread.wait = kind;
  thread.given = given;
  thread.distance = distance;
  thread.where = where;
  thread.fiber = run.fiber;
  go_on_elsewhere();
  return thread;
}

std::string text(um::Caller where) {
  return std::string{where.file} + ":" + std::to_string(where.line);
}

// Runs a block of threads from start to end.
class BlockRun {
 public:
  explicit BlockRun(const std::function<void()>& body)
      : body_{body}, count_{static_cast<unsigned>(run.threads.size())} {}

  // Returns true if all threads have ended.
  bool go() {
    std::fill(run.threads.begin(), run.threads.end(), Thread{});
    std::fill(run.warp_barriers.begin(), run.warp_barriers.end(), std::uint16_t{0});
    run.moment.block_barriers = 0;
    start_threads();
    while (!have_all_ended()) {
      bool any = false;
      for (unsigned begin = 0; begin < count_; begin += kWarpThreads) {
        const unsigned end = std::min(begin + kWarpThreads, count_);
        for (; release_warp(begin, end); any = true) go_on(begin, end);
      }
      if (any) continue;
      if (!release_block()) {
        for (const Thread& thread : run.threads) {
          if (!thread.has_ended) stacks().give_back(*thread.fiber);
        }
        return false;
      }
      go_on(0, count_);
    }
    return true;
  }

 private:
  // Runs each thread until it waits or ends. A waiting thread keeps its stack; the next one gets
  // another.
  void start_threads() {
    while (started_ < count_) {
      Fiber& fiber = stacks().take();
      fiber.start(start_next_);
      switch_to(fiber);
    }
  }
  void start_next() {
    while (started_ < count_) {
      const unsigned i = started_++;
      set_thread(i);
      body_();
      run.threads[run.moment.thread].has_ended = true;
    }
    stacks().give_back(*run.fiber);
  }
  // Lets threads that are released run until they wait or end.
  static void go_on(unsigned begin, unsigned end) {
    run.next = begin;
    run.end = end;
    while (run.next < run.end) {  // a thread that ends comes back here
      const unsigned i = run.next++;
      set_thread(i);
      switch_to(*run.threads[i].fiber);
    }
  }
  static void switch_to(Fiber& fiber) {
    run.fiber = &fiber;
    fiber.resume();
    run.fiber = nullptr;
  }

  [[nodiscard]] bool have_all_ended() const {
    return std::all_of(run.threads.begin(), run.threads.end(),
                       [](const Thread& thread) { return thread.has_ended; });
  }
  // Releases a warp with all threads at the same barrier. Returns true if it has.
  static bool release_warp(unsigned begin, unsigned end) {
    const Wait kind = run.threads[begin].wait;
    if ((kind != Wait::kWarp && kind != Wait::kExchange) || !is_together(begin, end)) return false;
    for (unsigned i = begin; i < end; ++i) {
      const unsigned other = begin + ((i - begin) ^ run.threads[i].distance);
      run.threads[i].got = run.threads[other < end ? other : i].given;
    }
    for (unsigned i = begin; i < end; ++i) run.threads[i].wait = Wait::kNot;
    if (kind == Wait::kWarp) ++run.warp_barriers[begin / kWarpThreads];
    return true;
  }
  // Releases the block in the same way. Reports a fault if the block cannot continue.
  bool release_block() {
    if (run.threads[0].wait != Wait::kBlock || !is_together(0, count_)) {
      report_who_waits();
      return false;
    }
    std::uint64_t sum = 0;
    for (const Thread& thread : run.threads) sum += thread.given;
    for (Thread& thread : run.threads) {
      thread.got = sum;
      thread.wait = Wait::kNot;
    }
    ++run.moment.block_barriers;
    std::fill(run.warp_barriers.begin(), run.warp_barriers.end(), std::uint16_t{0});
    return true;
  }
  // Returns true if these threads all wait at the same line.
  [[nodiscard]] static bool is_together(unsigned begin, unsigned end) {
    const Thread& first = run.threads[begin];
    return std::all_of(run.threads.begin() + begin, run.threads.begin() + end,
                       [&](const Thread& thread) {
                         return !thread.has_ended && thread.wait == first.wait &&
                                thread.where.line == first.where.line &&
                                (thread.where.file == first.where.file ||
                                 std::string_view{thread.where.file} == first.where.file);
                       });
  }
  void report_who_waits() const {
    std::string who;
    unsigned ended = 0;
    std::vector<std::string> lines;
    for (const Thread& thread : run.threads) {
      if (thread.has_ended) {
        ++ended;
      } else if (const std::string line = text(thread.where);
                 std::find(lines.begin(), lines.end(), line) == lines.end()) {
        lines.push_back(line);
      }
    }
    for (const std::string& line : lines) who += (who.empty() ? "" : " and at ") + line;
    report_fault("divergent barrier: threads wait at " + who + ", " + std::to_string(ended) +
                     " of " + std::to_string(count_) + " have ended",
                 nullptr);
  }

  const std::function<void()>& body_;
  const std::function<void()> start_next_ = [this] { start_next(); };
  unsigned count_;
  unsigned started_ = 0;
};

void run_blocks(const dim3& blocks, const std::function<void()>& thread) {
  const std::uint64_t count = std::uint64_t{blocks.x} * blocks.y * blocks.z;
  um::expects(count <= kMaxBlocks, "the tests' launches have fewer than 2^24 blocks");
  const std::uint64_t step = only_outer_blocks && count > 1 ? count - 1 : 1;
  for (std::uint64_t b = 0; b < count; b += step) {
    place.block = {static_cast<unsigned>(b % blocks.x),
                   static_cast<unsigned>(b / blocks.x % blocks.y),
                   static_cast<unsigned>(b / blocks.x / blocks.y)};
    run.moment.block = (b + 1) & kMaxBlocks;
    if (!BlockRun{thread}.go()) return;
  }
}

}  // namespace

void run_grid(const Launch& launch, const std::function<void()>& thread) {
  const std::size_t threads = std::size_t{launch.threads.x} * launch.threads.y * launch.threads.z;
  const bool fits = threads > 0 && threads <= kMaxThreads && launch.blocks.x > 0 &&
                    launch.blocks.y > 0 && launch.blocks.y <= 65535 &&
                    launch.shared_bytes <= kSharedBytes;
  if (!fits) throw KernelFault{"a launch of a size that no device runs"};
  run = {.number = run.number + 1, .shared_bytes = launch.shared_bytes, .kernel = launch.kernel};
  run.arguments = static_cast<const std::byte*>(launch.arguments.get());
  run.argument_bytes = launch.argument_bytes;
  run.threads.resize(threads);
  run.warp_barriers.resize((threads + kWarpThreads - 1) / kWarpThreads);
  place.block_size = launch.threads;
  place.grid_size = launch.blocks;
  run_blocks(launch.blocks, thread);
  run.moment = {};
  if (counts != nullptr) {
    const Touched touched = touched_by_last_launch();
    counts->push_back({.blocks = std::size_t{launch.blocks.x} * launch.blocks.y * launch.blocks.z,
                       .threads = threads,
                       .read = touched.read,
                       .written = touched.written,
                       .accessed = touched.accessed});
  }
  if (run.fault.empty()) return;
  const std::string at = run.fault_code != nullptr ? " at " + source_line(run.fault_code) : "";
  throw KernelFault{function_name(run.kernel) + ": " + run.fault + at};
}

OnlyOuterBlocks::OnlyOuterBlocks() { only_outer_blocks = true; }
OnlyOuterBlocks::~OnlyOuterBlocks() { only_outer_blocks = false; }

LaunchCounts::LaunchCounts() { counts = &launches_; }
LaunchCounts::~LaunchCounts() { counts = nullptr; }

int wait_for_block(int number, um::Caller where) {
  return static_cast<int>(wait(Wait::kBlock, static_cast<std::uint64_t>(number), 0, where).got);
}

void wait_for_warp(unsigned lanes, um::Caller where) {
  if (lanes != kAllLanes) report_fault("a barrier of a part of a warp at " + text(where), nullptr);
  wait(Wait::kWarp, 0, 0, where);
}

std::uint64_t exchange(unsigned lanes, std::uint64_t bits, unsigned distance, um::Caller where) {
  if (lanes != kAllLanes) report_fault("a shuffle of a part of a warp at " + text(where), nullptr);
  return wait(Wait::kExchange, bits, distance, where).got;
}

const Moment& now() { return run.moment; }
bool is_in_kernel() { return run.fiber != nullptr; }
std::uint32_t launch_number() { return run.number; }

bool is_behind_shared_bytes(const void* address, std::size_t size) {
  const auto* const begin = reinterpret_cast<const std::byte*>(cuda::launch_floats);
  const auto* const byte = static_cast<const std::byte*>(address);
  return byte >= begin && byte < begin + kSharedBytes && byte + size > begin + run.shared_bytes;
}

std::string function_name(const void* code) { return ask(code)[0]; }

bool is_private(const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto* const of_place = reinterpret_cast<const std::byte*>(&place);
  return (byte >= of_place && byte < of_place + sizeof place) ||
         (byte >= run.arguments && byte < run.arguments + run.argument_bytes) ||
         stacks().contain(byte) || is_on_first_stack(byte);
}

void report_fault(const std::string& what, const void* code) {
  if (!run.fault.empty()) return;
  const uint3& t = place.thread;
  const uint3& b = place.block;
  run.fault = what + " (thread " + std::to_string(t.x) + "," + std::to_string(t.y) + " of block " +
              std::to_string(b.x) + "," + std::to_string(b.y) + ")";
  run.fault_code = code;
}

}  // namespace spillway::processor
