#include "src/dropin/failure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "src/dropin/live_spaces.h"
#include "um/dropin/allocations.h"
#include "um/error.h"

namespace spillway::dropin {
namespace {

struct Name {
  std::string_view of_program;
  std::string_view of_c;
};

// A longer name precedes its own prefixes.
constexpr std::array kNames{
    Name{.of_program = "--device host", .of_c = "the device \"host\""},
    Name{.of_program = "--memory copy, a smaller batch,", .of_c = "less capacity,"},
    Name{.of_program = "--memory copy", .of_c = "the device \"host\""},
    Name{.of_program = "--far file:PATH", .of_c = "far_path"},
    Name{.of_program = "--far file", .of_c = "far_path"},
    Name{.of_program = "--link-bandwidth", .of_c = "link_bytes_per_second"},
    Name{.of_program = "--paging memfd", .of_c = "SPILLWAY_UM_PAGING_MEMFD"},
    Name{.of_program = "--paging", .of_c = "paging"},
    Name{.of_program = "--oversubscribe", .of_c = "oversubscribe"}};

// Translates the advice of a message from command-line words to those of spillway_um.h, such as
// --far file:PATH to far_path.
std::string in_c_names(std::string sentence) {
  for (const Name& name : kNames) {
    for (auto at = sentence.find(name.of_program); at != std::string::npos;
         at = sentence.find(name.of_program, at + name.of_c.size())) {
      sentence.replace(at, name.of_program.size(), name.of_c);
    }
  }
  return sentence;
}

/// Has a fixed size, because the failure may be a lack of memory.
thread_local std::array<char, 1024> sentence{};

void keep(std::string_view what) noexcept {
  const std::size_t size = std::min(what.size(), sentence.size() - 1);
  std::memcpy(sentence.data(), what.data(), size);
  sentence[size] = '\0';
}

spillway_um_status note(spillway_um_status status, const char* what) noexcept {
  try {
    keep(in_c_names(what));
  } catch (const std::bad_alloc&) {
    keep(what);
  }
  return status;
}

}  // namespace

const char* last_failure() noexcept { return sentence.data(); }

spillway_um_status note_failure() noexcept {
  try {
    throw;
  } catch (const InvalidSpace& error) {
    return note(SPILLWAY_UM_INVALID_SPACE, error.what());
  } catch (const um::NotAllocated& error) {
    return note(SPILLWAY_UM_NOT_ALLOCATED, error.what());
  } catch (const um::Misuse& error) {
    return note(SPILLWAY_UM_INVALID_ARGUMENT, error.what());
  } catch (const um::OutOfMemory& error) {
    return note(SPILLWAY_UM_OUT_OF_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return note(SPILLWAY_UM_OUT_OF_MEMORY, "the system has no memory left; use smaller spaces");
  } catch (const um::Error& error) {
    return note(SPILLWAY_UM_FAILED, error.what());
  } catch (const std::exception& error) {
    return note(SPILLWAY_UM_INTERNAL, error.what());
  } catch (...) {
    return note(SPILLWAY_UM_INTERNAL, "an unknown failure inside Spillway");
  }
}

}  // namespace spillway::dropin
