// The options of the subcommands that work on models.
#pragma once

#include <CLI/CLI.hpp>

namespace oar::cli {

// Adds `run`, `bench`, `convert` and `train`. What a command returns is written to `status`.
void add_model_commands(CLI::App& app, bool color, int& status);

}  // namespace oar::cli
