#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "src/bench/build.h"
#include "src/cli/commands.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/terminal.h"
#include "src/report/report_input.h"
#include "src/report/report_page.h"
#include "um/error.h"
#include "um/files/replaced_file.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

struct ReportFlags {
  std::vector<std::string> inputs;
  std::string output = "report.html";
  std::string csv;       // empty: write none
  bool has_page = true;  // false with --csv alone
};

// Writes the page and replaces an old one atomically. Refuses other than regular files, such as
// /dev/stdout, as they would be replaced.
void write_page(const std::string& page, const std::string& path) {
  std::error_code ignored;
  if (path != "-" && fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw um::Error{path + " is no regular file; give -o another name, or - for standard output"};
  }
  write_text(page, path);
}

// Protects inputs from being overwritten by mistake.
void expect_no_input_replaced(const ReportFlags& flags) {
  for (const std::string& input : flags.inputs) {
    std::error_code ignored;
    if (fs::equivalent(input, flags.output, ignored)) {
      throw um::Error{"the report would replace " + input +
                      ", which it reads; give -o another name"};
    }
    if (fs::equivalent(input, flags.csv, ignored)) {
      throw um::Error{"the table would replace " + input +
                      ", which it is made of; give --csv another name"};
    }
  }
  if (fs::path{flags.output}.extension() == ".json") {
    throw um::Error{"the report is no JSON; give -o another name than " + flags.output};
  }
}

void tell_left_out(const ReportInputs& inputs) {
  for (const std::string& complaint : inputs.left_out) {
    tell("warning: left out: {}\n", complaint);
  }
}

void report(const ReportFlags& flags) {
  if (flags.has_page) expect_writable(flags.output);
  expect_writable(flags.csv);
  expect_no_input_replaced(flags);
  const ReportInputs inputs = read_report_inputs(flags.inputs);
  if (!flags.csv.empty()) write_text(step_table(inputs), flags.csv);
  if (!flags.has_page) return tell_left_out(inputs);
  const nlohmann::json data = report_data(inputs, build_version());
  if (const std::size_t count = data.at("machines").size(); count > 1) {
    tell(
        "note: the measurements are of {} machines; each has its own section, and nothing is "
        "compared between them\n",
        count);
  }
  tell_left_out(inputs);
  write_page(make_page(data), flags.output);
  if (flags.output != "-" && flags.csv != "-") fmt::print("{}\n", flags.output);
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "report",
      "Make one HTML page of trainings, measurements, plans and timelines; needs no device");
  const auto flags = std::make_shared<ReportFlags>();  // shared with the callback
  command
      ->add_option(
          "inputs", flags->inputs,
          "Files written by train --json, bench --json, train --timeline, plan --timeline and plan "
          "--out, or folders of such files")
      ->required();
  command
      ->add_option("-o,--output", flags->output,
                   "Write the page to this file, - for standard output")
      ->capture_default_str();
  command->add_option(
      "--csv", flags->csv,
      "Write all steps of the trainings as CSV to this file, - for standard output: loss, "
      "accuracy, "
      "learning rate, times, memory and evaluations; there is then no page unless -o is given");
  command->footer(
      "Any browser opens the page, also without a network. Each machine has its own section. A "
      ".json or .jsonl file in a folder that cannot be shown is left out with a warning; one given "
      "by name is an error.\n"
      "Example: spillway report run.json -o report.html\n"
      "Example: spillway report run.json --csv steps.csv\n"
      "Example: spillway report measurements -o report.html\n"
      "Example: spillway report link.json train.json step-trace.json -o report.html");
  command->callback([flags, command] {
    flags->has_page = flags->csv.empty() || command->count("--output") > 0;
    expect_one_standard_output(
        {{"--csv", flags->csv}, {"--output", flags->has_page ? flags->output : ""}});
    report(*flags);
  });
}

}  // namespace spillway::cli
