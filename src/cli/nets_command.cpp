#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/text/network_file.h"
#include "prefetch/files/json.h"
#include "prefetch/planners/catalogue.h"
#include "src/cli/commands.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/terminal/help.h"
#include "src/cli/terminal/terminal.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "src/program/machine_size_model.h"

namespace spillway::cli {
namespace {

using um::Bytes;

// The flag --dump: writes a network as a file that --net reads.
struct NetworkDump {
  std::string path;  // empty: write nothing; "-": standard output

  // Adds the flag and returns it.
  CLI::Option* add_to(CLI::App& app);

  [[nodiscard]] bool is_wanted() const { return !path.empty(); }
  // Throws: um::Error when the file cannot be written or the network cannot be built.
  void write(const nets::CatalogueEntry& entry, const nets::NetworkOptions& options) const;
};

CLI::Option* NetworkDump::add_to(CLI::App& app) {
  return app
      .add_option_function<std::string>(
          "--dump", [this](const std::string& value) { path = value.empty() ? "-" : value; },
          "Write the network to this file, which --net reads; - or nothing for standard output")
      ->expected(0, 1)
      ->type_name("FILE");
}

void NetworkDump::write(const nets::CatalogueEntry& entry,
                        const nets::NetworkOptions& options) const {
  write_text(nets::to_text(entry, options), path);
}

constexpr const char* kClassesNote =
    "\nThese figures are for the published number of classes. Other subcommands use 10 classes by "
    "default; nets --classes 10 shows the figures for these.";

// Memory that a network needs at one batch on this machine.
struct BatchNeed {
  std::size_t batch;
  prefetch::NearNeed need;
};

struct NetworkFacts {
  nets::Network network;
  std::string description;
  std::size_t parameters;
  Bytes saved_activations;  // forward tensors that the backward pass reads, per image or text
  double forward_flops;     // per image or text
  std::vector<BatchNeed> needs;
};

Bytes saved_activations(const prefetch::TaskGraph& graph) {
  std::vector<bool> is_saved(graph.data.size(), false);
  std::vector<bool> is_forward(graph.data.size(), false);
  for (const prefetch::Task& task : graph.tasks) {
    if (task.phase == prefetch::Phase::kForward) {
      for (const prefetch::DataId id : task.writes) is_forward[static_cast<std::size_t>(id)] = true;
    } else {
      for (const prefetch::DataId id : task.reads) is_saved[static_cast<std::size_t>(id)] = true;
    }
  }
  Bytes total;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const bool is_tensor = graph.data[i].kind == prefetch::DataKind::kTensor;
    if (is_tensor && is_saved[i] && is_forward[i]) total += graph.data[i].size;
  }
  return total;
}

NetworkFacts gather(const nets::CatalogueEntry& entry, const nets::NetworkOptions& options,
                    const SizeModel& size_model, std::span<const std::size_t> batches) {
  NetworkFacts facts{.network = nets::build_network(entry, options),
                     .description = std::string{entry.description}};
  facts.parameters = nets::count_parameters(facts.network);
  const Step step = make_training_step(facts.network, MachineSizeModel{}, {.batch = 1});
  facts.saved_activations = saved_activations(step.graph);
  facts.forward_flops = 0;
  for (const prefetch::Task& task : step.graph.tasks) {
    if (task.phase == prefetch::Phase::kForward) facts.forward_flops += task.flops;
  }
  for (const std::size_t batch : batches) {
    const Workload workload{facts.network, size_model, {.batch = batch}};
    const StateChoice state{workload, size_model, {.planner = &prefetch::find_planner("joint")}};
    facts.needs.push_back({.batch = batch, .need = state.need()});
  }
  return facts;
}

nlohmann::json to_json(const NetworkFacts& facts) {
  nlohmann::json object{{"name", facts.network.name},
                        {"description", facts.description},
                        {"image", nets::to_string(facts.network.input())},
                        {"classes", facts.network.classes()},
                        {"parameters", facts.parameters},
                        {"saved_activation_bytes_per_image", facts.saved_activations.count()},
                        {"forward_flops_per_image", facts.forward_flops}};
  for (const BatchNeed& at : facts.needs) {
    object["smallest_budget_bytes"][std::to_string(at.batch)] = at.need.smallest.count();
    object["resident_bytes"][std::to_string(at.batch)] = at.need.resident.count();
  }
  return object;
}

// Prints a paragraph that fits the terminal.
void print_wrapped(const std::string& text) {
  constexpr std::size_t kIndent = 2;
  fmt::print("{}\n", wrapped(text, terminal_width(STDOUT_FILENO), kIndent));
}

void print_list(const std::vector<NetworkFacts>& all) {
  std::vector<TableLine> lines{{"name", "input", "classes", "parameters", "saved/input", "GFLOP",
                                "min, b1", "min, b32", "all near, b32"}};
  for (const NetworkFacts& facts : all) {
    lines.push_back({facts.network.name, nets::to_string(facts.network.input()),
                     std::to_string(facts.network.classes()), std::to_string(facts.parameters),
                     um::to_string(facts.saved_activations),
                     fmt::format("{:.3f}", facts.forward_flops * 1e-9),
                     um::to_string(facts.needs.front().need.smallest),
                     um::to_string(facts.needs.back().need.smallest),
                     um::to_string(facts.needs.back().need.resident)});
  }
  fmt::print("{}\n", text_tables(lines, terminal_width(STDOUT_FILENO)));
  print_wrapped("The last rows are examples of families, whose names give their sizes:");
  for (const nets::NetworkFamily& family : nets::network_families()) {
    print_wrapped(fmt::format("{}: {}, as {}", family.form, family.what, family.example));
  }
  print_wrapped(
      "A name that ends in .net is a network file; spillway nets lenet --dump my.net writes an "
      "example.");
}

void print_one(const NetworkFacts& facts) {
  const bool is_of_text = facts.network.reads_text();
  print_wrapped(fmt::format(
      "{}: {}\n{} {}, {} parameters, {} saved for the way back and {:.3f} GFLOP forward {} of {}\n",
      facts.network.name, facts.description, facts.network.classes(),
      is_of_text ? "tokens in the vocabulary" : "classes", facts.parameters,
      um::to_string(facts.saved_activations), facts.forward_flops * 1e-9,
      is_of_text ? "a text" : "an image", nets::to_string(facts.network.input())));
  fmt::print("{:>6} {:>16} {:>16}\n", "batch", "smallest budget", "all near");
  for (const BatchNeed& at : facts.needs) {
    fmt::print("{:>6} {:>16} {:>16}\n", at.batch, um::to_string(at.need.smallest),
               um::to_string(at.need.resident));
  }
  fmt::print("\n{:<28} {}\n", "layer", "output");
  for (const nets::Node& node : facts.network.nodes) {
    fmt::print("{:<28} {}\n", node.name, nets::to_string(node.output));
  }
}

struct NetsFlags {
  std::string name;
  NetworkSizeFlags sizes;
  bool auxiliary_heads = false;
  DeviceFlags device;
  std::string json;
  NetworkDump dump;

