#pragma once

#include <span>
#include <string>

#include "src/ranks/communicator.h"

namespace spillway {

/// Something that must be the same on all ranks, as text: {"flags", "--net lenet --batch 64"}.
struct NamedText {
  std::string name;
  std::string text;
  std::string advice = {};  ///< what to do where it differs, where the text does not say it
};

/// Returns where all ranks call this with the same texts. Else all of them throw the same
/// um::Error: what differs, with the text of each rank, shortened, and the advice. Requires: at
/// least one text.
void expect_agreement(Communicator& communicator, std::span<const NamedText> texts);

}  // namespace spillway
