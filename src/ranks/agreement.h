#pragma once

#include <span>
#include <string>

#include "src/ranks/communicator.h"

namespace spillway {

/// A setting that must be equal on all ranks, as text: {"flags", "--net lenet --batch 64"}.
struct NamedText {
  std::string name;
  std::string text;
  std::string advice = {};  ///< what to do where it differs, if the text does not say so
};

/// Compares `texts` across ranks. If any differs, all ranks throw the same um::Error: what differs,
/// each rank's text, shortened, and the advice. Requires: at least one text; all ranks call it.
void expect_agreement(Communicator& communicator, std::span<const NamedText> texts);

}  // namespace spillway
