#pragma once

/// The classes of CLI11 that our headers name. Those who use one include CLI/CLI.hpp, which takes a
/// compiler some four seconds.
namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
class Validator;
}  // namespace CLI
