#include "tests/world/faults.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>

namespace spillway::world {
namespace {

// Read before main() from two environment variables: the schedule, and a file with the size of
// Counts.
struct Schedule {
  std::array<Fault, 16> faults{};
  std::size_t size = 0;
  Counts* counts = nullptr;
  bool is_counting = false;  // true from main() on
};
Schedule schedule;

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "world: bad schedule: %s\n", what);
  _exit(99);
}

struct NamedError {
  const char* name;
  int number;
};
constexpr std::array<NamedError, 8> kErrors{{{"EIO", EIO},
                                             {"ENOSPC", ENOSPC},
                                             {"EINTR", EINTR},
                                             {"EAGAIN", EAGAIN},
                                             {"EBUSY", EBUSY},
                                             {"ENOMEM", ENOMEM},
                                             {"EACCES", EACCES},
                                             {"EMFILE", EMFILE}}};

// Parses "EIO", "short", "rot", "delay=2000", "signal=15" or "kill".
void parse_effect(std::string_view text, Fault& fault) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (equals != std::string_view::npos) fault.value = std::atoi(text.data() + equals + 1);
  if (name == "short")
    fault.effect = Effect::kShort;
  else if (name == "rot")
    fault.effect = Effect::kRot;
  else if (name == "delay")
    fault.effect = Effect::kDelay;
  else if (name == "signal")
    fault.effect = Effect::kSignal;
  else if (name == "kill")
    fault.effect = Effect::kKill;
  for (const NamedError& error : kErrors) {
    if (name == error.name) {
      fault.effect = Effect::kError;
      fault.value = error.number;
    }
  }
  if (fault.effect == Effect::kNone) refuse("an effect has no such name");
}

// Parses "far-write:7:1:EIO".
Fault parse_fault(std::string_view text) {
  std::array<std::string_view, 4> fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t colon = i + 1 < fields.size() ? text.find(':') : text.size();
    if (colon == std::string_view::npos) refuse("a fault is CALL:FIRST:TIMES:EFFECT");
    fields[i] = text.substr(0, colon);
    text.remove_prefix(std::min(colon + 1, text.size()));
  }
  const auto name = std::find(kCallNames.begin(), kCallNames.end(), fields[0]);
  if (name == kCallNames.end()) refuse("a call has no such name");
  Fault fault{.call = static_cast<Call>(name - kCallNames.begin()),
              .first = std::strtoull(fields[1].data(), nullptr, 10),
              .times = std::strtoull(fields[2].data(), nullptr, 10),
              .effect = Effect::kNone,
              .value = 0};
  parse_effect(fields[3], fault);
  return fault;
}

Counts* map_counts(const char* path) {
  const long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (descriptor < 0) refuse("the file of counts cannot be opened");
  const long memory =
      syscall(SYS_mmap, nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  syscall(SYS_close, descriptor);
  if (memory == -1) refuse("the file of counts cannot be mapped");
  return reinterpret_cast<Counts*>(memory);
}

[[gnu::constructor]] void read_schedule() {
  const char* const path = std::getenv("SPILLWAY_WORLD_COUNTS");
  const char* const text = std::getenv("SPILLWAY_WORLD_FAULTS");
  if (path == nullptr || text == nullptr) return;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (schedule.size == schedule.faults.size()) refuse("too many faults");
    schedule.faults[schedule.size++] = parse_fault(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  schedule.counts = map_counts(path);
}

void strike(const Fault& fault) noexcept {
  if (fault.effect == Effect::kDelay) {
    const timespec pause{.tv_sec = fault.value / 1'000'000,
                         .tv_nsec = fault.value % 1'000'000 * 1'000L};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
  if (fault.effect == Effect::kSignal) kill(getpid(), fault.value);
  if (fault.effect == Effect::kKill) kill(getpid(), SIGKILL);
}

struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

Code find_code() {
  Code code;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        auto& range = *static_cast<Code*>(found);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          range.begin = object->dlpi_addr + part.p_vaddr;
          range.end = range.begin + part.p_memsz;
        }
        return 1;  // the first object is the program
      },
      &code);
  return code;
}

}  // namespace

void begin_counting() noexcept { schedule.is_counting = schedule.counts != nullptr; }

std::optional<Fault> next_call(Call call) noexcept {
  if (!schedule.is_counting) return std::nullopt;
  const std::uint64_t number = ++schedule.counts->calls[static_cast<std::size_t>(call)];
  std::optional<Fault> met;
  for (std::size_t i = 0; i < schedule.size; ++i) {
    const Fault& fault = schedule.faults[i];
    if (fault.call != call || number < fault.first || number - fault.first >= fault.times) continue;
    ++schedule.counts->fired[i];
    strike(fault);
    met = fault;
  }
  return met;
}

bool fails(Call call) noexcept {
  const std::optional<Fault> fault = next_call(call);
  if (!fault || fault->effect != Effect::kError) return false;
  errno = fault->value;
  return true;
}

bool has_called(Call call) noexcept {
  return schedule.is_counting && schedule.counts->calls[static_cast<std::size_t>(call)] > 0;
}

bool is_of_program(const void* caller) {
  static const Code code = find_code();
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return code.begin <= address && address < code.end;
}

}  // namespace spillway::world
