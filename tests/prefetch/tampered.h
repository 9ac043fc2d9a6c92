#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::prefetch::testing {

/// One way to spoil a file, and the sentence that must refuse it.
struct Tampering {
  const char* place;     ///< JSON pointer: "/tasks/3/reads/1"
  const char* value;     ///< JSON text to put there; empty: nothing, what is there goes
  const char* sentence;  ///< complete
};

/// `file` with the one thing changed.
inline nlohmann::json tampered(nlohmann::json file, const Tampering& tampering) {
  const nlohmann::json::json_pointer place{tampering.place};
  if (*tampering.value != '\0') {
    file[place] = nlohmann::json::parse(tampering.value);
  } else if (nlohmann::json& parent = file[place.parent_pointer()]; parent.is_array()) {
    parent.erase(std::stoul(place.back()));
  } else {
    parent.erase(place.back());
  }
  return file;
}

}  // namespace spillway::prefetch::testing
