// Commands that are refused: the exit status, the sentence, and what it leaves in the folder.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/expect_text.h"
#include "tests/process.h"
#include "tests/src/cli/golden/checkpoints.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

// Each section runs in a folder of its own. A line is one of:
//   $ COMMAND                     of the shell; must succeed
//   ARGUMENTS => STATUS SENTENCE  of `spillway`, which must refuse them
//   > COMMAND                     of the shell; precedes those that follow, where $NET is a file
//   # a comment
// {a,b} or {a|b} stands for both; {1} in the sentence is the one of the first braces. "[+x ~y -z]"
// behind a sentence says that x was made, y changed and z removed. TRAIN is a short training,
// GOLDEN the folder of golden_checkpoints(), FILES is tests/golden, and HERE is the section's
// folder.
constexpr const char* kRefusals = "src/cli/golden/refusals.txt";
const std::string kArrow = " => ";
const std::string kTrain = "train --net lenet --batch 8 --steps 1";

using WordList = std::vector<std::string>;

// One row: its text between the braces, and the words in each of them.
struct Row {
  WordList texts;
  std::vector<WordList> choices;
};

Row row_of(const std::string& command) {
  static const std::regex braces{R"(\{([^{}]*[,|][^{}]*)\})"};
  Row row{.texts = {}, .choices = {}};
  std::size_t end = 0;
  for (std::sregex_iterator at{command.begin(), command.end(), braces}, none; at != none; ++at) {
    const auto begin = static_cast<std::size_t>(at->position());
    row.texts.push_back(command.substr(end, begin - end));
    WordList& words = row.choices.emplace_back();
    const char between = at->str(1).find('|') != std::string::npos ? '|' : ',';
    std::istringstream list{at->str(1) + between};
    for (std::string word; std::getline(list, word, between);) words.push_back(word);
    end = begin + static_cast<std::size_t>(at->length());
  }
  row.texts.push_back(command.substr(end));
  return row;
}

// Returns paths with kind, size and time.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> content;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator{folder}) {
    std::string& text = content[entry.path().lexically_relative(folder).string()];
    if (entry.is_symlink()) {
      text = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      text = std::to_string(entry.file_size()) + " of " +
             std::to_string(entry.last_write_time().time_since_epoch().count());
    }
  }
  return content;
}

