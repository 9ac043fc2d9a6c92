#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"

namespace spillway::test {

/// Runs the program, which must refuse: exit with `code`, write nothing to standard output, and end
/// standard error with one sentence that holds all `words`. Returns that sentence.
inline std::string expect_refused(int code, const Arguments& arguments,
                                  const std::vector<std::string>& words,
                                  const Arguments& environment = {}) {
  const Outcome outcome = run_spillway(arguments, environment);
  EXPECT_EQ(outcome.exit_code, code) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  const std::size_t begin = code == 1 ? outcome.errors.rfind("spillway: ") : 0;
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no sentence in: " << outcome.errors;
    return {};
  }
  std::string sentence = outcome.errors.substr(begin);
  if (code == 1) {
    EXPECT_EQ(std::ranges::count(sentence, '\n'), 1) << sentence;
  }
  expect_parts(sentence, words);
  EXPECT_EQ(sentence.find("bug in spillway"), std::string::npos) << sentence;
  return sentence;
}

/// A training small enough to take no time.
inline Arguments small_training(const Arguments& more = {}) {
  return {"train --net lenet --batch 8 --steps 1", more};
}

}  // namespace spillway::test
