#include "tests/src/cuda/emulated_gpu/card.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {
namespace {

constexpr int kMistakeStatus = 97;  // exit status of a process that made a mistake
constexpr int kSiteDepth = 12;

// Returns the offset of an address of code in this library; nullopt if it is in the program.
std::optional<std::uint64_t> offset_here(void* code) {
  static std::unordered_map<void*, std::optional<std::uint64_t>> known;
  const auto [found, is_new] = known.try_emplace(code);
  if (!is_new) return found->second;
  Dl_info here{};
  Dl_info frame{};
  if (dladdr(reinterpret_cast<void*>(&is_dry), &here) != 0 && dladdr(code, &frame) != 0 &&
      frame.dli_fbase == here.dli_fbase) {
    found->second = static_cast<std::uint64_t>(static_cast<std::byte*>(code) -
                                               static_cast<std::byte*>(frame.dli_fbase));
  }
  return found->second;
}

// Returns the place that called a function of CUDA, the same in each run: offsets in the library of
// the return addresses that lie in it, and whether its thread captures.
std::string call_site(const char* function) {
  std::array<void*, kSiteDepth> frames{};
  const int count = backtrace(frames.data(), kSiteDepth);
  std::uint64_t hash = 1469598103934665603U;  // FNV-1a
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
  for (const char* letter = function; *letter != 0; ++letter) {
    add(static_cast<unsigned char>(*letter));
  }
  for (int i = 0; i < count; ++i) {
    if (const auto offset = offset_here(frames[static_cast<std::size_t>(i)])) add(*offset);
  }
  std::ostringstream text;
  text << function << '@' << std::hex << hash;
  if (own_capture() != nullptr) text << "+captured";
  return text.str();
}

// The error with which a function fails if the test asks for it.
cudaError_t error_of(const std::string& function) {
  if (function.find("Malloc") != std::string::npos || function == "cudaHostAlloc") {
    return cudaErrorMemoryAllocation;
  }
  return cudaErrorUnknown;
}

// Functions that tell or release, which a real driver lets fail only if the device is lost.
bool can_fail(const std::string& function) {
  return function.find("Destroy") == std::string::npos && function != "cudaFree" &&
         function != "cudaFreeHost";
}

bool must_fail(Card& gpu, const std::string& function, std::uint64_t call) {
  const CardSettings& s = gpu.settings;
  if (s.lists_sites || s.fail.find('@') != std::string::npos) {
    Card::CallSite& site = gpu.sites[call_site(function.c_str())];
    site.function = function;
    ++site.calls;
    if (site.calls == 1 && !s.fail.empty() && gpu.sites.count(s.fail) != 0 &&
        &gpu.sites[s.fail] == &site) {
      return true;
    }
  }
  if (s.fail == function + ":" + std::to_string(call)) return true;
  return s.fail_rate > 0 && can_fail(function) &&
         std::uniform_real_distribution<double>{0, 1}(gpu.failures) < s.fail_rate;
}

void write_number(std::ostream& out, const std::string& name, std::uint64_t value) {
  out << "  \"" << name << "\": " << value << ",\n";
}

// A JSON string; the texts have no control characters.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

// Returns the objects that the process still has, by kind.
std::vector<std::pair<std::string, std::size_t>> left(const Card& gpu) {
  const auto blocks = std::ranges::count_if(
      gpu.memory.blocks(), [](const auto& each) { return !each.second.is_leaving; });
  return {{"blocks of memory", static_cast<std::size_t>(blocks)},
          {"streams", gpu.streams.size()},
          {"events", gpu.events.size()},
          {"graphs", gpu.graphs.size() + gpu.executables.size()},
          {"contexts", gpu.retained.size()}};
}

void write_report(const Card& gpu) {
  std::ofstream out{gpu.settings.report + "." + std::to_string(getpid())};
  const MemoryCounts& m = gpu.memory.counts();
  out << "{\n";
  write_number(out, "mistakes", gpu.mistakes);
  out << "  \"first_mistake\": " << quoted(gpu.first_mistake) << ",\n";
  write_number(out, "device_faults", m.device_faults);
  write_number(out, "evicted_bytes", m.evicted_bytes);
  write_number(out, "prefetched_bytes", m.prefetched_bytes);
  write_number(out, "offloaded_bytes", m.offloaded_bytes);
  write_number(out, "discarded_bytes", m.discarded_bytes);
  write_number(out, "near_peak_bytes", m.near_peak);
  write_number(out, "asked_peak_bytes", m.asked_peak);
  write_number(out, "device_peak_bytes", m.device_peak);
  write_number(out, "pinned_peak_bytes", m.pinned_peak);
  write_number(out, "calls_after_loss", gpu.calls_after_loss);
  std::string separator;
  out << "  \"contexts\": [";
  for (const int device : gpu.contexts) out << std::exchange(separator, ", ") << device;
  separator = "\n";
  out << "],\n  \"left\": {";
  for (const auto& [what, count] : left(gpu)) {
    out << std::exchange(separator, ",\n") << "    " << quoted(what) << ": " << count;
  }
  separator = "\n";
  out << "},\n  \"counts\": {";
  for (const auto& [name, count] : gpu.counts) {
    out << std::exchange(separator, ",\n") << "    " << quoted(name) << ": " << count;
  }
  separator = "\n";
  out << "},\n  \"calls\": {";
  for (const auto& [name, count] : gpu.calls) {
    out << std::exchange(separator, ",\n") << "    " << quoted(name) << ": " << count;
  }
  separator = "\n";
  out << "},\n  \"sites\": {";
  for (const auto& [name, site] : gpu.sites) {
    out << std::exchange(separator, ",\n") << "    " << quoted(name) << ": " << site.calls;
  }
  out << "}\n}\n";
}

void report_leaks(const Card& gpu) {
  for (const auto& [what, count] : left(gpu)) {
    if (count > 0) {
      report_mistake(std::to_string(count) + " " + what + " were never released");
    }
  }
}

std::atomic<bool> is_made{false};

// After the destructors of all static objects, and of the libraries that need this one.
[[gnu::destructor]] void end_card() {
  if (is_made) card().end();
}

}  // namespace