  // Returns the user's changes to a network.
  [[nodiscard]] nets::NetworkOptions changes_of(const nets::CatalogueEntry& entry) const {
    nets::NetworkOptions changes = sizes.changes_of(entry);
    changes.auxiliary_heads = auxiliary_heads;
    return changes;
  }
};

nets::CatalogueEntry open_one(const NetsFlags& flags) {
  if (flags.auxiliary_heads) expect_built_in(flags.name);
  return open_named_network(flags.name).entry;
}

// Returns all named networks and a member of each family, with auxiliary heads if wanted.
std::vector<NetworkFacts> gather_all(const NetsFlags& flags, const SizeModel& size_model) {
  constexpr std::array<std::size_t, 2> kBatches{1, 32};
  std::vector<NetworkFacts> all;
  const auto append = [&](const nets::CatalogueEntry& entry) {
    nets::NetworkOptions changes = flags.sizes.fitting_changes_of(entry);
    changes.auxiliary_heads = flags.auxiliary_heads && entry.build_with_heads != nullptr;
    all.push_back(gather(entry, changes, size_model, kBatches));
  };
  for (const nets::CatalogueEntry& entry : nets::catalogue()) append(entry);
  for (const nets::NetworkFamily& family : nets::network_families()) {
    append(nets::find_network(family.example));
  }
  return all;
}

void dump(const NetsFlags& flags) {
  expect_writable(flags.dump.path);
  const nets::CatalogueEntry entry = open_one(flags);
  flags.dump.write(entry, flags.changes_of(entry));
}

void list(const NetsFlags& flags) {
  constexpr std::array<std::size_t, 5> kDetailed{1, 8, 16, 32, 64};
  expect_writable(flags.json);
  const auto backend = flags.device.make_host_backend();
  std::vector<NetworkFacts> all;
  if (flags.name.empty()) {
    all = gather_all(flags, *backend);
  } else {
    const nets::CatalogueEntry entry = open_one(flags);
    all.push_back(gather(entry, flags.changes_of(entry), *backend, kDetailed));
  }
  if (!flags.json.empty()) {
    nlohmann::json array = nlohmann::json::array();
    for (const NetworkFacts& facts : all) array.push_back(to_json(facts));
    prefetch::write_json(array, flags.json);
    if (flags.json == "-") return;
  }
  if (flags.name.empty()) {
    print_list(all);
  } else {
    print_one(all.front());
  }
  const bool is_of_text = !flags.name.empty() && all.front().network.reads_text();
  if (!flags.sizes.classes && !is_of_text && !nets::is_network_file(flags.name)) {
    print_wrapped(kClassesNote);
  }
}

}  // namespace

void add_nets_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "nets", "List networks: parameters, activation bytes and smallest feasible budgets");
  const auto flags = std::make_shared<NetsFlags>();  // shared with the callback
  CLI::Option* const name = command
                                ->add_option("name", flags->name,
                                             "Network to describe: a name, resnet:6,32,100,6, or a "
                                             "file that ends in .net or .onnx "
                                             "(default: a table of all)")
                                ->check(check_network);
  flags->sizes.add_to(*command, "", "as published");
  for (const char* size : {"--image-size", "--sequence-length"}) {
    command->get_option(size)->needs(name);
  }
  command->add_flag("--aux-heads", flags->auxiliary_heads,
                    "Add the auxiliary classifier losses of googlenet and inception-v3");
  flags->device.add_threads_to(*command);
  CLI::Option* const json = command->add_option(
      "--json", flags->json, "Write the list as JSON to this file, - for standard output");
  flags->dump.add_to(*command)->needs(name)->excludes(json);
  command->footer(
      "Example: spillway nets resnet50\n"
      "Example: spillway nets resnet50 --dump my.net");
  command->callback([flags] {
    if (flags->dump.is_wanted()) {
      dump(*flags);
    } else {
      list(*flags);
    }
  });
}

}  // namespace spillway::cli
