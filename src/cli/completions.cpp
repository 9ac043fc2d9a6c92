#include "src/cli/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"

namespace spillway::cli {
namespace {

using Words = std::vector<std::string>;

// A subcommand as the user types it, "bench train", and what may follow.
struct Context {
  std::string path;
  const CLI::App& command;
};

void add_contexts(const CLI::App& command, const std::string& path, std::vector<Context>& all) {
  all.push_back({path, command});
  for (const CLI::App* const inner : command.get_subcommands({})) {
    add_contexts(*inner, path.empty() ? inner->get_name() : path + " " + inner->get_name(), all);
  }
}

std::vector<Context> contexts_of(const CLI::App& app) {
  std::vector<Context> all;
  add_contexts(app, "", all);
  return all;
}

// The members in "TEXT:{copy,managed,resident}".
Words listed_words(const std::string& type) {
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

template <class Range, class Name>
Words names_of(const Range& range, const Name& name) {
  Words names;
  for (const auto& each : range) names.emplace_back(name(each));
  return names;
}

// What may stand behind `option`, where that is known; else files may.
Words values_of(const CLI::Option& option) {
  const std::string name = option.get_name(option.get_positional());
  if (name == "--net" || name == "name") {
    return names_of(nets::catalogue(), [](const auto& each) { return each.name; });
  }
  if (name == "--planner" || name == "--planners") {
    return names_of(prefetch::planners(), [](const auto& each) { return each->name(); });
  }
  if (name == "--machine" || name == "--machines") {
    return names_of(prefetch::built_in_machines(), [](const auto& each) { return each.name; });
  }
  if (name == "--resume") return {"auto"};
  return listed_words(option.get_type_name());
}

// What may come next but the value of an option.
Words next_words(const CLI::App& command) {
  Words words;
  for (const CLI::App* const inner : command.get_subcommands({})) {
    words.push_back(inner->get_name());
  }
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional()) {
      const Words values = values_of(*option);
      words.insert(words.end(), values.begin(), values.end());
    } else {
      words.push_back("--" + option->get_lnames().front());
    }
  }
  return words;
}

// `cases` of a shell's case statement: the words that may follow each option of each subcommand.
std::string value_cases(const std::vector<Context>& contexts) {
  std::string cases;
  for (const auto& [path, command] : contexts) {
    for (const CLI::Option* const option : command.get_options()) {
      if (option->get_positional() || option->get_expected_max() == 0) continue;
      Words words = values_of(*option);
      if (option->get_expected_min() == 0) {  // it may stand alone
        const Words next = next_words(command);
        words.insert(words.end(), next.begin(), next.end());
      }
      cases += fmt::format("    '{} --{}') choices='{}' ;;\n", path, option->get_lnames().front(),
                           fmt::join(words, " "));
    }
  }
  return cases;
}

std::string next_cases(const std::vector<Context>& contexts) {
  std::string cases;
  for (const auto& [path, command] : contexts) {
    cases += fmt::format("    '{}') choices='{}' ;;\n", path, fmt::join(next_words(command), " "));
  }
  return cases;
}

// The subcommands of those that have some, as a pattern of a shell's case statement.
std::string groups(const std::vector<Context>& contexts) {
  Words names;
  for (const auto& [path, command] : contexts) {
    if (!path.empty() && !command.get_subcommands({}).empty()) names.push_back(path);
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

// A function of both shells that prints what may come next. Its arguments are the last word before
// the cursor, and the first two behind "spillway". It prints nothing behind an option whose values
// are not known: files complete.
std::string choose_words(const CLI::App& app) {
  const std::vector<Context> contexts = contexts_of(app);
  return fmt::format(
      "_spillway_words() {{\n  local previous=$1 typed=$2 choices=\n"
      "  case \"$2\" in {}) typed=\"$2 $3\" ;; esac\n  typed=${{typed% }}\n"
      "  case \"$typed $previous\" in\n{}    *) case \"$typed\" in\n{}    esac ;;\n  esac\n"
      "  echo \"$choices\"\n}}\n",
      groups(contexts), value_cases(contexts), next_cases(contexts));
}

}  // namespace

std::string bash_completions(const CLI::App& app) {
  return choose_words(app) +
         "_spillway() {\n"
         "  local before=(\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n"
         "  local words=$(_spillway_words \"${COMP_WORDS[COMP_CWORD-1]}\" \"${before[@]:0:2}\")\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _spillway spillway\n";
}

std::string zsh_completions(const CLI::App& app) {
  return "#compdef spillway\n" + choose_words(app) +
         "_spillway() {\n"
         "  local before=(\"${(@)words[2,CURRENT-1]}\")\n"
         "  local found=($(_spillway_words \"${words[CURRENT-1]}\" \"${(@)before[1,2]}\"))\n"
         "  compadd -- $found || _files\n"
         "}\n"
         "_spillway \"$@\"\n";
}

}  // namespace spillway::cli