Card::Card()
    : settings{read_card_settings()},
      memory{settings},
      queue{settings, [](WorkNode& node) { compute_node(node); }},
      failures{settings.seed} {
  for (int device = 0; device < settings.devices; ++device) {
    auto stream = std::make_unique<CUstream_st>();
    stream->device = device;
    stream->lane = queue.make_lane();
    legacy.push_back(std::move(stream));
  }
}

void Card::end() {
  const std::lock_guard lock{mutex};
  if (!is_lost && !settings.keeps) report_leaks(*this);
  if (!settings.report.empty()) write_report(*this);
}

Card& card() {
  // Called for each access of a kernel, so the store is made once.
  static Card& only = []() -> Card& {
    auto& made = *new Card;
    is_made = true;
    return made;
  }();
  return only;
}

CardThread& card_thread() {
  thread_local CardThread own;
  return own;
}

void make_context() { card().contexts.insert(card_thread().device); }

Capture* own_capture() {
  for (const CUstream_st* stream : card().streams) {
    Capture* const capture = stream->capture.get();
    if (capture != nullptr && capture->thread == std::this_thread::get_id()) return capture;
  }
  return nullptr;
}

cudaError_t failed(cudaError_t error) {
  card_thread().last = error;
  if (error == cudaSuccess || error == cudaErrorNotReady) return error;
  if (Capture* const capture = own_capture()) {
    capture->has_failed = true;
    if (card().settings.invalidates) capture->is_broken = true;
  }
  return error;
}

CUstream_st* find_stream(cudaStream_t handle) {
  Card& gpu = card();
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return gpu.legacy[static_cast<std::size_t>(card_thread().device)].get();
  }
  return gpu.streams.count(handle) != 0 ? handle : nullptr;
}

namespace {

// The legacy stream waits for the blocking streams of its device, and they for it.
void wait_by_legacy_rules(CUstream_st& stream) {
  Card& gpu = card();
  CUstream_st& legacy = *gpu.legacy[static_cast<std::size_t>(stream.device)];
  if (&stream == &legacy) {
    for (CUstream_st* other : gpu.streams) {
      if (!other->waits_for_legacy || other->device != stream.device) continue;
      if (other->tail && !other->tail->is_done) gpu.queue.add_wait(stream, other->tail);
    }
  } else if (stream.waits_for_legacy && legacy.tail && !legacy.tail->is_done) {
    gpu.queue.add_wait(stream, legacy.tail);
  }
}

}  // namespace

bool is_invalidated(const CUstream_st& stream) {
  return stream.capture && stream.capture->is_broken;
}