class Refusals : public testing::TestWithParam<std::string> {
 protected:
  void run_section() {
    std::string text;
    std::istringstream lines{golden_sections(kRefusals).at(GetParam())};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("> ")) before_ += line.substr(2) + "\n";
      if (line.starts_with("$ ")) {
        const Ended ended = run("( " + line.substr(2) + " )");
        EXPECT_EQ(ended.status, 0) << line << "\n" << ended.errors;
      }
      if (line.empty() || line[0] == '$' || line[0] == '#' || line[0] == '>') {
        text += line + "\n";
      } else {
        text += told(row_of(line.substr(0, line.find(kArrow))));
      }
    }
    expect_text(kRefusals, GetParam(), text);
  }

 private:
  // `command` is one of the shell, in which the program is called spillway.
  [[nodiscard]] Ended run(std::string command) const {
    static const std::regex on_device{R"(\bspillway (train|profile|sample|evaluate|predict)\b)"};
    command = with_all_replaced(with_all_replaced(command, "TRAIN", kTrain), "HERE", here_);
    command = with_all_replaced(command, "GOLDEN", golden_checkpoints());
    command = with_all_replaced(command, "FILES", SPILLWAY_GOLDEN_FILES);
    if (command.find("--device") == std::string::npos) {
      command = std::regex_replace(command, on_device, "$& --device host");
    }
    command = with_all_replaced(command, "spillway ", std::string{SPILLWAY_PROGRAM} + " ");
    return run_in_shell("cd " + here_ + "\nexport SPILLWAY_CACHE=off SPILLWAY_MEASURING_TIME=0.1 " +
                        "OMP_WAIT_POLICY=PASSIVE NET=" + net_ + "\n" + before_ + command);
  }

  // Runs the program and returns " => STATUS SENTENCE".
  [[nodiscard]] std::string answer(const std::string& arguments) const {
    static const std::regex assignments{R"(^((?:[A-Z_]+=\S* )*))"};
    const auto before = content_of(here_);
    const Ended ended =
        run(std::regex_replace(arguments, assignments, "timeout 120 env $1 spillway "));
    EXPECT_EQ(ended.output, "") << arguments;
    EXPECT_EQ(ended.errors.find("bug in spillway"), std::string::npos) << ended.errors;
    const int status = WEXITSTATUS(ended.status);
    // Progress and warnings may come before the sentence.
    const std::size_t begin = status == 1 ? ended.errors.rfind("spillway: ") : 0;
    EXPECT_NE(begin, std::string::npos) << arguments << "\n" << ended.errors;
    std::string sentence = begin == std::string::npos ? ended.errors : ended.errors.substr(begin);
    if (sentence == run("spillway " + arguments + " --help").output) {
      sentence = "spillway: (its help)\n";
    }
    EXPECT_TRUE(sentence.starts_with("spillway: ")) << arguments << "\n" << sentence;
    EXPECT_EQ(sentence.find('\n'), sentence.size() - 1) << arguments << "\n" << sentence;
    sentence = sentence.substr(0, sentence.find('\n')).erase(0, sentence.find(' ') + 1);
    sentence = with_all_replaced(with_all_replaced(sentence, here_, "HERE"), golden_checkpoints(),
                                 "GOLDEN");
    sentence = with_all_replaced(sentence, SPILLWAY_GOLDEN_FILES, "FILES");
    sentence = with_all_replaced(sentence, net_, "NET");
    return kArrow + std::to_string(status) + " " + without_numbers(sentence, arguments) +
           changes(before);
  }

  // Replaces `word` where it is quoted or a word of its own, and the flag that it begins with.
  static std::string with_placeholder(std::string text, const std::string& word,
                                      const std::string& name) {
    text = with_all_replaced(text, "'" + word + "'", "'" + name + "'");
    text = with_all_replaced(text, "=" + word + ";", "=" + name + ";");
    const bool is_long = word.size() >= 3 && std::ranges::any_of(word, [](unsigned char c) {
                           return c == '.' || std::isalpha(c) != 0;
                         });
    if (!is_long) return text;
    const std::string part = word.starts_with("--") ? word.substr(0, word.find(' ')) : word;
    const auto is_inside = [&](std::size_t at) {
      return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                  text[at] == '-' || text[at] == '_');
    };
    std::size_t at = 0;
    while ((at = text.find(part, at)) != std::string::npos) {
      const bool is_word = !is_inside(at - 1) && !is_inside(at + part.size());
      if (is_word) text.replace(at, part.size(), name);
      at += is_word ? name.size() : 1;
    }
    return text;
  }

  // Masks what depends on the machine, or on the workspaces that oneDNN wants: needed and free
  // memory, and the task that needs most. Numbers of `arguments` stay.
  static std::string without_numbers(const std::string& sentence, const std::string& arguments) {
    static const std::regex of_memory{"budget|free|available|pages of"};
    const bool is_of_memory = std::regex_search(sentence, of_memory);
    static const std::regex sizes{R"(\b([0-9][0-9.]*) (?:bytes|B|KiB|MiB|GiB|TiB)\b)"};
    std::string text;
    std::size_t end = 0;
    for (std::sregex_iterator at{sentence.begin(), sentence.end(), sizes}, none; at != none; ++at) {
      const auto begin = static_cast<std::size_t>(at->position());
      const bool is_given = !is_of_memory || arguments.find(at->str(1)) != std::string::npos;
      text += sentence.substr(end, begin - end) + (is_given ? at->str() : "N bytes");
      end = begin + static_cast<std::size_t>(at->length());
    }
    text += sentence.substr(end);
    static const std::regex digests{"\\b[0-9a-f]{16}\\b"};  // of graphs
    static const std::regex tasks{R"(task [\w.]+ needs)"};
    static const std::regex of_library{R"(\[json\.exception.*)"};
    text = std::regex_replace(text, digests, "DIGEST");
    text = std::regex_replace(text, of_library, "...");
    const bool is_of_a_model = arguments.find("--machine") != std::string::npos;
    return is_of_a_model ? text : std::regex_replace(text, tasks, "task TASK needs");
  }

  [[nodiscard]] std::string changes(const std::map<std::string, std::string>& before) const {
    const auto after = content_of(here_);
    std::string text;
    for (const auto& [path, content] : before) {
      const auto now = after.find(path);
      if (now == after.end()) text += " -" + path;
      if (now != after.end() && now->second != content) text += " ~" + path;
    }
    for (const auto& [path, content] : after) {
      if (!before.contains(path)) text += " +" + path;
    }
    return text.empty() ? "" : " [" + text.substr(1) + "]";
  }

  // Returns the lines of `row`: one, or several where answers differ in more than the words in
  // braces.
  std::string told(const Row& row) {
    std::string shown = row.texts[0];
    for (std::size_t i = 0; i < row.choices.size(); ++i) {
      std::string list;
      for (const std::string& word : row.choices[i]) list += "|" + word;
      if (list.find(',') == std::string::npos) std::ranges::replace(list, '|', ',');
      shown += "{" + list.substr(1) + "}" + row.texts[i + 1];
    }
    if (row.choices.empty()) return shown + answer(shown) + "\n";
    const std::set<std::string> all = answers(row);
    if (all.size() == 1) return shown + *all.begin() + "\n";
    // Splits the first braces that have several answers, by these.
    std::size_t split = 0;
    const auto with = [&](const std::string& word) {
      Row part = row;
      part.choices[split] = {word};
      return answers(part);
    };
    while (split + 1 < row.choices.size() &&
           std::ranges::all_of(row.choices[split],
                               [&](const auto& word) { return with(word) == all; })) {
      ++split;
    }
    std::vector<std::set<std::string>> classes;
    std::vector<WordList> words;
    for (const std::string& word : row.choices[split]) {
      const std::set<std::string> its = with(word);
      const auto at = static_cast<std::size_t>(std::ranges::find(classes, its) - classes.begin());
      if (at == classes.size()) {
        classes.push_back(its);
        words.emplace_back();
      }
      words[at].push_back(word);
    }
    std::string text;
    for (const WordList& same : words) {
      Row part = row;
      part.choices[split] = same;
      if (same.size() == 1) {
        part.texts[split] += same[0] + part.texts[split + 1];
        part.texts.erase(part.texts.begin() + static_cast<std::ptrdiff_t>(split) + 1);
        part.choices.erase(part.choices.begin() + static_cast<std::ptrdiff_t>(split));
      }
      text += told(part);
    }
    return text;
  }

  // Returns the answers to each choice of words, which are {1}, {2} ... there.
  std::set<std::string> answers(const Row& row) {
    std::set<std::string> all;
    std::vector<std::size_t> at(row.choices.size());
    while (true) {
      std::string command = row.texts[0];
      for (std::size_t i = 0; i < at.size(); ++i) {
        command += row.choices[i][at[i]] + row.texts[i + 1];
      }
      if (!known_.contains(command)) known_[command] = answer(command);
      std::string told = known_[command];
      for (std::size_t i = 0; i < at.size(); ++i) {
        told = with_placeholder(told, row.choices[i][at[i]], "{" + std::to_string(i + 1) + "}");
      }
      all.insert(told);
      std::size_t next = 0;
      while (next < at.size() && ++at[next] == row.choices[next].size()) at[next++] = 0;
      if (next == at.size()) return all;
    }
  }

  TemporaryFolder folder_;
  std::string here_ = folder_.path().string();
  TemporaryFolder beside_;
  std::string net_ = beside_.file("my.net");
  std::string before_;
  std::map<std::string, std::string> known_;  // answers by command
};

TEST_P(Refusals, AreOneSentenceEach) { run_section(); }

WordList all_sections() {
  WordList names;
  for (const auto& [name, text] : golden_sections(kRefusals)) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, Refusals, testing::ValuesIn(all_sections()),
                         [](const auto& section) { return section.param; });

}  // namespace
}  // namespace spillway::test
