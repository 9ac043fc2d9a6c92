#include "src/dropin/failure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "src/dropin/c_names.h"
#include "src/dropin/live_spaces.h"
#include "um/dropin/allocations.h"
#include "um/error.h"

namespace spillway::dropin {
namespace {

/// Of a fixed size: a failure may be that there is no memory.
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