cudaError_t submit(cudaStream_t handle, WorkKind kind, Work work) {
  Card& gpu = card();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) {
    report_mistake(work.name + " on a stream that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (kind == WorkKind::kCompute && stream->device != card_thread().device) {
    report_mistake(work.name + " on a stream of another device than the current one");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (is_invalidated(*stream)) return failed(cudaErrorStreamCaptureInvalidated);
  make_context();
  ++gpu.counts[(stream->capture ? "captured " : "") + work.name];
  if (!stream->capture) wait_by_legacy_rules(*stream);
  gpu.queue.add(*stream, kind, std::make_shared<const Work>(std::move(work)));
  return cudaSuccess;
}

void compute_node(WorkNode& node) {
  Card& gpu = card();
  if (gpu.settings.is_dry) return;
  gpu.running = &node;
  for (const Access& access : node.work->accesses) {
    note_device_access(access.begin, access.size, access.writes);
  }
  if (node.work->compute) node.work->compute();
  gpu.running = nullptr;
}

namespace {

void note_access(Card& gpu, const void* begin, std::size_t size, bool writes) {
  if (size == 0) return;
  Block* const block = gpu.memory.find(begin, size);
  if (gpu.running == nullptr) {
    if (block == nullptr || block->kind == BlockKind::kDevice) {
      report_mistake("the processor accesses device memory");
    }
    return;
  }
  const WorkNode& node = *gpu.running;
  if (block == nullptr) {
    report_mistake(work_name(*node.work) + (writes ? " writes" : " reads") +
                   " memory that is not in one live block");
    return;
  }
  if (block->kind == BlockKind::kManaged && node.kind == WorkKind::kCompute) {
    gpu.memory.touch(*block, begin, size, node.device, writes);
  }
  if (!gpu.settings.finds_races) return;
  const std::string other = gpu.races.note(node, begin, size, writes);
  if (other.empty()) return;
  report_mistake("a race: " + other + " what " + work_name(*node.work) +
                 (writes ? " writes" : " reads") + ", and nothing orders them");
}

}  // namespace

void note_device_access(const void* begin, std::size_t size, bool writes) {
  note_access(card(), begin, size, writes);
}

void note_kernel_access(const void* begin, std::size_t size, bool writes) {
  static Card& gpu = card();
  if (!gpu.memory.is_of_card(begin)) return;
  // A kernel makes millions, and most have nothing to note.
  if (gpu.running != nullptr && !gpu.settings.finds_races) {
    const Block* const block = gpu.memory.find(begin, size);
    if (block != nullptr && CardMemory::is_at_hand(*block, begin, size, gpu.running->device))
      return;
  }
  note_access(gpu, begin, size, writes);
}

int enqueue(CUstream_st* stream, Work work) {
  const std::lock_guard lock{card().mutex};
  return submit(stream, WorkKind::kCompute, std::move(work));
}

int begin_call(const char* name) {
  Card& gpu = card();
  const std::lock_guard lock{gpu.mutex};
  const std::string function = name;
  if (gpu.settings.traces) std::fprintf(stderr, "emulated GPU: %s\n", name);
  if (gpu.is_lost) {
    if (can_fail(function)) ++gpu.calls_after_loss;
    return failed(cudaErrorDevicesUnavailable);
  }
  const std::uint64_t call = ++gpu.calls[function];
  if (!must_fail(gpu, function, call)) return cudaSuccess;
  ++gpu.counts["calls that failed by request"];
  gpu.is_lost = gpu.settings.is_lost;
  return failed(gpu.is_lost ? cudaErrorDevicesUnavailable : error_of(function));
}

void report_mistake(const std::string& sentence) {
  Card& gpu = card();
  ++gpu.mistakes;
  if (gpu.first_mistake.empty()) gpu.first_mistake = sentence;
  std::fprintf(stderr, "emulated GPU: a mistake: %s\n", sentence.c_str());
  if (gpu.settings.goes_on) return;
  if (!gpu.settings.report.empty()) write_report(gpu);
  _exit(kMistakeStatus);
}

bool is_device_memory(const void* begin, std::size_t size) {
  Card& gpu = card();
  const std::lock_guard lock{gpu.mutex};
  const Block* const block = gpu.memory.find(begin, size);
  return block != nullptr && block->kind != BlockKind::kPinned;
}

void poison(void* begin, std::size_t size) { std::memset(begin, 0xFF, size); }

bool is_dry() { return card().settings.is_dry; }

void count(const std::string& name, std::uint64_t more) {
  Card& gpu = card();
  const std::lock_guard lock{gpu.mutex};
  gpu.counts[name] += more;
}

}  // namespace spillway::emulated
