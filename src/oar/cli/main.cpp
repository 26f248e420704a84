// The `oar` command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>

#include "oar/base/error.h"
#include "oar/base/version.h"
#include "oar/cli/commands.h"
#include "oar/cli/terminal.h"

namespace {

namespace cli = oar::cli;

int run(int argc, char** argv) {
  CLI::App app{"Oar: train, compile, distribute, deploy and serve.", "oar"};
  app.set_version_flag("--version,-V", std::string("oar ") + oar::version());
  app.require_subcommand(1);

  int status = 0;
  const bool color = cli::wants_color();
  CLI::App* doctor_command =
      app.add_subcommand("doctor", "Check this machine and this installation.");
  doctor_command->callback([&] { status = cli::doctor(std::cout, color); });

  CLI::App* flags_command =
      app.add_subcommand("flags", "List the flags, their values and how to set them.");
  flags_command->callback([&] { status = cli::show_flags(std::cout, color); });

  cli::OpsQuery query;
  CLI::App* ops_command = app.add_subcommand("ops", "List the ops, or show one in full.");
  ops_command->add_option("name", query.name, "The op to show");
  ops_command->add_option("--family", query.family, "List this family only");
  ops_command->callback([&] { status = cli::show_ops(std::cout, color, query); });

  cli::InspectQuery program;
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "Print a program, or draw it, from its text.");
  inspect_command->add_option("file", program.path, "The program's text; - for standard input")
      ->required();
  inspect_command->add_option("--svg", program.svg, "Draw it into this file instead");
  inspect_command->add_flag("--optimise", program.optimise, "Run the compiler's passes first");
  inspect_command->callback([&] { status = cli::inspect(std::cout, color, program); });

  if (argc == 1) {
    std::cout << app.help();
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // --help and --version come this way too
    return app.exit(error) == 0 ? 0 : 2;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const oar::Error& error) {
    std::cerr << "oar: " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "oar: " << error.what() << '\n';
  }
  return 2;
}
